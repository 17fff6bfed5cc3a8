"""What torch's kernels show of their own bookkeeping while something records: tensors in, views and buffers made and dropped.

Only bodies of `op.recorded` call these: without a recorder no op runs them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _dispatch, _dtype
from .._dispatch import composite, op, storage_of, wrap
from ._namespace import functions as F


def squeezed(*tensors: Any) -> None:
    """Kernels that walk over several tensors at once squeeze them first."""
    for tensor in tensors:
        F.squeeze(tensor)


def empty_buffer(dtype: Any) -> None:
    """An output that is given its size later."""
    F.empty((0,), dtype=dtype)


def blank(like: Any) -> Any:
    """Memory for a result of this shape and dtype, which no op is seen to take."""
    return wrap(np.empty(like._array.shape, like._array.dtype))


def dense(tensor: Any) -> None:
    """A copy of what is not contiguous."""
    if not tensor._array.flags.c_contiguous:
        F.contiguous(tensor)


@op("aten::resize_.shown(Tensor self, SymInt[] size, *, MemoryFormat? memory_format=None) -> Tensor", expose="no", on="tensors",
    nondifferentiable=True)  # fmt: skip
def given_size(self: Any, size: Any, memory_format: Any) -> Any:
    return wrap(np.empty(size, self._array.dtype))


@op("aten::resize_as_.shown(Tensor self, Tensor the_template, *, MemoryFormat? memory_format=None) -> Tensor", expose="no",
    on="tensors", nondifferentiable=True)  # fmt: skip
def sized_as(self: Any, the_template: Any, memory_format: Any) -> Any:
    return given_size(self, tuple(the_template.shape))


@composite(
    "aten::resize_.kept(Tensor self, SymInt[] size, *, MemoryFormat? memory_format=None) -> Tensor",
    expose="no",
)
def kept_size(self: Any, size: Any, memory_format: Any) -> Any:
    """A change of size that needs no new memory."""
    return self


@composite("aten::resize_as_.kept(Tensor self, Tensor the_template, *, MemoryFormat? memory_format=None) -> Tensor",
           expose="no")  # fmt: skip
def kept_size_as(self: Any, the_template: Any, memory_format: Any) -> Any:
    return kept_size(self, tuple(the_template.shape))


def zeros_like(tensor: Any) -> Any:
    """Zeros as torch's own code makes them."""
    return _dispatch.OPS["zeros_like"].entry(tensor, memory_format=_dtype.contiguous_format)


def zeros(shape: Any, dtype: Any) -> Any:
    """Zeros of a shape as torch's own code makes them."""
    if _dispatch.recorder is None:
        return wrap(np.zeros(shape, dtype._np))
    return _zeros(tuple(shape), dtype=dtype)


@composite(
    "aten::zeros.shown(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
    "bool? pin_memory=None) -> Tensor",
    expose="no",
)
def _zeros(size: Any, dtype: Any, layout: Any, device: Any, pin_memory: Any) -> Any:
    return F.zero_(F.empty(size, dtype=dtype))


def ones(shape: Any, dtype: Any) -> Any:
    """Ones of a shape as torch's own code makes them."""
    if _dispatch.recorder is None:
        return wrap(np.ones(shape, dtype._np))
    return _ones(tuple(shape), dtype=dtype)


@composite(
    "aten::ones.shown(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
    "bool? pin_memory=None) -> Tensor",
    expose="no",
)
def _ones(size: Any, dtype: Any, layout: Any, device: Any, pin_memory: Any) -> Any:
    return F.fill_(F.empty(size, dtype=dtype), 1)


def full(shape: Any, value: Any, dtype: Any) -> Any:
    """A tensor of one number as torch's own code makes it."""
    if _dispatch.recorder is None:
        return wrap(np.full(shape, value, dtype._np))
    return _full(tuple(shape), value, dtype=dtype)


