"""Whether all or any elements are true, and how many are not zero; of all elements or along dimensions."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _dispatch
from .._dispatch import function, op, unalias
from . import _dims
from ._namespace import functions as F
from ._reduction import reduce_array


def _quantifier(aten_name: str, ufunc: Any) -> None:
    name = aten_name.removeprefix("aten::")

    def result(self: np.ndarray, dims: Any, keepdim: bool) -> Any:
        truths = reduce_array(ufunc, self.astype(bool, copy=False), dims, keepdim)
        return truths if self.dtype != np.uint8 else np.asarray(truths).astype(np.uint8)

    @op(f"{aten_name}(Tensor self) -> Tensor", expose="no", nondifferentiable=True)
    def whole(self: np.ndarray) -> Any:
        return result(self, None, False)

    @op(
        f"{aten_name}.dim(Tensor self, int dim, bool keepdim=False) -> Tensor",
        expose="no",
        nondifferentiable=True,
    )
    def along(self: np.ndarray, dim: int, keepdim: bool) -> Any:
        return result(self, _dims.many((dim,), self.ndim), keepdim)

    @op(
        f"{aten_name}.dims(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor",
        expose="no",
        nondifferentiable=True,
    )
    def along_many(self: np.ndarray, dim: Any, keepdim: bool) -> Any:
        if dim == ():  # an empty tuple reduces no dimension; None reduces all
            return result(self, (), keepdim)
        return result(self, _dims.many(dim, self.ndim), keepdim)

    def front(input: Any, dim: Any = None, keepdim: bool = False, *, out: Any = None, **aliases: Any) -> Any:
        if aliases:
            return unalias(front, aliases, input=input, dim=dim, keepdim=keepdim, out=out)
        if dim is None and not keepdim:
            return whole(input) if out is None else _dispatch.made(whole, out, input)
        chosen = along if isinstance(dim, int) else along_many
        return (
            chosen(input, dim, keepdim) if out is None else _dispatch.made(chosen, out, input, dim, keepdim)
        )

    front.__name__ = name
    front.__doc__ = f"Whether {name} elements are true, of all or along dimensions."
    function(name)(front)


_quantifier("aten::all", np.logical_and)
_quantifier("aten::any", np.logical_or)


@op("aten::_is_all_true(Tensor self) -> Tensor", expose="function", on="tensors", nondifferentiable=True)
def _is_all_true(self: Any) -> Any:
    return F.all(self)


@op(
    "aten::count_nonzero.dim_IntList(Tensor self, int[] dim) -> Tensor",
    expose="no",
    on="tensors",
    nondifferentiable=True,
)
def count_nonzero_op(self: Any, dim: Any) -> Any:
    if dim:
        return F.sum(F.ne(self, 0), dim)
    return _dispatch.wrap(np.asarray(np.count_nonzero(self._array)))


@function()
def count_nonzero(input: Any, dim: Any = None, **aliases: Any) -> Any:
    """How many elements are not zero."""
    if aliases:
        return unalias(count_nonzero, aliases, input=input, dim=dim)
    return count_nonzero_op(input, () if dim is None else dim)
