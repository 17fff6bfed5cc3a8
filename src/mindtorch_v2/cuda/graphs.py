"""CUDA graphs: classes and functions for type checks and annotations; using one raises, as there is no CUDA."""

from __future__ import annotations

from typing import Any, NoReturn

from ._absent import no_base, no_cuda

__all__ = ["CUDAGraph", "graph", "graph_pool_handle", "is_current_stream_capturing", "make_graphed_callables"]


class CUDAGraph:
    """A captured sequence of kernels; cannot be built without CUDA."""

    def __new__(cls, keep_graph: bool = False) -> NoReturn:
        raise no_base("CUDAGraph")


class graph:
    """Context manager that captures a CUDA graph; raises without CUDA."""

    def __init__(
        self, cuda_graph: Any, pool: Any = None, stream: Any = None, capture_error_mode: str = "global"
    ) -> None:
        raise no_cuda()


def is_current_stream_capturing() -> bool:
    """Whether a CUDA graph is being captured: never."""
    return False


def graph_pool_handle() -> NoReturn:
    """Raises: there is no CUDA memory pool."""
    raise no_base("_graph_pool_handle")


def make_graphed_callables(
    callables: Any,
    sample_args: Any,
    num_warmup_iters: int = 3,
    allow_unused_input: bool = False,
    pool: Any = None,
) -> NoReturn:
    """Raises: there is no CUDA to capture graphs with."""
    raise no_cuda()
