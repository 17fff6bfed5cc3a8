"""Process-wide switches of the profiler, asked when a recording ends."""

from __future__ import annotations

forward_backward_links = True  # trace files hold arrows from forward ops to their backward nodes
concrete_inputs = True  # events show the values of lists that went in
cuda_sync = False


def settings() -> dict[str, bool]:
    """What a trace's settings say of those that are off."""
    found = {"forward_backward_links": forward_backward_links, "concrete_inputs": concrete_inputs}
    return {name: value for name, value in found.items() if not value}
