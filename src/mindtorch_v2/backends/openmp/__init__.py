"""torch.backends.openmp: this package starts no OpenMP threads."""

__all__ = ["is_available"]


def is_available() -> bool:
    """Whether the package was built with OpenMP: no."""
    return False
