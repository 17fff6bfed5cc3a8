"""CUDA streams and events: classes for type checks and annotations; constructing one raises."""

from __future__ import annotations

from typing import Any, NoReturn

from ._absent import no_base

__all__ = ["Event", "ExternalStream", "Stream"]


class Stream:
    """A CUDA stream; cannot be built without CUDA."""

    def __new__(cls, device: Any = None, priority: int = 0, **kwargs: Any) -> NoReturn:
        raise RuntimeError("torch.cuda.Stream requires CUDA support")


class ExternalStream(Stream):
    """A CUDA stream made elsewhere; cannot be built without CUDA."""

    def __new__(cls, stream_ptr: int, device: Any = None, **kwargs: Any) -> NoReturn:
        raise RuntimeError("torch.cuda.Stream requires CUDA support")


class Event:
    """A CUDA event; cannot be built without CUDA."""

    def __new__(
        cls,
        enable_timing: bool = False,
        blocking: bool = False,
        interprocess: bool = False,
        external: bool = False,
    ) -> NoReturn:
        raise no_base("Event")
