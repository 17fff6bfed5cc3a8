"""The number of threads of kernels: read and set through the functions of NumPy's BLAS library."""

from __future__ import annotations

import ctypes
import functools
import os
from pathlib import Path
from typing import Any

_interop: int | None = None


@functools.cache
def _blas() -> tuple[Any, Any] | None:
    """(get, set) of NumPy's OpenBLAS, or None where it cannot be found."""
    import numpy as np

    home = Path(np.__file__).parent
    for folder in (home.parent / "numpy.libs", home / ".libs", home / ".dylibs"):
        for path in sorted(folder.glob("*openblas*")):
            try:
                library = ctypes.CDLL(str(path))
            except OSError:
                continue
            for prefix, suffix in (("scipy_openblas_", "64_"), ("openblas_", "64_"), ("openblas_", "")):
                getter = getattr(library, f"{prefix}get_num_threads{suffix}", None)
                setter = getattr(library, f"{prefix}set_num_threads{suffix}", None)
                if getter is not None and setter is not None:
                    return getter, setter
    return None


def get_num_threads() -> int:
    """Threads used inside a kernel."""
    functions = _blas()
    return int(functions[0]()) if functions is not None else os.cpu_count() or 1


def set_num_threads(int: int, /) -> None:
    """Set how many threads a kernel may use."""
    if int.__class__ is bool or not hasattr(int, "__index__"):
        raise TypeError(f"set_num_threads expects an int, but got {type(int).__name__}")
    if int <= 0:
        raise RuntimeError("set_num_threads expects a positive integer")
    functions = _blas()
    if functions is not None:
        functions[1](ctypes.c_int(int))


def get_num_interop_threads() -> int:
    """Threads that run ops beside each other: ops run one after another here, unless the program has threads of its own."""
    return _interop or 1


def set_num_interop_threads(int: int, /) -> None:
    """Kept for programs that set it once at their start."""
    global _interop
    if int <= 0:
        raise RuntimeError("set_num_interop_threads expects a positive integer")
    if _interop is not None:
        raise RuntimeError(
            "Error: cannot set number of interop threads after parallel work has started or set_num_interop_threads called"
        )
    _interop = int
