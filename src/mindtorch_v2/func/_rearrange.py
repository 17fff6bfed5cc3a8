"""rearrange: a tensor and a pattern such as `"b (h w) c -> b c h w"` in, the tensor reshaped and permuted."""

from __future__ import annotations

import math
import re
from typing import Any

import mindtorch_v2 as torch

_ELLIPSIS = "..."
_BARE_ELLIPSIS = [_ELLIPSIS]  # an ellipsis outside brackets; one inside is part of a dimension
_TOKEN = re.compile(r"\.\.\.|[A-Za-z_]\w*|\d+|[()]|\S")


class DimensionBindError(Exception):
    """The lengths in a pattern do not match the tensor."""


def _parse_side(side: str) -> list[list[str]]:
    """The dimensions of one side of a pattern: each a list of names."""
    dims: list[list[str]] = []
    group: list[str] | None = None
    for symbol in _TOKEN.findall(side):
        if symbol == "(":
            if group is not None:
                raise ValueError("brackets are nested in rearrange expression")
            group = []
        elif symbol == ")":
            if group is None:
                raise ValueError("brackets are not balanced in rearrange expression")
            dims.append(group)
            group = None
        elif symbol == "1":
            if group is None:
                dims.append([])
        elif symbol != _ELLIPSIS and not symbol.isidentifier():
            raise ValueError(f"Unexpected symbol {symbol!r} in rearrange expression")
        elif group is not None:
            group.append(symbol)
        else:
            dims.append(_BARE_ELLIPSIS if symbol == _ELLIPSIS else [symbol])
    if group is not None:
        raise ValueError("brackets are not balanced in rearrange expression")
    return dims


def _names(dims: list[list[str]]) -> list[str]:
    return [name for dim in dims for name in dim]


def rearrange(tensor: Any, pattern: str, **axes_lengths: int) -> torch.Tensor:
    """Reshape and permute a tensor, or a list of tensors that is stacked first, according to a pattern."""
    if not isinstance(tensor, torch.Tensor):
        tensor = torch.stack(list(tensor))
    sides = pattern.split("->")
    if len(sides) != 2:
        raise ValueError("Pattern must contain a single '->' separator")
    left, right = _parse_side(sides[0]), _parse_side(sides[1])
    _check(left, right, tensor, axes_lengths)

    n_ellipsis = tensor.dim() - (len(left) - (_ELLIPSIS in _names(left)))  # dimensions matched by "..."
    sizes: dict[str, int] = {}
    flat: list[int] = []  # the length of every name, in the order of the left side
    order: dict[str, list[int]] = {}  # name -> its indices in `flat`
    axis = 0
    for dim in left:
        if dim is _BARE_ELLIPSIS:
            order[_ELLIPSIS] = list(range(len(flat), len(flat) + n_ellipsis))
            flat += tensor.shape[axis : axis + n_ellipsis]
            axis += n_ellipsis
            continue
        length = tensor.shape[axis]
        axis += 1
        sizes.update(_lengths(dim, length, axes_lengths))
        for name in dim:
            order[name] = [len(flat)]
            flat.append(sizes[name])
    split = tensor.reshape(flat)
    permuted = split.permute([i for name in _names(right) for i in order[name]])
    shape: list[int] = []
    for dim in right:
        if dim is _BARE_ELLIPSIS:
            shape += [flat[i] for i in order[_ELLIPSIS]]
        else:
            shape.append(math.prod(flat[i] for name in dim for i in order[name]))
    return permuted.reshape(shape)


def _check(
    left: list[list[str]], right: list[list[str]], tensor: torch.Tensor, lengths: dict[str, int]
) -> None:
    first, second = _names(left), _names(right)
    for names in (first, second):
        repeated = {name for name in names if names.count(name) > 1}
        if repeated:
            raise ValueError(
                f"Identifiers appear more than once on one side of rearrange expression: {repeated}"
            )
    uneven = set(first) ^ set(second)
    if uneven:
        raise ValueError(
            f"Identifiers only on one side of rearrange expression (should be on both): {uneven}"
        )
    unknown = set(lengths) - set(first)
    if unknown:
        raise ValueError(
            f"Identifiers only on one side of rearrange expression (should be on both): {unknown}"
        )
    dims = len(left)
    if _ELLIPSIS in first:
        if dims - 1 > tensor.dim():
            raise ValueError(
                f"Number of dimensions in pattern ({dims - 1}) must be less than or equal to the number of "
                f"dimensions in the tensor ({tensor.dim()})"
            )
    elif dims != tensor.dim():
        raise ValueError(
            f"Number of dimensions in pattern ({dims}) must be equal to the number of dimensions in the "
            "tensor "
            f"({tensor.dim()})"
        )


def _lengths(names: list[str], length: int, axes_lengths: dict[str, int]) -> dict[str, int]:
    """The length of each name in a dimension; at most one of them is inferred."""
    unknown = [name for name in names if name not in axes_lengths]
    known_lengths = {name: axes_lengths[name] for name in names if name in axes_lengths}
    product = math.prod(known_lengths.values())
    if len(unknown) > 1:
        raise DimensionBindError(
            f"cannot infer the sizes of two dimensions at once {unknown[0]} and {unknown[1]}"
        )
    if length % product or (not unknown and product != length):
        shape = tuple(axes_lengths.get(name, "?") for name in names)
        raise DimensionBindError(
            f"inferred dimension does not evenly fit into larger dimension: {length} vs {shape}"
        )
    return {**known_lengths, **dict.fromkeys(unknown, length // product)}
