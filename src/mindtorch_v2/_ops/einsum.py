"""Sums over named indices: einsum, tensordot and similar ops, computed by batched matrix products."""

from __future__ import annotations

import math
from typing import Any

from .. import _dispatch
from .._dispatch import composite, function
from . import _dims
from ._namespace import functions as F
from .matmul import C_NAMES

_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


def _parse(equation: str, operands: list[Any]) -> tuple[list[list[Any]], list[Any] | None]:
    """Labels of each operand and of the output; an ellipsis is the label `...`. None: no output given."""
    left, arrow, right = equation.replace(" ", "").partition("->")

    def labels(text: str, who: str) -> list[Any]:
        subscripts: list[Any] = []
        i = 0
        while i < len(text):
            if text.startswith("...", i):
                if "..." in subscripts:
                    raise RuntimeError(
                        f"einsum(): found '.' for {who} for which an ellipsis was already found"
                    )
                subscripts.append("...")
                i += 3
                continue
            if text[i] == ".":
                raise RuntimeError(f"einsum(): found '.' for {who} that is not part of any ellipsis")
            if text[i] not in _LETTERS:
                raise RuntimeError(
                    f"einsum(): invalid subscript given at index {i} in the equation string, subscripts must be in [a-zA-Z]"
                )
            subscripts.append(text[i])
            i += 1
        return subscripts

    parts = [labels(text, f"operand {n}") for n, text in enumerate(left.split(","))]
    if len(parts) > len(operands):
        raise RuntimeError("einsum(): fewer operands were provided than specified in the equation")
    if len(parts) < len(operands):
        raise RuntimeError("einsum(): more operands were provided than specified in the equation")
    return parts, labels(right, "the output") if arrow else None


def _sublists(args: tuple) -> tuple[list[list[Any]], list[Any] | None, list[Any]]:
    """The other call form: operand, list of numbers, operand, list, ..., output list."""
    operands, parts = [], []
    for i in range(0, len(args) - 1, 2):
        operands.append(args[i])
        parts.append(["..." if x is Ellipsis else _LETTERS[x] for x in args[i + 1]])
    output = ["..." if x is Ellipsis else _LETTERS[x] for x in args[-1]] if len(args) % 2 else None
    return parts, output, operands


@function(expose="function")
def einsum(*args: Any) -> Any:
    """The sum of products over indices named in an equation, such as "bij,bjk->bik"."""
    if isinstance(args[0], _dispatch.Tensor):
        parts, output, operands = _sublists(args)
        equation = ",".join("".join(p) for p in parts) + ("" if output is None else "->" + "".join(output))
    else:
        equation, *rest = args
        operands = list(rest[0]) if len(rest) == 1 and isinstance(rest[0], (list, tuple)) else list(rest)
    if not operands:
        raise RuntimeError("einsum(): must provide at least one operand")
    return _einsum(equation, operands)


@composite("aten::einsum(str equation, Tensor[] tensors, *, int[]? path=None) -> Tensor", expose="no")
def _einsum(equation: str, tensors: Any, path: Any) -> Any:
    operands = list(tensors)
    parts, output = _parse(equation, operands)
    extra = 0  # dimensions that an ellipsis covers
    for n, (labels, operand) in enumerate(zip(parts, operands)):
        plain = len(labels) - ("..." in labels)
        if "..." in labels:
            if operand.ndim < plain:
                raise RuntimeError(_count_text(n, plain, operand.ndim, True))
            extra = max(extra, operand.ndim - plain)
        elif operand.ndim != plain:
            raise RuntimeError(_count_text(n, plain, operand.ndim, False))
    spread = [("...", k) for k in range(extra)]
    if output is None:
        counts: dict[Any, int] = {}
        for labels in parts:
            for label in labels:
                if label != "...":
                    counts[label] = counts.get(label, 0) + 1
        output = (["..."] if any("..." in p for p in parts) else []) + sorted(
            (k for k, n in counts.items() if n == 1), key=_LETTERS.index
        )
    order = _expand(output, spread, extra)
    for label in order:
        if order.count(label) > 1:
            raise RuntimeError(f"einsum(): output subscript {label} appears more than once in the output")
        if not isinstance(label, tuple) and not any(label in p for p in parts):
            raise RuntimeError(
                f"einsum(): output subscript {label} does not appear in the equation for any input operand"
            )
    named = [
        _expand(labels, spread, operand.ndim - (len(labels) - 1)) if "..." in labels else list(labels)
        for labels, operand in zip(parts, operands)
    ]
    every = list(order)
    for labels in named:
        every += [label for label in dict.fromkeys(labels) if label not in every]
    aligned = [_align(operand, labels, every, n) for n, (operand, labels) in enumerate(zip(operands, named))]
    _check_sizes(every, aligned, named)
    return _contract(aligned, len(order))


