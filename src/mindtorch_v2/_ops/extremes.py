"""The largest and smallest elements and their indices, of all elements or along dimensions."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _dispatch, _op_errors, return_types
from .._dispatch import composite, function, op, unalias
from . import _dims, _lanes
from ._namespace import functions as F
from ._reduction import reduce_array


def _check_nonempty(array: np.ndarray, name: str) -> None:
    if array.size == 0:
        raise RuntimeError(
            f"{name}(): Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim with the 'dim' argument."
        )


def _check_nonempty_dim(array: np.ndarray, dim: int, name: str) -> None:
    if array.ndim and array.shape[dim] == 0:
        raise IndexError(f"{name}(): Expected reduction dim {dim} to have non-zero size.")


def _check_ordered(array: np.ndarray, name: str) -> None:
    if array.dtype.kind in "cW":
        raise RuntimeError(f"{name}(): does not support complex input")


def _full_extreme(aten_name: str, ufunc: Any) -> Any:
    name = aten_name.removeprefix("aten::")

    @op(f"{aten_name}(Tensor self) -> Tensor", expose="no", node=f"{name.capitalize()}Backward1")
    def extreme(self: np.ndarray) -> Any:
        _check_nonempty(self, name)
        if self.dtype.kind in "cW":
            raise _op_errors.not_implemented(f"{name}_all", self)
        found = _lanes.extremes(ufunc, self, None, False)
        return ufunc.reduce(self, axis=None) if found is None else found

    extreme.derivative(self=share_evenly)
    return extreme


def share_evenly(g: Any, self: Any, out: Any) -> Any:
    """The gradient of a full max or min, shared evenly by all elements equal to it."""
    mask = F.isnan(self) if F.isnan(out).item() else self == out
    return g.new_zeros(self.shape).masked_fill_(mask, g / mask.sum())


max_all = _full_extreme("aten::max", np.maximum)
min_all = _full_extreme("aten::min", np.minimum)


def _take(array: np.ndarray, places: np.ndarray, dim: int, keepdim: bool) -> tuple[np.ndarray, np.ndarray]:
    if not array.ndim:
        return array.copy(), np.zeros((), np.int64)
    spread = np.expand_dims(places, dim)
    values = np.take_along_axis(array, spread, dim)
    return (values, spread) if keepdim else (np.squeeze(values, dim), places)


def _dim_extreme(aten_name: str, chooser: Any) -> Any:
    name = aten_name.removeprefix("aten::").removesuffix(".dim")

    @op(
        f"{aten_name}(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
        expose="no",
        returns=getattr(return_types, name),
        node=f"{name.capitalize()}Backward0",
    )
    def extreme(self: np.ndarray, dim: int, keepdim: bool) -> Any:
        dim = _dims.one(dim, self.ndim)
        _check_nonempty_dim(self, dim, name)
        _check_ordered(self, name)
        return _take(self, chooser(self, dim) if self.ndim else None, dim, keepdim)

    extreme.derivative(
        self=lambda g, dim, indices, self_shape, keepdim: F.value_selecting_reduction_backward(
            g, dim, indices, self_shape, keepdim
        )
    )
    return extreme


def _argmax(array: np.ndarray, dim: Any) -> np.ndarray:
    return np.argmax(array, dim) if array.dtype.kind != "V" else np.argmax(array.astype(np.float32), dim)


def _argmin(array: np.ndarray, dim: Any) -> np.ndarray:
    return np.argmin(array, dim) if array.dtype.kind != "V" else np.argmin(array.astype(np.float32), dim)


max_dim = _dim_extreme("aten::max.dim", _argmax)
min_dim = _dim_extreme("aten::min.dim", _argmin)


@composite(
    "aten::value_selecting_reduction_backward(Tensor grad, int dim, Tensor indices, SymInt[] sizes, bool keepdim) -> Tensor",
    expose="no",
)
def value_selecting_reduction_backward(grad: Any, dim: int, indices: Any, sizes: Any, keepdim: bool) -> Any:
    if not keepdim and sizes:
        grad, indices = grad.unsqueeze(dim), indices.unsqueeze(dim)
    return F.scatter_(F.zeros(sizes, dtype=grad.dtype), dim, indices, grad)


def _extreme_front(aten_name: str, whole: Any, along: Any, pairwise: str) -> None:
    name = aten_name.removeprefix("aten::").removesuffix(".other")

    @composite(f"{aten_name}(Tensor self, Tensor other) -> Tensor", expose="no")
    def of_two(self: Any, other: Any) -> Any:
        return getattr(F, pairwise)(self, other)

    def front(
        input: Any,
        dim: Any = None,
        keepdim: bool = False,
        *,
        out: Any = None,
        other: Any = None,
        **aliases: Any,
    ) -> Any:
        if aliases:
            return unalias(front, aliases, input=input, dim=dim, keepdim=keepdim, out=out)
        if dim is None and other is None:
            extreme = whole(input)
        elif other is not None or isinstance(dim, _dispatch.Tensor):
            chosen = of_two if out is None else getattr(F, pairwise)
            second = dim if other is None else other
            return chosen(input, second) if out is None else chosen(input, second, out=out)
        else:
            return (
                along(input, dim, keepdim) if out is None else _dispatch.made(along, out, input, dim, keepdim)
            )
        return _dispatch.into_out(extreme, out)

    front.__name__ = name
    front.__doc__ = f"The {name}imum of all elements, along a dimension (with its places), or of two tensors."
    function(name)(front)


_extreme_front("aten::max.other", max_all, max_dim, "maximum")
_extreme_front("aten::min.other", min_all, min_dim, "minimum")


def _amax_like(aten_name: str, ufunc: Any) -> Any:
    name = aten_name.removeprefix("aten::")

    @op(f"{aten_name}(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor", out=True)
    def extreme(self: np.ndarray, dim: Any, keepdim: bool) -> Any:
        dims = _dims.many(dim, self.ndim)
        if self.size == 0:
            if not dim:
                _check_nonempty(self, name)
            for requested, d in zip(dim, dims):
                if self.shape[d] == 0:
                    raise IndexError(f"{name}(): Expected reduction dim {requested} to have non-zero size.")
        if self.dtype.kind in "cW":
            raise _op_errors.not_implemented(f"{name[1:]}_values_cpu", self)
        found = _lanes.extremes(ufunc, self, dims, keepdim)
        return reduce_array(ufunc, self, dims, keepdim) if found is None else found

    extreme.derivative(
        self=lambda g, self, out, dim, keepdim, self_shape: _shared_extreme(
            g, self, out, dim, keepdim, self_shape
        )
    )
    return extreme


def _shared_extreme(
    g: Any, self: Any, out: Any, dim: Any, keepdim: bool, self_shape: Any, swapped: bool = False
) -> Any:
    dims = _dims.many(dim, len(self_shape))
    if not keepdim and self_shape:
        shape = [1 if d in dims else n for d, n in enumerate(self_shape)]
        g, out = g.reshape(shape), out.reshape(shape)
    mask = self == out if swapped else out == self
    return (g / mask.sum(dims, True)) * mask


amax = _amax_like("aten::amax", np.maximum)
amin = _amax_like("aten::amin", np.minimum)


@op(
    "aten::aminmax(Tensor self, *, int? dim=None, bool keepdim=False) -> (Tensor min, Tensor max)",
    returns=return_types.aminmax,
    out=True,
)
def aminmax(self: np.ndarray, dim: Any, keepdim: bool) -> Any:
    axis = None if dim is None else _dims.one(dim, self.ndim)
    if not self.ndim:
        axis = None
    if self.size == 0:
        if dim is None:
            raise RuntimeError(
                "aminmax(): cannot compute aminmax over an empty dimension as the operation has no identity."
            )
        if self.shape[axis] == 0:
            raise IndexError(f"aminmax: Expected reduction dim {axis} to have non-zero size.")
    if self.dtype.kind in "cW":
        raise _op_errors.not_implemented("aminmax_cpu", self)
    return reduce_array(np.minimum, self, axis, keepdim), reduce_array(np.maximum, self, axis, keepdim)


@aminmax.backward("self")
def _(grads: Any, self: Any, result0: Any, result1: Any, dim: Any, keepdim: bool, self_shape: Any) -> Any:
    dims = () if dim is None else (dim,)
    gradient = None
    for g, out in zip(grads, (result0, result1)):
        if g is not None:
            part = _shared_extreme(g, self, out, dims, keepdim, self_shape, True)
            gradient = part if gradient is None else gradient + part
    return (gradient,)


def _arg_extreme(aten_name: str, chooser: Any) -> Any:
    name = aten_name.removeprefix("aten::")

    @op(
        f"{aten_name}(Tensor self, int? dim=None, bool keepdim=False) -> Tensor",
        nondifferentiable=True,
        out=True,
    )
    def places(self: np.ndarray, dim: Any, keepdim: bool) -> Any:
        _check_ordered(self, name)
        if self.dtype.kind == "b":
            raise RuntimeError(f"{name}(): does not support bool input")
        if dim is None:
            if self.size == 0:
                raise IndexError(f"{name}(): Expected reduction dim to be specified for input.numel() == 0.")
            index = chooser(self, None)
            return np.full((1,) * self.ndim, index, np.int64) if keepdim else np.int64(index)
        dim = _dims.one(dim, self.ndim)
        if not self.ndim:
            return np.zeros((), np.int64)
        _check_nonempty_dim(self, dim, name)
        index = chooser(self, dim)
        return np.expand_dims(index, dim) if keepdim else index

    return places


argmax = _arg_extreme("aten::argmax", _argmax)
argmin = _arg_extreme("aten::argmin", _argmin)
