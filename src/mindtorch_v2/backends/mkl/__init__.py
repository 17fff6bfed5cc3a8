"""torch.backends.mkl: Intel's library, which this package does not call directly."""

from __future__ import annotations

__all__ = ["is_available", "verbose", "VERBOSE_OFF", "VERBOSE_ON"]

VERBOSE_OFF = 0
VERBOSE_ON = 1


def is_available() -> bool:
    """Whether the package was built with MKL: no; NumPy brings its own BLAS."""
    return False


class verbose:
    """Context manager: verbose MKL. Turning it on raises, because there is no MKL."""

    def __init__(self, enable: int) -> None:
        self.enable = enable

    def __enter__(self) -> verbose | None:
        if self.enable == VERBOSE_OFF:
            return None
        raise RuntimeError("MKL verbose mode cannot be switched on: this package was built without MKL")

    def __exit__(self, *exception: object) -> None:
        return None