def _count_text(number: int, plain: int, have: int, ellipsis: bool) -> str:
    if have < plain:
        return (
            f"einsum(): the number of subscripts in the equation ({plain}) is more than the number of dimensions ({have}) for operand {number}"
            if ellipsis
            else f"einsum(): the number of subscripts in the equation ({plain}) does not match the number of dimensions ({have}) for operand {number} and no ellipsis was given"
        )
    return f"einsum(): the number of subscripts in the equation ({plain}) does not match the number of dimensions ({have}) for operand {number} and no ellipsis was given"


def _expand(labels: list[Any], spread: list, count: int) -> list[Any]:
    made: list[Any] = []
    for label in labels:
        made += spread[len(spread) - count :] if label == "..." else [label]
    return made


def _align(operand: Any, labels: list[Any], every: list[Any], number: int) -> Any:
    """The operand with one dimension per label, in the common order; repeated labels become a diagonal."""
    seen: dict[Any, int] = {}
    d = 0
    for label in labels:
        if label in seen:
            if operand.shape[seen[label]] != operand.shape[d]:
                raise RuntimeError(
                    f"einsum(): subscript {label} is repeated for operand {number} but the sizes don't match, {operand.shape[d]} != "
                    f"{operand.shape[seen[label]]}"
                )
            operand = F.movedim(F.diagonal(operand, 0, seen[label], d), -1, seen[label])
        else:
            seen[label] = d
            d += 1
    missing = [label for label in every if label not in seen]
    for _ in missing:
        operand = F.unsqueeze(operand, operand.ndim)
    places = dict(seen)
    for k, label in enumerate(missing):
        places[label] = d + k
    return F.permute(operand, [places[label] for label in every])


def _check_sizes(every: list[Any], operands: list[Any], named: list[list[Any]]) -> None:
    for place, label in enumerate(every):
        size = 1
        for number, operand in enumerate(operands):
            n = operand.shape[place]
            if n != 1 and size != 1 and n != size:
                raise RuntimeError(
                    f"einsum(): subscript {label if not isinstance(label, tuple) else '...'} has size {n} for operand {number} which does not "
                    f"broadcast with previously seen size {size}"
                )
            size = max(size, n)


def _contract(operands: list[Any], kept: int) -> Any:
    """Multiply from left to right; a dimension is summed as soon as no later operand has it."""
    total = operands[0].ndim
    result = operands[0]
    last = [max((i for i, o in enumerate(operands) if o.shape[d] != 1), default=0) for d in range(total)]
    if len(operands) == 1:
        dims = list(range(kept, total))
        return F.sum(result, dims) if dims else result
    early = [d for d in range(kept, total) if last[d] == 0]
    if early:
        result = F.sum(result, early, True)
    for i, operand in enumerate(operands[1:], 1):
        summed = [d for d in range(kept, total) if last[d] == i]
        if len(operands) == 2 and not summed and total == kept:
            result = F.mul(result, operand)
            continue
        result = _sum_product(result, operand, summed)
    if total > kept:
        result = (
            F.view(result, tuple(result.shape[:kept]))
            if result.is_contiguous()
            else result.reshape(result.shape[:kept])
        )
    return result


def _sum_product(a: Any, b: Any, summed: list[int]) -> Any:
    """Sum of a * b over `summed`, those dimensions kept with length 1: one batched matrix product."""
    ndim = a.ndim
    early_a = [d for d in summed if a.shape[d] != 1 and b.shape[d] == 1]
    early_b = [d for d in summed if b.shape[d] != 1 and a.shape[d] == 1]
    if early_a:
        a = F.sum(a, early_a, True)
    if early_b:
        b = F.sum(b, early_b, True)
    contracted = [d for d in summed if a.shape[d] != 1 or (d not in early_a and d not in early_b)]
    if not contracted and not summed:
        return F.mul(a, b)
    batch, left, right = [], [], []
    for d in range(ndim):
        if d in contracted:
            continue
        if a.shape[d] != 1 and b.shape[d] != 1:
            batch.append(d)
        elif a.shape[d] != 1:
            left.append(d)
        else:
            right.append(d)
    sizes = [b.shape[d] if a.shape[d] == 1 else a.shape[d] for d in range(ndim)]

    def size(dims: list[int]) -> int:
        return math.prod(sizes[d] for d in dims)

    x = F.reshape(
        F.permute(a, [*batch, *left, *contracted, *right]), (size(batch), size(left), size(contracted))
    )
    y = F.reshape(
        F.permute(b, [*batch, *contracted, *right, *left]), (size(batch), size(contracted), size(right))
    )
    product = F.bmm(x, y)
    order = [*batch, *left, *contracted, *right]
    product = F.view(product, tuple(1 if d in contracted else sizes[d] for d in order))
    back = [0] * ndim
    for place, d in enumerate(order):
        back[d] = place
    return F.permute(product, back)


@function(expose="function")
def tensordot(a: Any, b: Any, dims: Any = 2, out: Any = None) -> Any:
    """Contract two tensors over several dimensions."""
    if isinstance(dims, _dispatch.Tensor):
        dims = dims._array.tolist() if dims.ndim else int(dims.item())
    if isinstance(dims, int):
        if dims < 0:
            raise RuntimeError(f"tensordot expects dims >= 0, but got dims={dims}")
        if dims > min(a.ndim, b.ndim):
            raise RuntimeError(f"tensordot expects dims < ndim_a or ndim_b, but got dims={dims}")
        first, second = list(range(-dims, 0)), list(range(dims))
    else:
        first, second = ([d] if isinstance(d, int) else list(d) for d in dims)
    return _dispatch.copied_into_out(_tensordot(a, b, first, second), out)


