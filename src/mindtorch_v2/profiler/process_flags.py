"""Process-wide flags of the profiler, read when a recording ends."""

from __future__ import annotations

forward_backward_links = True  # trace files contain flows from forward ops to their backward nodes
concrete_inputs = True  # events show the values of list arguments
cuda_sync = False  # stored for torch's API; there is no CUDA
