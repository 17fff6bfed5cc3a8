"""Draws whose parameters are tensors: bernoulli, multinomial, poisson, binomial, gamma and Dirichlet. The
samplers are in `_sampling` and `_rejection`; this module adds tensors, argument checks and torch's messages."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from .. import _dispatch, _dtype, _rejection, _sampling
from .._dispatch import function, op
from .._dtype import BY_NUM
from . import _dims
from ._children import Child, child, dtype_number, empty, empty_like, tensor
from ._layout import dense_order, empty_as
from ._namespace import functions as F
from .creation import finish
from .random import generator_of, invalid_combination, item, not_implemented, put, real, target


def _zeros(g: Any) -> Any:
    return F.zeros_like(g)


def _no_derivative(name: str) -> Any:
    raise RuntimeError(f"derivative for aten::{name} is not implemented")


# --- bernoulli


def _check_probabilities(p: np.ndarray, kernel: str) -> None:
    dtype = BY_NUM[p.dtype.num]
    if dtype._rank != 2:
        raise not_implemented(kernel, dtype)
    if not ((p >= 0) & (p <= 1)).all():
        raise RuntimeError(
            "Expected p_in >= 0 && p_in <= 1 to be true, but got false.  "
            "(Could this error message be improved?  If so, please report an enhancement request to PyTorch.)"
        )


def _bernoulli_scalar(self: np.ndarray, p: Any, generator: Any, out: Any = None) -> np.ndarray:
    out = target(self, out)
    gen = generator_of(generator, "bernoulli_")
    chance = real(p, "bernoulli_(): argument 'p' (position 1)")
    if not 0 <= chance <= 1:
        raise RuntimeError(f"bernoulli_ expects p to be in [0, 1], but got p={chance:g}")
    if not out.size:
        return out
    if out.dtype.kind in "cW":
        raise not_implemented("bernoulli_scalar_cpu_", BY_NUM[out.dtype.num])
    return put(out, _sampling.bernoulli(gen, out.size, chance))


def _bernoulli_each(self: np.ndarray, p: np.ndarray, generator: Any, out: Any = None) -> np.ndarray:
    out = target(self, out)
    gen = generator_of(generator, "bernoulli_")
    if p.shape != out.shape:
        p = _expanded(p, out.shape)
    if not out.size:
        return out
    if out.dtype.kind in "cW":
        raise not_implemented("bernoulli_tensor_cpu_self_", BY_NUM[out.dtype.num])
    _check_probabilities(p, "bernoulli_tensor_cpu_p_")
    if not out.flags.c_contiguous:
        p = p.transpose(dense_order(out.shape, out.strides))
    return put(out, _sampling.bernoulli_each(gen, np.ascontiguousarray(p).reshape(-1)))


def _expanded(p: np.ndarray, shape: tuple) -> np.ndarray:
    try:
        return np.broadcast_to(p, shape)
    except ValueError:
        lead = len(shape) - p.ndim
        for d in range(len(shape) - 1, -1, -1):
            if d >= lead and p.shape[d - lead] not in (1, shape[d]):
                raise RuntimeError(
                    f"The expanded size of the tensor ({shape[d]}) must match the existing size "
                    f"({p.shape[d - lead]}) at non-singleton dimension {d}.  Target sizes: {list(shape)}.  "
                    f"Tensor sizes: {list(p.shape)}"
                ) from None
        raise


_bernoulli_float = op(
    "aten::bernoulli.float(Tensor self, float p=0.5, *, Generator? generator=None) -> Tensor",
    inplace="aten::bernoulli_.float", expose="no", node="BernoulliBackward2",
)(_bernoulli_scalar)  # fmt: skip
_bernoulli_float.derivative(self=_zeros)
_bernoulli_tensor = op(
    "aten::bernoulli.Tensor(Tensor self, Tensor p, *, Generator? generator=None) -> Tensor",
    inplace="aten::bernoulli_.Tensor", expose="no", node="BernoulliBackward1",
)(_bernoulli_each)  # fmt: skip
_bernoulli_tensor.derivative(self=_zeros, p=_zeros)
bernoulli_float_, _bernoulli_tensor_ = (d.op.inplace.entry for d in (_bernoulli_float, _bernoulli_tensor))


@op("aten::bernoulli(Tensor self, *, Generator? generator=None) -> Tensor",
    expose="no", node="BernoulliBackward0")  # fmt: skip
def _bernoulli(self: np.ndarray, generator: Any) -> np.ndarray:
    return _bernoulli_each(self, self, generator, np.empty(self.shape, self.dtype))


def _on_one_device(probabilities: Any) -> Child:
    """Probabilities are moved to the tensor's device: here they are there."""
    return child(
        "aten::to.dtype_layout", probabilities, None, None, None, None, False, False, None, children=()
    )