@composite(
    "aten::tensordot(Tensor self, Tensor other, int[] dims_self, int[] dims_other) -> Tensor", expose="no"
)
def _tensordot(self: Any, other: Any, dims_self: Any, dims_other: Any) -> Any:
    if len(dims_self) != len(dims_other):
        raise RuntimeError("both dimension lists should have same length")
    first = [_dims.one(d, self.ndim) for d in dims_self]
    second = [_dims.one(d, other.ndim) for d in dims_other]
    for d, e, given, also in zip(first, second, dims_self, dims_other):
        n, m = self.shape[d], other.shape[e]
        if n != m and n != 1 and m != 1:
            raise RuntimeError(
                f"contracted dimensions need to match, but first has size {n} in dim {given} and second has size {m} in dim {also}"
            )
        if m == 1 and n != 1:
            self = F.sum(self, d, True)
        elif n == 1 and m != 1:
            other = F.sum(other, e, True)
    free_a = [d for d in range(self.ndim) if d not in first]
    free_b = [d for d in range(other.ndim) if d not in second]
    inner = math.prod(self.shape[d] for d in first)
    left = F.reshape(F.permute(self, [*free_a, *first]), (math.prod(self.shape[d] for d in free_a), inner))
    right = F.reshape(
        F.permute(other, [*second, *free_b]), (inner, math.prod(other.shape[d] for d in free_b))
    )
    return F.reshape(F.mm(left, right), [*(self.shape[d] for d in free_a), *(other.shape[d] for d in free_b)])


@composite("aten::inner(Tensor self, Tensor other) -> Tensor", out=True)
def inner(self: Any, other: Any) -> Any:
    if self.ndim == 0 or other.ndim == 0:
        return F.mul(self, other)
    if self.shape[-1] != other.shape[-1]:
        raise RuntimeError(
            f"inner() the last dimension must match on both input tensors but got shapes {list(self.shape)} and {list(other.shape)}"
        )
    if self.dtype is not other.dtype:
        raise RuntimeError("both inputs should have same dtype")
    if self.ndim == other.ndim == 1:
        return F.view(F.dot(self, other), ())
    return _tensordot(self, other, [-1], [-1])


@composite("aten::kron(Tensor self, Tensor other) -> Tensor", out=True)
def kron(self: Any, other: Any) -> Any:
    ndim = max(self.ndim, other.ndim)
    a = [1] * (ndim - self.ndim) + list(self.shape)
    b = [1] * (ndim - other.ndim) + list(other.shape)
    shape_a, shape_b, result = [], [], []
    for n, m in zip(a, b):
        shape_a += [n, 1]
        shape_b += [1, m]
        result.append(n * m)
    first, second = (
        F._unsafe_view(t.contiguous(), shape) for t, shape in ((self, shape_a), (other, shape_b))
    )
    return F._unsafe_view(F.mul(first, second), result)


@function(expose="function")
def chain_matmul(*matrices: Any, out: Any = None) -> Any:
    """The product of several matrices, in the cheapest order."""
    import warnings

    warnings.warn(
        "torch.chain_matmul is deprecated and will be removed in a future PyTorch release. Use torch.linalg.multi_dot instead, which accepts a "
        "list of two or more tensors rather than multiple parameters.",
        UserWarning,
        stacklevel=2,
    )
    product = matrices[0] if len(matrices) == 1 else _dispatch.OPS["chain_matmul"].entry(list(matrices))
    return _dispatch.into_out(product, out)


def multi_dot(matrices: list[Any]) -> Any:
    """The product of several matrices in the order that multiplies least."""
    for number, matrix in enumerate(matrices[1:], 1):
        if matrix.dtype is not matrices[0].dtype:
            a, b = (C_NAMES.get(m.dtype._abbr, m.dtype._abbr) for m in (matrices[0], matrix))
            raise RuntimeError(
                f"multi_dot(): all tensors must have be the same dtype but tensor 0 is {a} and tensor {number} {b}"
            )
    sizes = [m.shape[0] for m in matrices] + [matrices[-1].shape[1]]
    count = len(matrices)
    cost = [[0] * count for _ in matrices]
    split = [[0] * count for _ in matrices]
    for span in range(1, count):
        for i in range(count - span):
            j = i + span
            options = [
                cost[i][k] + cost[k + 1][j] + sizes[i] * sizes[k + 1] * sizes[j + 1] for k in range(i, j)
            ]
            cost[i][j] = min(options)
            split[i][j] = i + options.index(cost[i][j])

    def multiply(i: int, j: int) -> Any:
        return matrices[i] if i == j else F.mm(multiply(i, split[i][j]), multiply(split[i][j] + 1, j))

    return multiply(0, count - 1)
