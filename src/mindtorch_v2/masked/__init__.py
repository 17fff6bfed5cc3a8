"""torch.masked: reductions and normalisations that leave out the elements where a mask is False.

A masked element takes the value that does not change the result: 0 in a sum, -inf in a maximum. Masked
tensors as objects (`MaskedTensor`) are a prototype of torch's and not here.
"""

from __future__ import annotations

from typing import Any

import mindtorch_v2 as torch

__all__ = [
    "amax", "amin", "argmax", "argmin", "cumprod", "cumsum", "log_softmax", "logaddexp", "logsumexp", "mean", "median", "norm",
    "normalize", "prod", "softmax", "softmin", "std", "sum", "var",
]  # fmt: skip

_INF = float("inf")


def _fill(name: str, dtype: Any) -> Any:
    """The value of a masked element."""
    if name in ("sum", "cumsum", "norm"):
        return 0
    if name in ("prod", "cumprod"):
        return 1
    if dtype is torch.bool or (dtype.is_complex and name in ("amax", "amin")):
        raise NotImplementedError(f"identity of {name} on {dtype} input")
    smallest = name in ("amax", "argmax", "logsumexp")
    if dtype.is_floating_point or dtype.is_complex:
        return -_INF if smallest else _INF
    limits = torch.iinfo(dtype)
    return limits.min if smallest else limits.max


def _like_input(input: Any, mask: Any) -> Any:
    """The mask as bools, in the shape of the input."""
    if mask.dim() > input.dim():
        raise IndexError(
            "_input_mask expected broadcastable mask (got mask dimensionality higher than of the input)"
        )
    mask = mask if mask.dtype is torch.bool else mask != 0
    return mask if mask.shape == input.shape else torch.broadcast_to(mask, input.shape)


def _filled(input: Any, mask: Any, value: Any) -> Any:
    if mask is None:
        return input
    return torch.where(_like_input(input, mask), input, torch.full((), value, dtype=input.dtype))


def _dims(input: Any, dim: Any) -> tuple[int, ...]:
    """The dimensions that are reduced, each once and from 0."""
    count = input.dim()
    if dim is None:
        return tuple(range(count))
    dims: list[int] = []
    for one in (dim,) if isinstance(dim, int) else dim:
        if not -max(count, 1) <= one < max(count, 1):
            limits = f"[{-max(count, 1)}, {max(count, 1) - 1}]"
            raise IndexError(f"Dimension out of range (expected to be in range of {limits}, but got {one})")
        one %= max(count, 1)
        if one in dims:
            raise RuntimeError(f"dim={one} appears multiple times in the list of dims")
        dims.append(one)
    return tuple(sorted(dims))


def _sum_dtype(input: Any, dtype: Any) -> Any:
    """torch sums integers as int64."""
    if dtype is not None:
        return dtype
    return input.dtype if input.dtype.is_floating_point or input.dtype.is_complex else torch.int64


def _counts(input: Any, mask: Any, dims: tuple[int, ...], keepdim: bool) -> Any:
    """How many elements take part in each result."""
    chosen = torch.ones(input.shape, dtype=torch.int64) if mask is None else _like_input(input, mask)
    return torch.sum(chosen, dims, keepdim=keepdim, dtype=torch.int64)


def sum(input: Any, dim: Any = None, *, keepdim: bool = False, dtype: Any = None, mask: Any = None) -> Any:
    """The sum of the elements that are not masked."""
    dtype = _sum_dtype(input, dtype)
    return torch.sum(_filled(input, mask, 0), _dims(input, dim), keepdim=bool(keepdim), dtype=dtype)


def prod(input: Any, dim: Any = None, *, keepdim: bool = False, dtype: Any = None, mask: Any = None) -> Any:
    """The product of the elements that are not masked."""
    result = _filled(input, mask, 1).to(_sum_dtype(input, dtype))
    for one in reversed(_dims(input, dim) or tuple(range(input.dim()))):
        result = torch.prod(result, one, keepdim=bool(keepdim))
    return result


