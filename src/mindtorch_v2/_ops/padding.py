"""Padding of the last dimensions: constant, reflection, replication, circular.

Pads come in pairs (before, after) from the last dimension on; a negative one crops. Each fill is a few slice copies of a whole array.
"""

from __future__ import annotations

import functools
import operator
from typing import Any

import numpy as np

from .._dispatch import composite, op
from .._dtype import BY_NUM
from ._accumulate import add_rows
from ._children import Child, clone, copy_, dtype_number, empty, fill_, narrow, tensor
from ._double_backward import zeros_of
from ._layout import copied, is_channels_last
from ._namespace import functions as F


def _new(shape: tuple, like: np.ndarray, dtype: Any = None) -> np.ndarray:
    """Uninitialised memory of a shape; channels are innermost where they are in `like`."""
    if not is_channels_last(like):
        return np.empty(shape, dtype or like.dtype)
    array = np.empty((shape[0], *shape[2:], shape[1]), dtype or like.dtype)
    return np.moveaxis(array, -1, 1)


# ---------------------------------------------------------------------------------------------------- constant


def _check_constant(shape: tuple, pad: tuple) -> None:
    if len(pad) % 2:
        raise RuntimeError(f"Length of pad must be even but instead it equals {len(pad)}")
    if len(pad) > 2 * len(shape):
        raise RuntimeError(
            "Length of pad should be no more than twice the number of dimensions of the input. "
            f"Pad length is {len(pad)}while the input has {len(shape)}dimensions."
        )
    for k in range(len(pad) // 2):
        before, after, n = pad[2 * k], pad[2 * k + 1], shape[-1 - k]
        if n + min(before, 0) < 0 or n + min(before, 0) + min(after, 0) < 0:
            raise RuntimeError("narrow(): length must be non-negative.")


@op("aten::constant_pad_nd(Tensor self, SymInt[] pad, Scalar value=0) -> Tensor", expose="function")
def constant_pad_nd(self: np.ndarray, pad: tuple, value: Any) -> np.ndarray:
    _check_constant(self.shape, pad)
    inner: list[Any] = [slice(None)] * self.ndim
    outer: list[Any] = [slice(None)] * self.ndim
    shape, grows = list(self.shape), False
    for k in range(len(pad) // 2):
        before, after, d = pad[2 * k], pad[2 * k + 1], self.ndim - 1 - k
        n = self.shape[d]
        shape[d] = n + before + after
        inner[d] = slice(max(-before, 0), n - max(-after, 0))
        outer[d] = slice(max(before, 0), shape[d] - max(after, 0))
        grows = grows or before > 0 or after > 0
    part = self[tuple(inner)]
    if not grows:
        return copied(part)
    padded = _new(tuple(shape), self)
    if value == 0:
        padded[...] = 0
    else:
        padded.fill(_as(value, self.dtype))
    padded[tuple(outer)] = part
    return padded


def _as(value: Any, dtype: np.dtype) -> Any:
    """A number cast to `dtype` as C does."""
    return int(value) if dtype.kind in "iu" else value


@constant_pad_nd.children
def _(self: Any, pad: Any, value: Any) -> Any:
    """The input is cropped by views and copied into a view of a filled tensor."""
    dims = len(self.shape)
    pairs = [(dims - 1 - k, pad[2 * k], pad[2 * k + 1]) for k in reversed(range(len(pad) // 2))]
    inside: list[Child] = []

    def cropped(x: Any, sign: int) -> Any:
        for d, before, after in pairs:
            for cut, start in ((sign * before, sign * before), (sign * after, 0)):
                if cut > 0:
                    inside.append(narrow(x, d, start, x.shape[d] - cut))
                    x = x._replace(shape=(*x.shape[:d], x.shape[d] - cut, *x.shape[d + 1 :]))
        return x

    part = cropped(self, -1)
    if all(p <= 0 for p in pad):
        return [*inside, clone(part)]
    sizes = {d: self.shape[d] + before + after for d, before, after in pairs}
    padded = tensor([sizes.get(d, self.shape[d]) for d in range(dims)], self)
    inside += [empty(padded.shape, dtype_number(self), memory_format=0), fill_(padded, value)]
    hole = cropped(padded, 1)
    return [*inside, copy_(hole, part)]


constant_pad_nd.derivative(self=lambda g, pad: constant_pad_nd(g, tuple([-p for p in pad]), 0))


# ---------------------------------------------------------------------------------------------------- reflection, replication

_KINDS = {1: "2D or 3D", 2: "3D or 4D", 3: "4D or 5D"}


def _check(name: str, reflects: bool, shape: tuple, padding: tuple, dims: int) -> None:
    if len(padding) != 2 * dims:
        raise RuntimeError(f"padding size is expected to be {2 * dims}, but got: {len(padding)}")
    if len(shape) not in (dims + 1, dims + 2) or 0 in shape[-dims - 1 :]:
        raise RuntimeError(
            f"Expected {_KINDS[dims]} (batch mode) tensor with possibly 0 batch size and other non-zero dimensions for input, "
            f"but got: {list(shape)}"
        )
    out = [n + padding[2 * k] + padding[2 * k + 1] for k, n in enumerate(reversed(shape[-dims:]))]
    if reflects:
        for k in range(dims):
            before, after, d = padding[2 * k], padding[2 * k + 1], len(shape) - 1 - k
            if before >= shape[d] or after >= shape[d]:
                raise RuntimeError(
                    f"Argument #{4 + 2 * k}: Padding size should be less than the corresponding input dimension, "
                    f"but got: padding ({before}, {after}) at dimension {d} of input {list(shape)}"
                )
    if max(out) < 1 or min(out) < 0:
        have = " ".join(f"{c}: {n}" for c, n in zip("DHW"[3 - dims :], shape[-dims:]))
        want = " ".join(f"{c}: {n}" for c, n in zip("DHW"[3 - dims :], reversed(out)))
        raise RuntimeError(f"input ({have}) is too small. Calculated output {want}")


_SMALL = 1024  # elements: up to so many, gathering takes less time than the copies of slices


@functools.lru_cache(256)
def _sources(n: int, before: int, after: int, reflects: bool) -> np.ndarray:
    """For each index of the output along one dimension, the index of the input that it copies."""
    places = np.arange(-before, n + after)
    if reflects:
        places = np.abs(places)
        places = np.where(places >= n, 2 * (n - 1) - places, places)
    else:
        places = np.minimum(np.maximum(places, 0), n - 1)
    places.flags.writeable = False
    return places


def _along(ndim: int, d: int, *bounds: Any) -> tuple:
    return (slice(None),) * d + (slice(*bounds),) + (slice(None),) * (ndim - 1 - d)


def pad_edges(x: np.ndarray, padding: tuple, reflects: bool) -> np.ndarray:
    """The input with its last dimensions continued by their mirror image, or by their last values."""
    ndim, dims = x.ndim, len(padding) // 2
    if x.size <= _SMALL or min(padding) < 0:
        gathered = x
        for k in range(dims):
            d = ndim - 1 - k
            gathered = gathered.take(_sources(x.shape[d], padding[2 * k], padding[2 * k + 1], reflects), d)
        if not is_channels_last(x):
            return gathered
        padded = _new(gathered.shape, x)
        np.copyto(padded, gathered)
        return padded
    shape = list(x.shape)
    middle: list[Any] = [slice(None)] * ndim
    for k in range(dims):
        d = ndim - 1 - k
        shape[d] += padding[2 * k] + padding[2 * k + 1]
        middle[d] = slice(padding[2 * k], padding[2 * k] + x.shape[d])
    padded = _new(tuple(shape), x)
    padded[tuple(middle)] = x
    for k in range(dims):
        d, before, after = ndim - 1 - k, padding[2 * k], padding[2 * k + 1]
        n = x.shape[d]
        end = before + n
        if before:
            source = (
                _along(ndim, d, 2 * before, before, -1) if reflects else _along(ndim, d, before, before + 1)
            )
            padded[_along(ndim, d, before)] = padded[source]
        if after:
            source = _along(ndim, d, end - 2, end - 2 - after if end - 2 >= after else None, -1)
            padded[_along(ndim, d, end, None)] = padded[source if reflects else _along(ndim, d, end - 1, end)]
    return padded


def pad_edges_gradient(g: np.ndarray, like: np.ndarray, padding: tuple, reflects: bool) -> np.ndarray:
    """The gradient of the input from that of the padded result."""
    ndim, dims = g.ndim, len(padding) // 2
    if min(padding) < 0:
        folded = g
        for k in range(dims):
            d = ndim - 1 - k
            n = like.shape[d]
            moved = np.moveaxis(folded, d, 0)
            target = np.zeros((n, *moved.shape[1:]), g.dtype)
            add_rows(target, _sources(n, padding[2 * k], padding[2 * k + 1], reflects), moved)
            folded = np.moveaxis(target, 0, d)
        gradient = _new(like.shape, like, g.dtype)
        np.copyto(gradient, folded)
        return gradient
    work, middle = g.copy(), [slice(None)] * ndim
    for k in reversed(range(dims)):
        d, before, after = ndim - 1 - k, padding[2 * k], padding[2 * k + 1]
        end = before + like.shape[d]
        middle[d] = slice(before, end)
        if before:
            edge = work[_along(ndim, d, before)]
            if reflects:
                work[_along(ndim, d, 2 * before, before, -1)] += edge
            else:
                work[_along(ndim, d, before, before + 1)] += edge.sum(d, keepdims=True, dtype=g.dtype)
        if after:
            edge = work[_along(ndim, d, end, None)]
            if reflects:
                work[_along(ndim, d, end - 2, end - 2 - after if end - 2 >= after else None, -1)] += edge
            else:
                work[_along(ndim, d, end - 1, end)] += edge.sum(d, keepdims=True, dtype=g.dtype)
    gradient = _new(like.shape, like, g.dtype)
    np.copyto(gradient, work[tuple(middle)])
    return gradient


def _declare(aten_name: str, backward_name: str, dims: int) -> Any:
    name = aten_name.removeprefix("aten::")
    kind = name.partition("_")[0]
    reflects = kind == "reflection"

    @op(
        f"{aten_name}(Tensor self, SymInt[{2 * dims}] padding) -> Tensor",
        expose="no",
        node=f"{kind.title()}Pad{dims}DBackward0",
    )
    def pad(self: np.ndarray, padding: tuple) -> np.ndarray:
        _check(name, reflects, self.shape, padding, dims)
        if self.dtype == bool:
            raise NotImplementedError(f"\"{name}\" not implemented for '{BY_NUM[self.dtype.num]._abbr}'")
        return pad_edges(self, padding, reflects)

    @op(
        f"{backward_name}(Tensor grad_output, Tensor self, SymInt[{2 * dims}] padding) -> Tensor",
        expose="no",
        node=f"{kind.title()}Pad{dims}DBackwardBackward0",
    )
    def backward(grad_output: np.ndarray, self: np.ndarray, padding: tuple) -> np.ndarray:
        return pad_edges_gradient(grad_output, self, padding, reflects)

    pad.derivative(self=lambda g, self, padding: backward(g, self, padding))
    backward.derivative(grad_output=lambda g, padding: pad(g, padding), self=zeros_of)
    return pad


_PADS = {
    ("reflection", 1): _declare("aten::reflection_pad1d", "aten::reflection_pad1d_backward", 1),
    ("reflection", 2): _declare("aten::reflection_pad2d", "aten::reflection_pad2d_backward", 2),
    ("reflection", 3): _declare("aten::reflection_pad3d", "aten::reflection_pad3d_backward", 3),
    ("replication", 1): _declare("aten::replication_pad1d", "aten::replication_pad1d_backward", 1),
    ("replication", 2): _declare("aten::replication_pad2d", "aten::replication_pad2d_backward", 2),
    ("replication", 3): _declare("aten::replication_pad3d", "aten::replication_pad3d_backward", 3),
}


# ---------------------------------------------------------------------------------------------------- circular


@composite("aten::_pad_circular(Tensor self, SymInt[] pad) -> Tensor", expose="no")
def _pad_circular(self: Any, pad: Any) -> Any:
    dims = len(pad) // 2
    shape = list(self.shape)
    pairs = [(self.ndim - 1 - k, pad[2 * k], pad[2 * k + 1]) for k in range(dims)]
    for d, before, after in reversed(pairs):
        n = self.shape[d]
        if before > n or after > n:
            raise RuntimeError("Padding value causes wrapping around more than once.")
        if n + before + after < 0:
            raise RuntimeError("Negative padding value is resulting in an empty dimension")
        shape[d] = n + before + after
    padded = F.new_empty(self, shape)
    interior, part = padded, self
    for d, before, after in pairs:
        interior = F.slice(interior, d, max(before, 0), shape[d] - max(after, 0), 1)
        part = F.slice(part, d, max(-before, 0), self.shape[d] - max(-after, 0), 1)
    F.copy_(interior, part)
    for d, before, after in pairs:
        n = shape[d]
        if before > 0:
            end = n - max(after, 0)
            F.copy_(F.slice(padded, d, 0, before, 1), F.slice(padded, d, end - before, end, 1))
        if after > 0:
            start = max(before, 0)
            F.copy_(F.slice(padded, d, n - after, n, 1), F.slice(padded, d, start, start + after, 1))
    return padded


# ---------------------------------------------------------------------------------------------------- by name

_MODES = {"reflect": "reflection", "replicate": "replication", "circular": "circular"}


def _pads(pad: Any) -> tuple:
    if not isinstance(pad, (tuple, list)):
        raise TypeError(f"pad(): argument 'pad' (position 2) must be tuple of ints, not {type(pad).__name__}")
    for place, p in enumerate(pad):
        if p.__class__ is not int and (isinstance(p, float) or not hasattr(p, "__index__")):
            kind = type(p).__name__
            if place:
                raise TypeError(
                    f"pad(): argument 'pad' failed to unpack the object at pos {place + 1} "
                    f'with error "type must be tuple of ints,but got {kind}"'
                )
            raise TypeError(
                "pad(): argument 'pad' (position 2) must be tuple of ints, "
                f"but found element of type {kind} at pos 0"
            )
    return tuple([operator.index(p) for p in pad])


@composite(
    'aten::pad(Tensor self, SymInt[] pad, str mode="constant", float? value=None) -> Tensor', expose="no"
)
def pad(self: Any, pad: Any, mode: str, value: float | None) -> Any:
    if not hasattr(self, "_array_missing"):
        raise TypeError(f"pad(): argument 'input' (position 1) must be Tensor, not {type(self).__name__}")
    pads = _pads(pad)
    ndim = self.dim()
    if len(pads) % 2:
        raise RuntimeError("Padding length must be divisible by 2")
    if len(pads) > 2 * ndim:
        raise RuntimeError(
            "Padding length should be less than or equal to two times the input dimension "
            f"but got padding length {len(pads)} and input of dimension {ndim}"
        )
    if mode == "constant":
        return constant_pad_nd(self, pads, 0.0 if value is None else float(value))
    if mode not in _MODES:
        raise NotImplementedError(f"Unrecognised padding mode {mode}")
    if value is not None and value != 0:
        raise RuntimeError(f'Padding mode "{mode}" doesn\'t take in value argument')
    dims = len(pads) // 2
    if dims not in (1, 2, 3) or ndim not in (dims + 1, dims + 2):
        raise NotImplementedError(
            f"Padding size {len(pads)} is not supported for {ndim}D input tensor.\n"
            "Supported combinations for non-constant padding:\n"
            "  - 2D or 3D input: padding size = 2 (pads last dimension)\n"
            "  - 3D or 4D input: padding size = 4 (pads last 2 dimensions)\n"
            "  - 4D or 5D input: padding size = 6 (pads last 3 dimensions)"
        )
    if mode == "circular":
        return _pad_circular(self, pads)
    return _PADS[_MODES[mode], dims](self, pads)