_bernoulli.derivative(self=_zeros)
_bernoulli.children(
    lambda self, generator: [
        empty_like(self, 0),
        child("aten::bernoulli_.Tensor", tensor(self.shape, self), self, children=[_on_one_device(self)]),
    ]
)


@op("aten::bernoulli.p(Tensor self, float p, *, Generator? generator=None) -> Tensor", expose="no",
    node="NotImplemented")  # fmt: skip
def _bernoulli_p(self: np.ndarray, p: Any, generator: Any) -> np.ndarray:
    return _bernoulli_scalar(self, p, generator, np.empty(self.shape, self.dtype))


_bernoulli_p.derivative(self=lambda g: _no_derivative("bernoulli"))
_bernoulli_p.children(
    lambda self, p, generator: [
        empty_like(self, 0),
        child("aten::bernoulli_.float", tensor(self.shape, self), p),
    ]
)


@function(expose="method")
def bernoulli_(self: Any, p: Any = 0.5, *, generator: Any = None) -> Any:
    """Fill with ones, with probability p (a number, or a tensor of one for each element), and zeros."""
    if isinstance(p, _dispatch.Tensor):
        return _bernoulli_tensor_(self, p, generator=generator)
    if not isinstance(p, (int, float, np.number)):
        accepted = ("Tensor p, *, torch.Generator generator = None",
                    "float p = 0.5, *, torch.Generator generator = None")  # fmt: skip
        raise invalid_combination("bernoulli_", (p,), {"generator": generator}, accepted)
    return bernoulli_float_(self, p, generator=generator)


@function()
def bernoulli(input: Any, p: Any = None, *, generator: Any = None, out: Any = None) -> Any:
    """Ones and zeros: the input holds the probabilities, unless `p` gives one for all."""
    if p is not None:
        if out is not None:
            accepted = ("Tensor input, *, torch.Generator generator = None, Tensor out = None",
                        "Tensor input, float p, *, torch.Generator generator = None")  # fmt: skip
            raise invalid_combination("bernoulli", (input, p), {"generator": generator, "out": out}, accepted)
        return _bernoulli_p(input, p, generator=generator)
    if out is None:
        return _bernoulli(input, generator=generator)
    if out.shape != input.shape:
        out.resize_(input.shape)
    return _bernoulli_tensor_(out, input, generator=generator)


# --- multinomial


def _check_multinomial(self: np.ndarray, num_samples: Any, replacement: bool) -> None:
    dtype = BY_NUM[self.dtype.num]
    if self.ndim not in (1, 2):
        raise RuntimeError("prob_dist must be 1 or 2 dim")
    if dtype._rank != 2:
        raise RuntimeError(f"multinomial only supports floating-point dtypes for input, got: {dtype._abbr}")
    if num_samples <= 0:
        raise RuntimeError("cannot sample n_sample <= 0 samples")
    if not replacement and num_samples > self.shape[-1]:
        raise RuntimeError("cannot sample n_sample > prob_dist.size(-1) samples without replacement")


def _check_weights(weights: np.ndarray) -> None:
    if not weights.size:
        return
    if not (weights.min() >= 0 and weights.max() < np.inf):
        raise RuntimeError("probability tensor contains either `inf`, `nan` or element < 0")
    if (weights.sum(-1) == 0).any():
        raise RuntimeError("invalid multinomial distribution (sum of probabilities <= 0)")


@op("aten::multinomial(Tensor self, SymInt num_samples, bool replacement=False, *, "
    "Generator? generator=None) -> Tensor", expose="no", nondifferentiable=True)  # fmt: skip
def _multinomial(self: np.ndarray, num_samples: int, replacement: bool, generator: Any) -> np.ndarray:
    _check_multinomial(self, num_samples, replacement)
    gen = generator_of(generator, "multinomial")
    rows = _dims.rows(self)
    if replacement and num_samples > 1:
        indices = _rejection.multinomial_with_replacement(gen, rows, num_samples)
    else:
        _check_weights(self)
        indices = _first_indices(gen, self, num_samples)
    return indices.reshape(*self.shape[:-1], num_samples)


