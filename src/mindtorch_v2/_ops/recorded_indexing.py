"""What torch's index kernels show inside while something records: an op's arguments in, its result out.

The places are restrided over the tensor that is written, which is made to be seen and dropped: the work is that of the op's own
kernel. What reading and writing with index tensors shows is in `indexing`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .._dispatch import OPS, storage_of
from . import _dims, _shown, index_along_dim, scatter  # noqa: F401  (what is told about here has to be declared)
from ._namespace import functions as F
from .shape import as_strided


def written(name: str) -> Any:
    """Decorator: what `name_` shows before it writes."""
    op = OPS[name].inplace  # type: ignore[attr-defined]

    def declare(shown: Any) -> Any:
        def body(self: Any, *arguments: Any) -> Any:
            shown(self, *arguments)
            _write(op, self, self, *arguments)
            return self

        op.recorded(body)
        return shown

    return declare


def _write(op: Any, target: Any, *arguments: Any) -> None:
    arrays = [getattr(value, "_array", value) for value in arguments]
    op.kernel(*arrays, out=target._array)
    storage_of(target)._version += 1


def _copied(name: str, shown: Any) -> None:
    """What `name` shows: a copy of self that is written to."""
    op = OPS[name]

    def body(self: Any, *arguments: Any) -> Any:
        made = _shown.kernel_of(op.entry, self, *arguments)
        target = _shown.blank(self)
        F.copy_(target, self)
        shown(target, *arguments)
        np.copyto(target._array, made._array)
        return target

    op.recorded(body)


# ---------------------------------------------------------------------------------------- along a dimension


def _along(self: Any, dim: int, index: Any, *_: Any) -> None:
    """The places, and the tensor with no step along the dimension they are for."""
    if not self.ndim:
        return
    d, count = _dims.one(dim, self.ndim), index.numel()
    as_strided(
        index, _at(d, self.ndim, count, 1), _at(d, self.ndim, index.stride(0) if index.ndim else 0, 0), None
    )
    size, steps = list(self.shape), list(self.stride())
    size[d], steps[d] = count, 0
    as_strided(self, tuple(size), tuple(steps), None)


def _at(d: int, ndim: int, value: int, others: int) -> tuple:
    return (*[others] * d, value, *[others] * (ndim - d - 1))


written("index_fill.int_Scalar")(_along)
written("index_copy")(_along)
_copied("index_copy", _along)


def _filled_with_tensor() -> None:
    op = OPS["index_fill.int_Tensor"].inplace  # type: ignore[attr-defined]
    fill_ = OPS["index_fill.int_Scalar"].inplace.entry  # type: ignore[attr-defined]

    @op.recorded
    def _(self: Any, dim: int, index: Any, value: Any) -> Any:
        if value.ndim or self.dtype.is_complex != value.dtype.is_complex:
            _write(op, self, self, dim, index, value)
            return self
        return fill_(self, dim, index, value.item())


_filled_with_tensor()


def _added(self: Any, dim: int, index: Any, source: Any, alpha: Any) -> None:
    if self.ndim < 2:
        return
    d = _dims.one(dim, self.ndim)
    if alpha == 1 and d in (0, self.ndim - 1):
        places = as_strided(
            index, tuple(source.shape), _at(d, self.ndim, index.stride(0) if index.ndim else 0, 0), None
        )
        F.scatter_add_(self, d, places, source)
    elif index.numel():
        F.select(self, d, 0)
        F.select(source, d, 0)


_copied("index_add", _added)


@written("put")
def _(self: Any, index: Any, source: Any, accumulate: bool) -> None:
    F.reshape(index, tuple(index.shape))
