"""Whether CUDA mixed precision is available: no."""

__all__ = ["amp_definitely_not_available"]


def amp_definitely_not_available() -> bool:
    """True: there is no CUDA."""
    return True