@composite(
    "aten::full.shown(SymInt[] size, Scalar fill_value, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
    "bool? pin_memory=None) -> Tensor",
    expose="no",
)
def _full(size: Any, fill_value: Any, dtype: Any, layout: Any, device: Any, pin_memory: Any) -> Any:
    return F.fill_(F.empty(size, dtype=dtype), fill_value)


def ones_like(tensor: Any) -> Any:
    """Ones as torch's own code makes them."""
    return _dispatch.OPS["ones_like"].entry(tensor, memory_format=_dtype.contiguous_format)


@composite("aten::result_type.Tensor(Tensor tensor, Tensor other) -> ScalarType", expose="no")
def result_type(tensor: Any, other: Any) -> Any:
    return tensor.dtype if tensor.dtype is other.dtype else F.result_type(tensor, other)


def resized(shape: Any, dtype: Any) -> Any:
    """An output that is made without a size and gets it then: its memory is taken by `resize_`."""
    return given_size(F.empty((0,), dtype=dtype), tuple(shape))


def one_minus(tensor: Any, one: Any = 1) -> Any:
    """`1 - tensor` as torch's own code writes it."""
    if _dispatch.recorder is None:
        return one - tensor
    return F.sub_(
        F.fill_(_dispatch.OPS["empty_like"].entry(tensor, memory_format=_dtype.preserve_format), one), tensor
    )


def cast(tensor: Any, dtype: Any) -> Any:
    """`tensor.to(dtype)`, which changes nothing most of the time and is then only called to be seen."""
    if tensor.dtype is dtype and _dispatch.recorder is None:
        return tensor
    return tensor.to(dtype)


def writer(text: str, kernel: Any, flops: Any = None) -> Any:
    """Declare an `out=` overload, its last argument the tensor that takes the result of `kernel` (arrays in, array out).

    Where the schema returns a plain `Tensor`, the last argument is an output without a size, and the result a new tensor; such an op
    is not listed, since it has the name of one that writes.
    """
    fresh = text.endswith("-> Tensor")

    def body(*arguments: Any) -> Any:
        *given, out = arguments
        if fresh:
            return wrap(np.asarray(kernel(*[getattr(value, "_array", value) for value in given])))
        out._array[...] = kernel(*[getattr(value, "_array", value) for value in given])
        storage_of(out)._version += 1
        return out

    listed = not fresh and text.partition("::")[2].partition("(")[0] not in _dispatch.OPS
    declared = op(text, expose="no", on="tensors", nondifferentiable=True, flops=flops, listed=listed)(body)
    return lambda *arguments: _dispatch.record(declared.op, *arguments)


def _late(text: str, kernel: Any, flops: Any = None) -> Any:
    """`writer`, declared when first called."""
    made: list[Any] = []

    def call(*arguments: Any) -> Any:
        if not made:
            made.append(writer(text, kernel, flops))
        return made[0](*arguments)

    return call


abs_into = _late("aten::abs.out(Tensor self, *, Tensor out) -> Tensor(a!)", np.abs)
maximum_into = _late("aten::maximum.out(Tensor self, Tensor other, *, Tensor out) -> Tensor(a!)", np.maximum)
neg_into_new = _late("aten::neg.out(Tensor self, *, Tensor out) -> Tensor", np.negative)
mul_into_new = _late(
    "aten::mul.out(Tensor self, Tensor other, *, Tensor out) -> Tensor",
    np.multiply,
    lambda self, other, out: self._array.size,
)
sigmoid_into = _late(
    "aten::sigmoid.out(Tensor self, *, Tensor out) -> Tensor(a!)", lambda x: 1 / (1 + np.exp(-x))
)


def kernel_of(entry: Any, *arguments: Any) -> Any:
    """The result of an op's own kernel, as a new tensor: the work itself, of which nothing is shown."""
    made = entry.op.kernel(
        *[
            [getattr(item, "_array", item) for item in value]
            if value.__class__ is list
            else getattr(value, "_array", value)
            for value in arguments
        ]
    )
    if isinstance(made, tuple):
        return tuple([wrap(np.asarray(part)) for part in made])
    return wrap(np.asarray(made))


BOOL = _dtype.bool_