def _first_indices(gen: Any, weights: np.ndarray, n: int) -> np.ndarray:
    """The n indices with the shortest of independent exponential waiting times, whose rates are the weights."""
    waits = put(empty_as(weights), _sampling.exponential(gen, weights.size, weights.dtype))
    scores = weights / waits
    if n == 1:
        return scores.argmax(-1)
    wide = scores if scores.dtype.num < 24 else scores.astype(np.float32)  # bfloat16 cannot be sorted
    return np.ascontiguousarray(np.argsort(-wide, axis=-1, kind="stable")[..., :n])


@_multinomial.children
def _(self: Any, num_samples: Any, replacement: Any, generator: Any) -> list[Child]:
    shape = (*self.shape[:-1], num_samples)
    unsized, result = tensor((0,), self, "long int"), tensor(shape, self, "long int")
    allocation = [
        empty((0,), dtype_number(result), allocates=False),
        child("aten::resize_", unsized, shape, allocates=True),
    ]
    if replacement and num_samples > 1:
        return [*allocation, empty(self.shape[-1:], dtype_number(self), allocates=False)]
    waits = tensor(self.shape, self)
    draw = [
        empty_like(self, allocates=False),
        child("aten::exponential_", waits, 1.0),
        child("aten::div.out", self, waits, waits),
    ]
    if num_samples == 1:
        choice = [child("aten::argmax.out", waits, -1, True, result)]
    else:
        scores = tensor(shape, self)
        choice = [
            empty(shape, dtype_number(self), allocates=False),
            child("aten::topk.values", waits, num_samples, -1, True, True, scores, result),
        ]
    return [*allocation, *_weight_checks(self), *draw, *choice]


def _weight_checks(self: Any) -> list[Child]:
    """The ops by which torch checks the weights of a multinomial distribution."""
    bound, flag = tensor((), self), tensor((), self, "bool")
    checked = child("aten::_assert_async.msg", flag, None, children=[item(flag)])
    sums, empty_rows = tensor(self.shape[:-1], self), tensor(self.shape[:-1], self, "bool")
    over_rows = len(self.shape) > 1
    return [
        child("aten::aminmax", self, None, False),
        child("aten::ge.Scalar", bound, 0),
        child("aten::lt.Scalar", bound, np.inf),
        child("aten::bitwise_and.Tensor", flag, flag),
        checked,
        child("aten::sum.dim_IntList", self, (1,)) if over_rows else child("aten::sum", self),
        child("aten::eq.Scalar", sums, 0),
        *([child("aten::any", empty_rows)] if over_rows else []),
        child("aten::bitwise_not", flag),
        checked,
    ]


@function()
def multinomial(
    input: Any, num_samples: Any, replacement: bool = False, *, generator: Any = None, out: Any = None
) -> Any:
    """Indices drawn in proportion to the weights of each row."""
    if not hasattr(num_samples, "__index__"):
        kind = type(num_samples).__name__
        raise TypeError(f"multinomial(): argument 'num_samples' (position 2) must be int, not {kind}")
    if out is not None and out.dtype is not _dtype.int64:
        raise RuntimeError(f"multinomial expects Long tensor out, got: {out.dtype._abbr}")
    indices = _multinomial(input, operator.index(num_samples), bool(replacement), generator=generator)
    return finish(indices, False, False, out)


# --- poisson, binomial


@op("aten::poisson(Tensor self, Generator? generator=None) -> Tensor", expose="function")
def poisson(self: np.ndarray, generator: Any) -> np.ndarray:
    dtype = BY_NUM[self.dtype.num]
    if dtype._rank != 2:
        raise not_implemented("poisson_cpu", dtype)
    return _rejection.poisson(
        generator_of(generator, "poisson"), np.ascontiguousarray(self).reshape(self.shape)
    )


poisson.derivative(self=_zeros)


@op("aten::binomial(Tensor count, Tensor prob, Generator? generator=None) -> Tensor", expose="function",
    node="NotImplemented")  # fmt: skip