def cumsum(input: Any, dim: int, *, dtype: Any = None, mask: Any = None) -> Any:
    """The running sum; masked elements add 0."""
    return torch.cumsum(_filled(input, mask, 0), _dims(input, dim)[0], dtype=dtype or input.dtype)


def cumprod(input: Any, dim: int, *, dtype: Any = None, mask: Any = None) -> Any:
    """The running product; masked elements multiply by 1."""
    return torch.cumprod(_filled(input, mask, 1), _dims(input, dim)[0], dtype=dtype or input.dtype)


def _reduced(name: str, input: Any, dims: Any, keepdim: Any, dtype: Any, mask: Any) -> Any:
    """A reduction by the op of this name, in the dtype of the input unless another is asked for."""
    filled = _filled(input, mask, _fill(name, input.dtype))
    return getattr(torch, name)(filled, dims, bool(keepdim)).to(dtype or input.dtype)


def amax(input: Any, dim: Any = None, *, keepdim: bool = False, dtype: Any = None, mask: Any = None) -> Any:
    """The largest element that is not masked."""
    return _reduced("amax", input, _dims(input, dim), keepdim, dtype, mask)


def amin(input: Any, dim: Any = None, *, keepdim: bool = False, dtype: Any = None, mask: Any = None) -> Any:
    """The smallest element that is not masked."""
    return _reduced("amin", input, _dims(input, dim), keepdim, dtype, mask)


def argmax(input: Any, dim: Any = None, *, keepdim: bool = False, dtype: Any = None, mask: Any = None) -> Any:
    """The place of the largest element that is not masked, in the dtype of the input as in torch."""
    return _reduced("argmax", input, dim, keepdim, dtype, mask)


def argmin(input: Any, dim: Any = None, *, keepdim: bool = False, dtype: Any = None, mask: Any = None) -> Any:
    """The place of the smallest element that is not masked, in the dtype of the input as in torch."""
    return _reduced("argmin", input, dim, keepdim, dtype, mask)


def mean(input: Any, dim: Any = None, *, keepdim: bool = False, dtype: Any = None, mask: Any = None) -> Any:
    """The mean of the elements that are not masked; nan where all are."""
    dtype = dtype or input.dtype
    if not (dtype.is_floating_point or dtype.is_complex):
        raise ValueError(
            "mean(): Could not infer output dtype. Input dtype must be either a floating point or complex "
            f"dtype. Got: {dtype}"
        )
    dims = _dims(input, dim)
    if mask is None:
        return torch.mean(input, dims, keepdim=bool(keepdim), dtype=dtype)
    total = sum(input, dims, keepdim=keepdim, dtype=dtype, mask=mask)
    return total / _counts(input, mask, dims, bool(keepdim))


def median(input: Any, dim: int = -1, *, keepdim: bool = False, dtype: Any = None, mask: Any = None) -> Any:
    """The lower median of the elements that are not masked; nan where all are."""
    dtype = dtype or input.dtype
    dim = _dims(input, dim)[0]
    if mask is None:
        return torch.nanmedian(input, dim, keepdim).values.to(dtype)
    if not input.dtype.is_floating_point and not _like_input(input, mask).any(dim).all():
        raise ValueError("masked median expects no fully masked out rows if dtype is not floating point")
    wide = input if input.dtype.is_floating_point else input.to(torch.float64)
    return torch.nanmedian(_filled(wide, mask, float("nan")), dim, keepdim).values.to(dtype)


def logsumexp(
    input: Any, dim: Any = None, *, keepdim: bool = False, dtype: Any = None, mask: Any = None
) -> Any:
    """The logarithm of the sum of exponentials of the elements that are not masked."""
    return _reduced("logsumexp", input, _dims(input, dim), keepdim, dtype, mask)


def logaddexp(
    input: Any, other: Any, *, dtype: Any = None, input_mask: Any = None, other_mask: Any = None
) -> Any:
    """log(exp(input) + exp(other)), where a masked element adds nothing."""
    dtype = dtype or input.dtype
    return torch.logaddexp(_filled(input, input_mask, -_INF), _filled(other, other_mask, -_INF)).to(dtype)


