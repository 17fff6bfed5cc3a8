"""torch.backends: flags of libraries that torch may use. They can be set and read; none changes a result."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from . import cpu, cuda, cudnn, mha, mkl, mkldnn, mps, nnpack, openmp, opt_einsum, quantized

__all__ = [
    "cpu",
    "cuda",
    "cudnn",
    "mha",
    "mkl",
    "mkldnn",
    "mps",
    "nnpack",
    "openmp",
    "opt_einsum",
    "quantized",
]

fp32_precision: str = "none"


def set_flags(_fp32_precision: str = "none") -> tuple[str]:
    """Set the precision of float32 products; returns the previous one."""
    global fp32_precision
    before = (fp32_precision,)
    fp32_precision = _fp32_precision
    return before


@contextlib.contextmanager
def flags(fp32_precision: str = "none") -> Iterator[None]:
    """Context manager: another precision of float32 products."""
    before = set_flags(fp32_precision)
    try:
        yield
    finally:
        set_flags(*before)


@contextlib.contextmanager
def __allow_nonbracketed_mutation() -> Iterator[None]:
    """Context manager in which flags may be set. They may be anywhere: there is no `disable_global_flags`."""
    yield
