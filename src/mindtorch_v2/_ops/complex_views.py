"""Views of complex tensors as pairs of real numbers, and back."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _dispatch, _dtype
from .._dispatch import composite, view
from ._namespace import functions as F
from .slicing import select


@view("aten::view_as_real(Tensor(a) self) -> Tensor(a)", expose="function")
def view_as_real(self: np.ndarray) -> np.ndarray:
    if not _dtype.BY_NUM[self.dtype.num].is_complex:
        raise RuntimeError("view_as_real is only supported for complex tensors")
    half = np.dtype(f"f{self.itemsize // 2}")
    if self.flags.c_contiguous:
        return self.reshape((*self.shape, 1)).view(half)
    if self.dtype.kind == "c":
        return np.lib.stride_tricks.as_strided(self.real, (*self.shape, 2), (*self.strides, half.itemsize))
    words = self.view(np.uint32)  # complex32 has no view of its real parts
    return np.lib.stride_tricks.as_strided(words, (*self.shape, 1), (*self.strides, 4)).view(half)


view_as_real.derivative(self=lambda g: F.view_as_complex(F.contiguous(g)))


@view("aten::view_as_complex(Tensor(a) self) -> Tensor(a)", expose="function")
def view_as_complex(self: np.ndarray) -> np.ndarray:
    if self.dtype.kind != "f":
        kind = _dtype.BY_NUM[self.dtype.num]._abbr
        raise RuntimeError(
            "view_as_complex is only supported for half, float and double tensors, but got a tensor of "
            f"scalar type: {kind}"
        )
    if self.ndim == 0:
        raise RuntimeError("Input tensor must have one or more dimensions")
    if self.shape[-1] != 2:
        raise RuntimeError("Tensor must have a last dimension of size 2")
    if self.strides[-1] != self.itemsize and self.size:
        raise RuntimeError("Tensor must have a last dimension with stride 1")
    for step in self.strides[:-1]:
        if step // self.itemsize % 2 and self.size:
            raise RuntimeError("Tensor must have a stride divisible by 2 for all but last dimension")
    return self.view(_dtype.BY_NUM[self.dtype.num].to_complex()._np)[..., 0]


view_as_complex.derivative(self=lambda g: view_as_real(F.resolve_conj(g)))


@composite("aten::real(Tensor(a) self) -> Tensor(a)", expose="function")
def real(self: Any) -> Any:
    if self.dtype._rank < 3:
        return self
    return select(view_as_real(self), self.ndim, 0)


@composite("aten::imag(Tensor(a) self) -> Tensor(a)", expose="function")
def imag(self: Any) -> Any:
    if self.dtype._rank < 3:
        raise RuntimeError("imag is not implemented for tensors with non-complex dtypes.")
    return select(view_as_real(self), self.ndim, 1)


def _set_real(self: Any, value: Any) -> None:
    real(self).copy_(value)


def _set_imag(self: Any, value: Any) -> None:
    imag(self).copy_(value)


_dispatch.METHODS["real"] = property(real, _set_real, doc="The real parts, as a view.")
_dispatch.METHODS["imag"] = property(imag, _set_imag, doc="The imaginary parts, as a view.")
