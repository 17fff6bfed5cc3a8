"""Control of NVIDIA's own profiler: raises without CUDA. Ours is `torch.profiler`."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import NoReturn

from ._absent import no_cuda

__all__ = ["start", "stop", "profile"]


def start() -> NoReturn:
    """Raises: there is no CUDA."""
    raise no_cuda()


def stop() -> NoReturn:
    """Raises: there is no CUDA."""
    raise no_cuda()


@contextlib.contextmanager
def profile() -> Iterator[None]:
    """Context manager: profile a block. Raises on entry: there is no CUDA."""
    start()
    yield
