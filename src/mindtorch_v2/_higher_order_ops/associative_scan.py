"""torch._higher_order_ops.associative_scan: all prefixes of a sequence under an associative function, in logarithmically many calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mindtorch_v2 as torch

from ..utils import _pytree as pytree

__all__ = ["associative_scan"]


def associative_scan(
    combine_fn: Callable[[Any, Any], Any],
    xs: Any,
    dim: int,
    reverse: bool = False,
    combine_mode: str = "pointwise",
) -> Any:
    """Combine the first i elements along `dim`, for every i; `xs` is a tensor or a tree of tensors."""
    if not callable(combine_fn):
        raise ValueError(f"Combine_fn must be a callable, but got {combine_fn}")
    if combine_mode not in ("pointwise", "generic"):
        raise ValueError(f"Combine_mode must either 'pointwise' or 'generic', but got {combine_mode}")
    leaves, spec = pytree.tree_flatten(xs)
    if combine_mode == "pointwise" and any(leaf.device.type not in ("cuda", "xpu") for leaf in leaves):
        raise ValueError("For combine_mode='pointwise', all input tensors need to be on CUDA or XPU")
    dim = _dimension(dim, leaves[0].dim())
    if any(leaf.dim() <= dim or leaf.shape[dim] == 0 for leaf in leaves):
        raise ValueError("All xs leaves must at least have 'dim' number of dimensions and scan dimension > 0")

    def combine(left: list[Any], right: list[Any]) -> list[Any]:
        return pytree.tree_leaves(
            combine_fn(pytree.tree_unflatten(left, spec), pytree.tree_unflatten(right, spec))
        )

    if reverse:
        leaves = [leaf.flip(dim) for leaf in leaves]
    results = _scan(combine, leaves, dim)
    if reverse:
        results = [leaf.flip(dim) for leaf in results]
    return pytree.tree_unflatten(results, spec)


def _dimension(dim: int, n_dims: int) -> int:
    if not -n_dims <= dim < n_dims:
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-n_dims}, {n_dims - 1}], but got {dim})"
        )
    return dim % n_dims


def _scan(combine: Callable[[list[Any], list[Any]], list[Any]], elements: list[Any], dim: int) -> list[Any]:
    """Combine neighbours, scan the pairs, and fill in the elements between them."""
    length = elements[0].shape[dim]
    if length < 2:
        return elements

    def every_second(leaves: list[Any], start: int, stop: int) -> list[Any]:
        index = (slice(None),) * dim + (slice(start, stop, 2),)
        return [leaf[index] for leaf in leaves]

    pairs = combine(every_second(elements, 0, length - 1), every_second(elements, 1, length))
    odd = _scan(combine, pairs, dim)
    before = [leaf.narrow(dim, 0, (length - 1) // 2) for leaf in odd]
    between = combine(before, every_second(elements, 2, length)) if length > 2 else before
    even = [
        torch.cat([leaf.narrow(dim, 0, 1), rest], dim) for leaf, rest in zip(elements, between, strict=True)
    ]
    return [_interleaved(first, second, dim) for first, second in zip(even, odd, strict=True)]


def _interleaved(even: Any, odd: Any, dim: int) -> Any:
    """The elements of two tensors in turn; the first may have one more."""
    common = odd.shape[dim]
    pairs = torch.stack([even.narrow(dim, 0, common), odd], dim + 1).flatten(dim, dim + 1)
    return pairs if even.shape[dim] == common else torch.cat([pairs, even.narrow(dim, common, 1)], dim)
