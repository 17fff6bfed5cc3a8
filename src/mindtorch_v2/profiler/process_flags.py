"""Process-wide switches of the profiler, asked when a recording ends."""

from __future__ import annotations

forward_backward_links = True  # trace files hold arrows from forward ops to their backward nodes
concrete_inputs = True  # events show the values of lists that went in
cuda_sync = False
