"""torch.qscheme: the names of ways to quantize, which observers and quantizers carry about. There are no quantized tensors here."""

from __future__ import annotations

from typing import Any

__all__ = [
    "per_channel_affine", "per_channel_affine_float_qparams", "per_channel_symmetric", "per_tensor_affine", "per_tensor_symmetric", "qscheme",
]  # fmt: skip


class qscheme:
    """A way to quantize: per tensor or per channel, affine or symmetric."""

    _name: str
    __slots__ = ("_name",)

    def __new__(cls) -> qscheme:
        raise TypeError("cannot create 'torch.qscheme' instances")

    def __repr__(self) -> str:
        return f"torch.{self._name}"

    def __reduce__(self) -> tuple[Any, ...]:
        return _by_name, (self._name,)

    def __copy__(self) -> qscheme:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> qscheme:
        return self


def _scheme(name: str) -> qscheme:
    scheme: qscheme = object.__new__(qscheme)
    scheme._name = name
    return scheme


per_tensor_affine = _scheme("per_tensor_affine")
per_channel_affine = _scheme("per_channel_affine")
per_tensor_symmetric = _scheme("per_tensor_symmetric")
per_channel_symmetric = _scheme("per_channel_symmetric")
per_channel_affine_float_qparams = _scheme("per_channel_affine_float_qparams")


def _by_name(name: str) -> qscheme:
    """A scheme by its name: what a pickled one is."""
    scheme: qscheme = globals()[name]
    return scheme
