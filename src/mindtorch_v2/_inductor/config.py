"""Settings of torch's code generator that programs set. They are stored and have no effect."""

from __future__ import annotations

from types import SimpleNamespace

fx_graph_cache: bool = True
max_autotune: bool = False
max_autotune_gemm_backends: str = "ATEN,TRITON,CPP"
coordinate_descent_tuning: bool = False
conv_1x1_as_mm: bool = False
epilogue_fusion: bool = True
freezing: bool = False
triton = SimpleNamespace(cudagraphs=False, unique_kernel_names=True, cudagraph_trees=True)
cpp = SimpleNamespace(threads=-1, simdlen=None)