def norm(
    input: Any,
    ord: float | None = 2.0,
    dim: Any = None,
    *,
    keepdim: bool = False,
    dtype: Any = None,
    mask: Any = None,
) -> Any:
    """The vector norm of the elements that are not masked."""
    filled = _filled(input, mask, _INF if ord == -_INF else 0)
    order = 2.0 if ord is None else ord
    return torch.linalg.vector_norm(filled, order, _dims(input, dim), bool(keepdim), dtype=dtype)


def _variance(
    root: bool, input: Any, dim: Any, unbiased: Any, correction: Any, keepdim: Any, dtype: Any, mask: Any
) -> Any:
    if unbiased is not None and correction is not None:
        raise AssertionError("Only one of unbiased and correction may be given")
    taken = correction if correction is not None else 1 if unbiased is None else int(unbiased)
    if dtype is None:
        inexact = input.dtype.is_floating_point or input.dtype.is_complex
        dtype = input.dtype if inexact else torch.float32
    wide = torch.float32 if dtype in (torch.bfloat16, torch.float16) else dtype
    dims = _dims(input, dim) or tuple(range(input.dim()))
    input = input.to(wide)
    count = _counts(input, mask, dims, True)
    middle = torch.sum(_filled(input, mask, 0), dims, keepdim=True) / count
    distance = _filled(input - middle, mask, 0)
    squares = distance * distance.conj() if dtype.is_complex else distance * distance
    total = torch.sum(squares.real if dtype.is_complex else squares, dims, keepdim=bool(keepdim))
    remaining = torch.sub(count, taken).clamp(min=0)
    remaining = remaining if keepdim else remaining.reshape(total.shape)
    result = total / remaining
    result = torch.sqrt(result) if root else result
    return result.to(dtype)


def var(
    input: Any,
    dim: Any = None,
    unbiased: bool | None = None,
    *,
    correction: float | None = None,
    keepdim: bool = False,
    dtype: Any = None,
    mask: Any = None,
) -> Any:
    """The variance of the elements that are not masked."""
    return _variance(False, input, dim, unbiased, correction, keepdim, dtype, mask)


def std(
    input: Any,
    dim: Any = None,
    unbiased: bool | None = None,
    *,
    correction: float | None = None,
    keepdim: bool = False,
    dtype: Any = None,
    mask: Any = None,
) -> Any:
    """The standard deviation of the elements that are not masked."""
    return _variance(True, input, dim, unbiased, correction, keepdim, dtype, mask)


def softmax(input: Any, dim: int, *, dtype: Any = None, mask: Any = None) -> Any:
    """softmax over the elements that are not masked; the others are 0."""
    dtype = dtype or input.dtype
    return torch.softmax(_filled(input, mask, _fill("amax", input.dtype)), _dims(input, dim)[0], dtype=dtype)


def log_softmax(input: Any, dim: int, *, dtype: Any = None, mask: Any = None) -> Any:
    """log_softmax over the elements that are not masked; the others are -inf."""
    dtype = dtype or input.dtype
    filled = _filled(input, mask, _fill("amax", input.dtype))
    return torch.log_softmax(filled, _dims(input, dim)[0], dtype=dtype)


def softmin(input: Any, dim: int, *, dtype: Any = None, mask: Any = None) -> Any:
    """softmax of the negative elements that are not masked; the others are 0."""
    dtype = dtype or input.dtype
    filled = _filled(input, mask, _fill("amin", input.dtype))
    return torch.nn.functional.softmin(filled, _dims(input, dim)[0], dtype=dtype)


def normalize(
    input: Any, ord: float, dim: int, *, eps: float = 1e-12, dtype: Any = None, mask: Any = None
) -> Any:
    """The elements that are not masked, divided by their norm along a dimension; the others are 0."""
    length = norm(input, ord, dim, keepdim=True, dtype=dtype, mask=mask)
    bound = torch.maximum(length, torch.full((), eps, dtype=length.dtype))
    return _filled(input if dtype is None else input.to(dtype), mask, 0) / bound