def binomial(count: np.ndarray, prob: np.ndarray, generator: Any) -> np.ndarray:
    for name, array in (("count", count), ("prob", prob)):
        dtype = BY_NUM[array.dtype.num]
        if dtype._rank != 2:
            raise ValueError(f"binomial only supports floating-point dtypes for {name}, got: {dtype._abbr}")
    if count.dtype != prob.dtype:
        names = BY_NUM[prob.dtype.num]._abbr, BY_NUM[count.dtype.num]._abbr
        raise RuntimeError(f"Found dtype {names[0]} but expected {names[1]}")
    if count.dtype.num not in (np.dtype("f4").num, np.dtype("f8").num):
        raise not_implemented("binomial_cpu", BY_NUM[count.dtype.num])
    count, prob = np.broadcast_arrays(count, prob)
    counts = _rejection.binomial(generator_of(generator, "binomial"), count, prob)
    return np.ascontiguousarray(counts).reshape(count.shape)


binomial.derivative(count=lambda g: _no_derivative("binomial"), prob=lambda g: _no_derivative("binomial"))


# --- gamma, Dirichlet


def _only_wide(array: np.ndarray, kernel: str) -> None:
    if array.dtype.num not in (np.dtype("f4").num, np.dtype("f8").num):
        raise not_implemented(kernel, BY_NUM[array.dtype.num])


@op("aten::_standard_gamma(Tensor self, Generator? generator=None) -> Tensor", expose="function",
    node="StandardGammaBackward0")  # fmt: skip
def _standard_gamma(self: np.ndarray, generator: Any) -> np.ndarray:
    _only_wide(self, "gamma_cpu")
    gen = generator_of(generator, "_standard_gamma")
    return _rejection.standard_gamma(gen, np.ascontiguousarray(self).reshape(self.shape))


_standard_gamma.derivative(self=lambda g, self, result: g * F._standard_gamma_grad(self, result))


def _slope(f: Any, at: np.ndarray) -> np.ndarray:
    """The derivative of f by five points, good to about ten digits."""
    h = 1e-3 * np.maximum(at, 1e-2)
    return (f(at - 2 * h) - 8 * f(at - h) + 8 * f(at + h) - f(at + 2 * h)) / (12 * h)


@op("aten::_standard_gamma_grad(Tensor self, Tensor output) -> Tensor", expose="function")
def _standard_gamma_grad(self: np.ndarray, output: np.ndarray) -> np.ndarray:
    """The derivative of a gamma sample by its shape at a fixed quantile: -(dF/dalpha) / density.

    torch approximates this to about three digits; here it has about ten."""
    from scipy import special

    a, x = np.broadcast_arrays(self.astype(np.float64), output.astype(np.float64))
    with np.errstate(all="ignore"):
        lower = _slope(lambda s: special.gammainc(s, x), a)
        upper = -_slope(lambda s: special.gammaincc(s, x), a)
        density = np.exp((a - 1) * np.log(x) - x - special.gammaln(a))
        moved = -np.where(x < a, lower, upper) / density
        tiny = x < 1e-8  # there F is x**a / Gamma(a + 1)
        moved = np.where(tiny, x / a * (special.digamma(a + 1) - np.log(x)), moved)
    return moved.astype(self.dtype)


@op("aten::_sample_dirichlet(Tensor self, Generator? generator=None) -> Tensor", expose="function",
    node="NotImplemented")  # fmt: skip
def _sample_dirichlet(self: np.ndarray, generator: Any) -> np.ndarray:
    _only_wide(self, "dirichlet")
    gen = generator_of(generator, "_sample_dirichlet")
    return _rejection.dirichlet(gen, np.ascontiguousarray(self).reshape(self.shape))


_sample_dirichlet.derivative(self=lambda g: _no_derivative("_sample_dirichlet"))


@op("aten::_dirichlet_grad(Tensor x, Tensor alpha, Tensor total) -> Tensor", expose="function")
def _dirichlet_grad(x: np.ndarray, alpha: np.ndarray, total: np.ndarray) -> np.ndarray:
    """The derivative of a beta sample by its first shape at a fixed quantile, divided by 1 - x.

    torch approximates this to about three digits; here it has about ten."""
    from scipy import special

    at, a, whole = (v.astype(np.float64) for v in np.broadcast_arrays(x, alpha, total))
    b = whole - a
    with np.errstate(all="ignore"):
        density = np.exp((a - 1) * np.log(at) + (b - 1) * np.log1p(-at) - special.betaln(a, b))
        moved = -_slope(lambda s: special.betainc(s, b, at), a) / (density * (1 - at))
    return moved.astype(x.dtype)
