"""torch.backends.cpu: the processor's capabilities, as detected by NumPy."""

from __future__ import annotations

import functools
from typing import Any

__all__ = ["get_cpu_capability"]


@functools.lru_cache(maxsize=1)
def get_cpu_capability() -> str:
    """The widest vector instructions in use, in torch's terms: DEFAULT, AVX2 or AVX512."""
    features = vector_extensions()
    if features & {"AVX512_SKX", "X86_V4"}:
        return "AVX512"
    if features & {"AVX2", "X86_V3"}:
        return "AVX2"
    return "DEFAULT"


def vector_extensions() -> frozenset[str]:
    """The names of the vector instructions NumPy uses on this processor."""
    import numpy as np

    config: Any = np.show_config(mode="dicts")
    found = config["SIMD Extensions"]
    return frozenset(found.get("baseline", ())) | frozenset(found.get("found", ()))
