"""Quantiles, covariance and correlation. Tensors in, tensors out, by the same ops as in torch."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _dispatch, _dtype
from .._dispatch import OPS, composite, function
from .._dtype import Default
from . import _dims
from ._namespace import functions as F

_MODES = ("linear", "lower", "higher", "midpoint", "nearest")


def all_true(condition: Any) -> bool:
    """Whether a tensor of one bool is true, by the op that torch uses."""
    return F.equal(condition, condition.new_ones(()))


def _check(self: Any, q: Any, interpolation: str, name: str) -> None:
    if interpolation not in _MODES:
        raise RuntimeError(
            f"{name}() interpolation must be one of linear, lower, higher, midpoint or nearest, but got {interpolation}"
        )
    if self.numel() == 0:
        raise RuntimeError(f"{name}() input tensor must be non-empty")
    if q.ndim > 1:
        raise RuntimeError(f"{name}() q must be a scalar or 1D tensor")
    if self._array.dtype not in (np.float32, np.float64):
        raise RuntimeError(f"{name}() input tensor must be either float or double dtype")
    if q.dtype is not self.dtype:
        raise RuntimeError(f"{name}() q tensor must be same dtype as the input tensor")
    if not all_true(F.all(OPS["logical_and_"].entry(F.ge(q, 0), F.le(q, 1)))):
        raise RuntimeError(f"{name}() q values must be in the range [0, 1]")


def _to_int64(tensor: Any) -> Any:
    """A tensor of int64."""
    return OPS["to.dtype_layout"].entry(tensor, dtype=_dtype.int64)


def _quantile(
    self: Any, q: Any, dim: Any, keepdim: bool, interpolation: str, skip_nan: bool, name: str
) -> Any:
    _check(self, q, interpolation, name)
    where = None if dim is None else _dims.one(dim, self.ndim)
    shape = (
        [1] * self.ndim
        if keepdim and dim is None
        else list(self.shape)
        if dim is not None and self.ndim
        else []
    )
    if where is not None and self.ndim:
        if keepdim:
            shape[where] = 1
        else:
            del shape[where]
    if dim is None:
        ordered = F.sort(F.flatten(self))[0]
    elif where == self.ndim - 1 or not self.ndim:
        ordered = F.sort(self)[0] if self.ndim else F.sort(F.flatten(self))[0]
    else:
        ordered = F.sort(F.transpose(F.unsqueeze(self, -1), where, -1))[0]
    n = ordered.shape[-1]
    ordered = F.view(ordered, (*shape, n))
    ranks = _ranks(q, ordered, n, skip_nan)
    if interpolation == "lower":
        F.floor_(ranks)
    elif interpolation == "higher":
        F.ceil_(ranks)
    elif interpolation == "nearest":
        F.round_(ranks)
    below = _to_int64(ranks)
    values = F.gather(ordered, -1, below)
    if interpolation in ("linear", "midpoint"):
        part = F.full_like(ranks, 0.5) if interpolation == "midpoint" else F.sub(ranks, below)
        above = F.gather(ordered, -1, _to_int64(F.ceil_(ranks)))
        values = values.lerp_(above, part)
    if not q.ndim:
        return values.squeeze_(-1)
    return values.unsqueeze_(0).transpose_(0, -1).squeeze_(-1)


def _ranks(q: Any, ordered: Any, n: int, skip_nan: bool) -> Any:
    """Positions of the quantiles among the sorted values."""
    if skip_nan:
        numbers = OPS["logical_not_"].entry(F.isnan(ordered))
        ranks = F.mul(q, F.sub(F.sum(numbers, -1, True), 1))
        return F.masked_fill_(ranks, F.lt(ranks, 0), 0)
    last = n - 1
    ranks = F.mul(q, last)
    missing = F.any(F.isnan(ordered), -1, True)
    ranks, missing = F.broadcast_tensors(ranks, missing)
    return F.masked_fill(ranks, missing, last)


def _declare_quantile(aten_name: str, skip_nan: bool) -> None:
    name = aten_name.removeprefix("aten::")
    rest = "int? dim=None, bool keepdim=False, *, str interpolation='linear') -> Tensor"

    @composite(f"{aten_name}(Tensor self, Tensor q, {rest}", expose="no")
    def by_tensor(self: Any, q: Any, dim: Any, keepdim: bool, interpolation: str) -> Any:
        return _quantile(self, q, dim, keepdim, interpolation, skip_nan, name)

    @composite(f"{aten_name}.scalar(Tensor self, float q, {rest}", expose="no")
    def by_number(self: Any, q: float, dim: Any, keepdim: bool, interpolation: str) -> Any:
        if not 0 <= q <= 1:
            raise RuntimeError(f"{name}() q must be in the range [0, 1] but got {q:g}")
        number = F.scalar_tensor(q, dtype=self.dtype)
        return _quantile(self, number, dim, keepdim, interpolation, skip_nan, name)

    def front(
        input: Any,
        q: Any,
        dim: Any = None,
        keepdim: bool = False,
        *,
        interpolation: str = "linear",
        out: Any = None,
    ) -> Any:
        choose = by_tensor if isinstance(q, _dispatch.Tensor) else by_number
        quantiles = choose(input, q, dim, keepdim, interpolation=interpolation)
        return _dispatch.copied_into_out(quantiles, out)

    front.__name__ = name
    front.__doc__ = "Quantiles of all elements, or along a dimension."
    function(name)(front)


_declare_quantile("aten::quantile", False)
_declare_quantile("aten::nanquantile", True)


# ---------------------------------------------------------------------------------------------------- statistics


def _check_weights(name: str, weights: Any, count: int, integral: bool) -> None:
    if weights is None:
        return
    if weights.ndim > 1:
        raise RuntimeError(
            f"cov(): expected {name} to have one or fewer dimensions but got {name} with {weights.ndim} dimensions"
        )
    if (weights.dtype._rank == 1) is not integral:
        kind = "integral" if integral else "floating point"
        raise RuntimeError(
            f"cov(): expected {name} to have {kind} dtype but got {name} with {weights.dtype._abbr} dtype"
        )
    if weights.numel() != count:
        raise RuntimeError(
            f"cov(): expected {name} to have the same numel as there are observations in the input but got {weights.numel()} != {count}"
        )
    if count and weights._array.min() < 0:
        raise RuntimeError(f"cov(): {name} cannot be negative")


@composite(
    "aten::cov(Tensor self, *, int correction=1, Tensor? fweights=None, Tensor? aweights=None) -> Tensor"
)
def cov(self: Any, correction: int, fweights: Any, aweights: Any) -> Any:
    if self.ndim > 2:
        raise RuntimeError(
            f"cov(): expected input to have two or fewer dimensions but got an input with {self.ndim} dimensions"
        )
    x = self.reshape(1, -1) if self.ndim < 2 else self
    if x.dtype._rank < 2:
        x = x.to(Default.dtype)
    _check_weights("fweights", fweights, x.shape[1], integral=True)
    _check_weights("aweights", aweights, x.shape[1], integral=False)
    weights = None
    if fweights is not None:
        weights = fweights
    if aweights is not None:
        weights = aweights if weights is None else weights * aweights
    if weights is None:
        kind = _dtype.int64
        total = F.scalar_tensor(x.shape[1], dtype=kind)
        mean = F.div(F.sum(x, 1), total)
        norm = F.scalar_tensor(x.shape[1] - correction, dtype=kind)
        if all_true(F.le(norm, 0)):
            norm.zero_()
        center = F.sub(x, F.unsqueeze(mean, 1))
        turned = F.t(center)
        covariance = OPS["true_divide.named"].entry(
            F.mm(center, F.conj(turned) if turned.dtype.is_complex else turned), norm
        )
    else:
        total = weights.sum()
        center = x - (x * weights).sum(1, True) / total
        norm = (
            total - correction
            if aweights is None
            else total - correction * (weights * aweights).sum() / total
        )
        covariance = F.matmul(center * weights, F.conj(center.t())) / F.clamp(norm, min=0)
    return covariance.squeeze()


@composite("aten::corrcoef(Tensor self) -> Tensor")
def corrcoef(self: Any) -> Any:
    if self.ndim > 2:
        raise RuntimeError(
            f"corrcoef(): expected input to have two or fewer dimensions but got an input with {self.ndim} dimensions"
        )
    matrix = cov(self)
    if matrix.ndim == 0:
        return matrix / matrix
    spread = F.sqrt(F.diagonal(F.real(matrix) if matrix.is_complex() else matrix))
    matrix = F.div(F.div(matrix, spread.view(-1, 1)), spread.view(1, -1))
    if matrix.is_complex():
        return F.complex(F.clamp(F.real(matrix), -1, 1), F.clamp(F.imag(matrix), -1, 1))
    return F.clip(matrix, -1, 1)
