"""Kullback-Leibler divergences: two distributions in, KL(p || q) out, by the nearest registered rule."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import mindtorch_v2 as torch

from .bernoulli import Bernoulli
from .beta import Beta
from .binomial import Binomial
from .categorical import Categorical
from .cauchy import Cauchy
from .continuous_bernoulli import ContinuousBernoulli
from .dirichlet import Dirichlet
from .distribution import Distribution
from .exp_family import ExponentialFamily
from .exponential import Exponential
from .gamma import Gamma
from .geometric import Geometric
from .gumbel import Gumbel
from .half_normal import HalfNormal
from .independent import Independent
from .laplace import Laplace
from .lowrank_multivariate_normal import (
    LowRankMultivariateNormal,
    _batch_lowrank_logdet,
    _batch_lowrank_mahalanobis,
)
from .multivariate_normal import MultivariateNormal, _batch_mahalanobis
from .normal import Normal
from .one_hot_categorical import OneHotCategorical
from .pareto import Pareto
from .poisson import Poisson
from .transformed_distribution import TransformedDistribution
from .uniform import Uniform
from .utils import _sum_rightmost, euler_constant

__all__ = ["register_kl", "kl_divergence"]

_KL_REGISTRY: dict[tuple[type, type], Callable] = {}
_KL_MEMOIZE: dict[tuple[type, type], Any] = {}


def register_kl(type_p: type, type_q: type) -> Callable[[Callable], Callable]:
    """A decorator for the rule of KL(p || q) between two types, and subclasses without their own rule."""
    if not isinstance(type_p, type) and issubclass(type_p, Distribution):
        raise TypeError(f"Expected type_p to be a Distribution subclass but got {type_p}")
    if not isinstance(type_q, type) and issubclass(type_q, Distribution):
        raise TypeError(f"Expected type_q to be a Distribution subclass but got {type_q}")

    def decorator(fun: Callable) -> Callable:
        _KL_REGISTRY[type_p, type_q] = fun
        _KL_MEMOIZE.clear()
        return fun

    return decorator


def _dispatch_kl(type_p: type, type_q: type) -> Any:
    """The rule whose types are nearest; NotImplemented if there is none."""
    matches = [
        (super_p, super_q)
        for super_p, super_q in _KL_REGISTRY
        if issubclass(type_p, super_p) and issubclass(type_q, super_q)
    ]
    if not matches:
        return NotImplemented
    mro_p, mro_q = type_p.__mro__, type_q.__mro__
    left = min(matches, key=lambda pair: (mro_p.index(pair[0]), mro_q.index(pair[1])))
    right = min(matches, key=lambda pair: (mro_q.index(pair[1]), mro_p.index(pair[0])))
    if _KL_REGISTRY[left] is not _KL_REGISTRY[right]:
        warnings.warn(
            f"Ambiguous kl_divergence({type_p.__name__}, {type_q.__name__}). "
            f"Please register_kl({left[0].__name__}, {right[1].__name__})",
            RuntimeWarning,
            stacklevel=3,
        )
    return _KL_REGISTRY[left]


def kl_divergence(p: Distribution, q: Distribution) -> Any:
    """KL(p || q), of shape `batch_shape`."""
    pair = type(p), type(q)
    fun = _KL_MEMOIZE.get(pair)
    if fun is None:
        fun = _KL_MEMOIZE[pair] = _dispatch_kl(*pair)
    if fun is NotImplemented:
        raise NotImplementedError(
            f"No KL(p || q) is implemented for p type {pair[0].__name__} and q type {pair[1].__name__}"
        )
    return fun(p, q)


def _infinite_like(tensor: Any) -> Any:
    return torch.full_like(tensor, math.inf)


def _x_log_x(tensor: Any) -> Any:
    return torch.special.xlogy(tensor, tensor)


def _infinite_where(condition: Any, value: Any) -> Any:
    value[condition] = math.inf
    return value


# ---------------------------------------------------------------------- of one family


@register_kl(Bernoulli, Bernoulli)
def _bernoulli(p: Any, q: Any) -> Any:
    softplus = torch.nn.functional.softplus
    ones = p.probs * (softplus(-q.logits) - softplus(-p.logits))
    ones[q.probs == 0] = math.inf
    ones[p.probs == 0] = 0
    zeros = (1 - p.probs) * (softplus(q.logits) - softplus(p.logits))
    zeros[q.probs == 1] = math.inf
    zeros[p.probs == 1] = 0
    return ones + zeros


@register_kl(Beta, Beta)
def _beta(p: Any, q: Any) -> Any:
    total_p = p.concentration1 + p.concentration0
    total_q = q.concentration1 + q.concentration0
    normalizer_q = q.concentration1.lgamma() + q.concentration0.lgamma() + total_p.lgamma()
    normalizer_p = p.concentration1.lgamma() + p.concentration0.lgamma() + total_q.lgamma()
    ones = (p.concentration1 - q.concentration1) * torch.digamma(p.concentration1)
    zeros = (p.concentration0 - q.concentration0) * torch.digamma(p.concentration0)
    totals = (total_q - total_p) * torch.digamma(total_p)
    return normalizer_q - normalizer_p + ones + zeros + totals


@register_kl(Binomial, Binomial)
def _binomial(p: Any, q: Any) -> Any:
    if (p.total_count < q.total_count).any():
        raise NotImplementedError(
            "KL between Binomials where q.total_count > p.total_count is not implemented"
        )
    kl = p.total_count * (p.probs * (p.logits - q.logits) + (-p.probs).log1p() - (-q.probs).log1p())
    more = p.total_count > q.total_count
    kl[more] = _infinite_like(kl[more])
    return kl


@register_kl(Categorical, Categorical)
def _categorical(p: Any, q: Any) -> Any:
    t = p.probs * (p.logits - q.logits)
    t[(q.probs == 0).expand_as(t)] = math.inf
    t[(p.probs == 0).expand_as(t)] = 0
    return t.sum(-1)


@register_kl(OneHotCategorical, OneHotCategorical)
def _one_hot(p: Any, q: Any) -> Any:
    return _categorical(p._categorical, q._categorical)


@register_kl(ContinuousBernoulli, ContinuousBernoulli)
def _continuous_bernoulli(p: Any, q: Any) -> Any:
    linear = p.mean * (p.logits - q.logits)
    of_p = p._cont_bern_log_norm() + torch.log1p(-p.probs)
    of_q = -q._cont_bern_log_norm() - torch.log1p(-q.probs)
    return linear + of_p + of_q


@register_kl(Dirichlet, Dirichlet)
def _dirichlet(p: Any, q: Any) -> Any:
    total_p, total_q = p.concentration.sum(-1), q.concentration.sum(-1)
    normalizers = total_p.lgamma() - total_q.lgamma()
    each = (p.concentration.lgamma() - q.concentration.lgamma()).sum(-1)
    more = p.concentration - q.concentration
    expected_log = p.concentration.digamma() - total_p.digamma().unsqueeze(-1)
    return normalizers - each + (more * expected_log).sum(-1)


@register_kl(Exponential, Exponential)
def _exponential(p: Any, q: Any) -> Any:
    ratio = q.rate / p.rate
    return -ratio.log() + ratio - 1


@register_kl(ExponentialFamily, ExponentialFamily)
def _exponential_family(p: Any, q: Any) -> Any:
    if not type(p) == type(q):  # noqa: E721 - subclasses may have other natural parameters
        raise NotImplementedError(
            "The cross KL-divergence between different exponential families cannot "
            "                            be computed using Bregman divergences"
        )
    p_natural = [n.detach().requires_grad_() for n in p._natural_params]
    normalizer = p._log_normalizer(*p_natural)
    gradients = torch.autograd.grad(normalizer.sum(), p_natural, create_graph=True)
    result = q._log_normalizer(*q._natural_params) - normalizer
    for p_one, q_one, gradient in zip(p_natural, q._natural_params, gradients):
        result = result - _sum_rightmost((q_one - p_one) * gradient, len(q.event_shape))
    return result


@register_kl(Gamma, Gamma)
def _gamma(p: Any, q: Any) -> Any:
    rates = q.concentration * (p.rate / q.rate).log()
    normalizers = torch.lgamma(q.concentration) - torch.lgamma(p.concentration)
    logs = (p.concentration - q.concentration) * torch.digamma(p.concentration)
    means = (q.rate - p.rate) * (p.concentration / p.rate)
    return rates + normalizers + logs + means


@register_kl(Gumbel, Gumbel)
def _gumbel(p: Any, q: Any) -> Any:
    ratio = p.scale / q.scale
    q_loc, p_loc = q.loc / q.scale, p.loc / q.scale
    logs, scales = -ratio.log() - q_loc + p_loc, ratio * euler_constant
    exponential = torch.exp(q_loc + (1 + ratio).lgamma() - p_loc)
    return logs + scales + exponential - (1 + euler_constant)


@register_kl(Geometric, Geometric)
def _geometric(p: Any, q: Any) -> Any:
    return -p.entropy() - torch.log1p(-q.probs) / p.probs - q.logits


@register_kl(HalfNormal, HalfNormal)
def _half_normal(p: Any, q: Any) -> Any:
    return _normal(p.base_dist, q.base_dist)


@register_kl(Laplace, Laplace)
def _laplace(p: Any, q: Any) -> Any:
    ratio = p.scale / q.scale
    distance = (p.loc - q.loc).abs()
    logs, linear = -ratio.log(), distance / q.scale
    exponential = ratio * torch.exp(-distance / p.scale)
    return logs + linear + exponential - 1


@register_kl(Normal, Normal)
def _normal(p: Any, q: Any) -> Any:
    ratio = (p.scale / q.scale).pow(2)
    distance = ((p.loc - q.loc) / q.scale).pow(2)
    return 0.5 * (ratio + distance - 1 - ratio.log())


@register_kl(Pareto, Pareto)
def _pareto(p: Any, q: Any) -> Any:
    alpha_ratio = q.alpha / p.alpha
    scales, logs = q.alpha * (p.scale / q.scale).log(), -alpha_ratio.log()
    result = scales + logs + alpha_ratio - 1
    return _infinite_where(p.scale < q.scale, result)


@register_kl(Poisson, Poisson)
def _poisson(p: Any, q: Any) -> Any:
    return p.rate * (p.rate.log() - q.rate.log()) - (p.rate - q.rate)


@register_kl(Cauchy, Cauchy)
def _cauchy(p: Any, q: Any) -> Any:
    return ((p.scale + q.scale).pow(2) + (p.loc - q.loc).pow(2)).log() - (4 * p.scale * q.scale).log()


@register_kl(Uniform, Uniform)
def _uniform(p: Any, q: Any) -> Any:
    result = ((q.high - q.low) / (p.high - p.low)).log()
    return _infinite_where((q.low > p.low) | (q.high < p.high), result)


@register_kl(TransformedDistribution, TransformedDistribution)
def _transformed(p: Any, q: Any) -> Any:
    if p.transforms != q.transforms or p.event_shape != q.event_shape:
        raise NotImplementedError
    extra = len(p.event_shape) - len(p.base_dist.event_shape)
    return _sum_rightmost(kl_divergence(p.base_dist, q.base_dist), extra)


@register_kl(Independent, Independent)
def _independent(p: Any, q: Any) -> Any:
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise NotImplementedError
    return _sum_rightmost(kl_divergence(p.base_dist, q.base_dist), p.reinterpreted_batch_ndims)


# ---------------------------------------------------------------------- normal vectors


def _squared_norm(matrix: Any) -> Any:
    """tr(X X') of a batch of matrices."""
    n, m = matrix.shape[-2:]
    return matrix.reshape(-1, n * m).pow(2).sum(-1).reshape(matrix.shape[:-2])


def _check_event_shapes(p: Any, q: Any, name: str) -> None:
    if p.event_shape != q.event_shape:
        raise ValueError(f"KL-divergence between two {name} with different event shapes cannot be computed")


def _half_log_det(p: Any) -> Any:
    return p._unbroadcasted_scale_tril.diagonal(dim1=-2, dim2=-1).log().sum(-1)


def _lowrank_log_det(p: Any) -> Any:
    return _batch_lowrank_logdet(p._unbroadcasted_cov_factor, p._unbroadcasted_cov_diag, p._capacitance_tril)


def _lowrank_distance(p: Any, q: Any) -> Any:
    return _batch_lowrank_mahalanobis(
        q._unbroadcasted_cov_factor, q._unbroadcasted_cov_diag, q.loc - p.loc, q._capacitance_tril
    )


def _lowrank_correction(q: Any) -> Any:
    """A with q's precision = 1 / diag - A' A (Woodbury)."""
    scaled = q._unbroadcasted_cov_factor.mT / q._unbroadcasted_cov_diag.unsqueeze(-2)
    return torch.linalg.solve_triangular(q._capacitance_tril, scaled, upper=False)


@register_kl(MultivariateNormal, MultivariateNormal)
def _multivariate_normal(p: Any, q: Any) -> Any:
    _check_event_shapes(p, q, "Multivariate Normals")
    log_dets = _half_log_det(q) - _half_log_det(p)
    n, factors = p.event_shape[0], (q._unbroadcasted_scale_tril, p._unbroadcasted_scale_tril)
    batch = torch.broadcast_shapes(*[factor.shape[:-2] for factor in factors])
    q_tril, p_tril = (factor.expand(batch + (n, n)) for factor in factors)
    trace = _squared_norm(torch.linalg.solve_triangular(q_tril, p_tril, upper=False))
    distance = _batch_mahalanobis(q._unbroadcasted_scale_tril, q.loc - p.loc)
    return log_dets + 0.5 * (trace + distance - n)


@register_kl(LowRankMultivariateNormal, LowRankMultivariateNormal)
def _lowrank(p: Any, q: Any) -> Any:
    _check_event_shapes(p, q, "Low Rank Multivariate Normals")
    A = _lowrank_correction(q)
    p_diag, q_diag = p._unbroadcasted_cov_diag, q._unbroadcasted_cov_diag
    p_factor = p._unbroadcasted_cov_factor
    trace = (
        (p_diag / q_diag).sum(-1)
        + _squared_norm(p_factor * q_diag.rsqrt().unsqueeze(-1))
        - _squared_norm(A * p_diag.sqrt().unsqueeze(-2))
        - _squared_norm(A.matmul(p_factor))
    )
    log_det = _lowrank_log_det(q) - _lowrank_log_det(p)
    return 0.5 * (log_det + trace + _lowrank_distance(p, q) - p.event_shape[0])


@register_kl(MultivariateNormal, LowRankMultivariateNormal)
def _multivariate_normal_lowrank(p: Any, q: Any) -> Any:
    _check_event_shapes(p, q, "(Low Rank) Multivariate Normals")
    p_tril = p._unbroadcasted_scale_tril
    trace = _squared_norm(p_tril * q._unbroadcasted_cov_diag.rsqrt().unsqueeze(-1)) - _squared_norm(
        _lowrank_correction(q).matmul(p_tril)
    )
    log_det = _lowrank_log_det(q) - 2 * _half_log_det(p)
    return 0.5 * (log_det + trace + _lowrank_distance(p, q) - p.event_shape[0])


@register_kl(LowRankMultivariateNormal, MultivariateNormal)
def _lowrank_multivariate_normal(p: Any, q: Any) -> Any:
    _check_event_shapes(p, q, "(Low Rank) Multivariate Normals")
    q_tril = q._unbroadcasted_scale_tril
    solve = torch.linalg.solve_triangular
    trace = _squared_norm(solve(q_tril, p._unbroadcasted_cov_factor, upper=False)) + _squared_norm(
        solve(q_tril, torch.diag_embed(p._unbroadcasted_cov_diag.sqrt()), upper=False)
    )
    distance = _batch_mahalanobis(q_tril, q.loc - p.loc)
    log_det = 2 * _half_log_det(q) - _lowrank_log_det(p)
    return 0.5 * (log_det + trace + distance - p.event_shape[0])


# ---------------------------------------------------------------------- infinite: q excludes values of p


def _register_infinite(type_p: type, like: Callable[[Any], Any], *types_q: type) -> None:
    for type_q in types_q:
        register_kl(type_p, type_q)(lambda p, q: _infinite_like(like(p)))


_register_infinite(Beta, lambda p: p.concentration1, Pareto)
_register_infinite(ContinuousBernoulli, lambda p: p.probs, Pareto)
_register_infinite(Exponential, lambda p: p.rate, Beta, ContinuousBernoulli, Pareto, Uniform)
_register_infinite(Gamma, lambda p: p.concentration, Beta, ContinuousBernoulli, Pareto, Uniform)
_register_infinite(Gumbel, lambda p: p.loc, Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform)
_register_infinite(Laplace, lambda p: p.loc, Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform)
_register_infinite(Normal, lambda p: p.loc, Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform)
_register_infinite(Pareto, lambda p: p.scale, Beta, ContinuousBernoulli, Uniform)
_register_infinite(Poisson, lambda p: p.rate, Bernoulli, Binomial)


# ---------------------------------------------------------------------- of two families


@register_kl(Bernoulli, Poisson)
def _bernoulli_poisson(p: Any, q: Any) -> Any:
    return -p.entropy() - (p.probs * q.rate.log() - q.rate)


@register_kl(Beta, ContinuousBernoulli)
def _beta_continuous_bernoulli(p: Any, q: Any) -> Any:
    return -p.entropy() - p.mean * q.logits - torch.log1p(-q.probs) - q._cont_bern_log_norm()


@register_kl(Beta, Exponential)
def _beta_exponential(p: Any, q: Any) -> Any:
    return -p.entropy() - q.rate.log() + q.rate * p.mean


@register_kl(Beta, Gamma)
def _beta_gamma(p: Any, q: Any) -> Any:
    expected_log = p.concentration1.digamma() - (p.concentration1 + p.concentration0).digamma()
    normalizer = q.concentration.lgamma() - q.concentration * q.rate.log()
    return -p.entropy() + normalizer - (q.concentration - 1) * expected_log + q.rate * p.mean


@register_kl(Beta, Normal)
def _beta_normal(p: Any, q: Any) -> Any:
    variance = q.scale.pow(2)
    squares = (p.variance + p.mean.pow(2)) * 0.5 - q.loc * p.mean + q.loc.pow(2) * 0.5
    return -p.entropy() + 0.5 * (variance * 2 * math.pi).log() + squares / variance


@register_kl(Beta, Uniform)
def _beta_uniform(p: Any, q: Any) -> Any:
    return _infinite_where((q.low > 0) | (q.high < 1), -p.entropy() + (q.high - q.low).log())


@register_kl(ContinuousBernoulli, Exponential)
def _continuous_bernoulli_exponential(p: Any, q: Any) -> Any:
    return -p.entropy() - torch.log(q.rate) + q.rate * p.mean


@register_kl(ContinuousBernoulli, Normal)
def _continuous_bernoulli_normal(p: Any, q: Any) -> Any:
    normalizer = 0.5 * (math.log(2.0 * math.pi) + torch.square(q.loc / q.scale)) + torch.log(q.scale)
    squares = p.variance + torch.square(p.mean) - 2.0 * q.loc * p.mean
    return -p.entropy() + normalizer + squares / (2.0 * torch.square(q.scale))


@register_kl(ContinuousBernoulli, Uniform)
def _continuous_bernoulli_uniform(p: Any, q: Any) -> Any:
    result = -p.entropy() + (q.high - q.low).log()
    return _infinite_where((q.low >= 0) | (q.high <= 1), result)


@register_kl(Exponential, Gamma)
def _exponential_gamma(p: Any, q: Any) -> Any:
    ratio = q.rate / p.rate
    return (
        -q.concentration * torch.log(ratio)
        + ratio
        + q.concentration.lgamma()
        + q.concentration * euler_constant
        - (1 + euler_constant)
    )


@register_kl(Exponential, Gumbel)
def _exponential_gumbel(p: Any, q: Any) -> Any:
    product = p.rate * q.scale
    ratio = q.loc / q.scale
    return product.log() - 1 - ratio + torch.exp(ratio) * product / (product + 1) + product.reciprocal()


@register_kl(Exponential, Normal)
def _exponential_normal(p: Any, q: Any) -> Any:
    variance, rate_squared = q.scale.pow(2), p.rate.pow(2)
    squares = rate_squared.reciprocal() - q.loc / p.rate + q.loc.pow(2) * 0.5
    return 0.5 * torch.log(rate_squared * variance * 2 * math.pi) - 1 + squares / variance


@register_kl(Gamma, Exponential)
def _gamma_exponential(p: Any, q: Any) -> Any:
    return -p.entropy() - q.rate.log() + q.rate * p.concentration / p.rate


@register_kl(Gamma, Gumbel)
def _gamma_gumbel(p: Any, q: Any) -> Any:
    product = p.rate * q.scale
    ratio = q.loc / q.scale
    shape = (p.concentration - 1) * p.concentration.digamma() - p.concentration.lgamma() - p.concentration
    exponential = torch.exp(ratio) * (1 + product.reciprocal()).pow(-p.concentration)
    return shape + product.log() + p.concentration / product + exponential - ratio


@register_kl(Gamma, Normal)
def _gamma_normal(p: Any, q: Any) -> Any:
    variance, rate_squared = q.scale.pow(2), p.rate.pow(2)
    squares = (
        0.5 * (p.concentration.pow(2) + p.concentration) / rate_squared
        - q.loc * p.concentration / p.rate
        + 0.5 * q.loc.pow(2)
    )
    return (
        0.5 * torch.log(rate_squared * variance * 2 * math.pi)
        - p.concentration
        - p.concentration.lgamma()
        + (p.concentration - 1) * p.concentration.digamma()
        + squares / variance
    )


@register_kl(Gumbel, Normal)
def _gumbel_normal(p: Any, q: Any) -> Any:
    ratio = p.scale / q.scale
    spread = (math.pi * ratio * 0.5).pow(2) / 3
    distance = ((p.loc + p.scale * euler_constant - q.loc) / q.scale).pow(2) * 0.5
    return -(ratio / math.sqrt(2 * math.pi)).log() + spread + distance - (euler_constant + 1)


@register_kl(Laplace, Normal)
def _laplace_normal(p: Any, q: Any) -> Any:
    variance = q.scale.pow(2)
    ratio = p.scale.pow(2) / variance
    squares = 0.5 * p.loc.pow(2) - p.loc * q.loc + 0.5 * q.loc.pow(2)
    return -0.5 * torch.log(2 * ratio / math.pi) + ratio + squares / variance - 1


@register_kl(Normal, Gumbel)
def _normal_gumbel(p: Any, q: Any) -> Any:
    mean, loc = p.loc / q.scale, q.loc / q.scale
    spread = (p.scale / q.scale).pow(2)
    exponential = torch.exp(-mean + 0.5 * spread + loc)
    return -spread.log() * 0.5 + mean - loc + exponential - 0.5 * (1 + math.log(2 * math.pi))


@register_kl(Normal, Laplace)
def _normal_laplace(p: Any, q: Any) -> Any:
    difference = p.loc - q.loc
    scaled = difference / p.scale
    # The mean of |x - q.loc|, a folded normal variable.
    distance = math.sqrt(2 / math.pi) * p.scale * torch.exp(-0.5 * scaled.pow(2))
    distance = distance + difference * torch.erf(math.sqrt(0.5) * scaled)
    return -(p.scale / q.scale).log() + distance / q.scale - 0.5 * (1 + math.log(0.5 * math.pi))


@register_kl(Pareto, Exponential)
def _pareto_exponential(p: Any, q: Any) -> Any:
    product = p.scale * q.rate
    result = (p.alpha / product).log() - p.alpha.reciprocal() + p.alpha * product / (p.alpha - 1) - 1
    return _infinite_where(p.alpha <= 1, result)


@register_kl(Pareto, Gamma)
def _pareto_gamma(p: Any, q: Any) -> Any:
    expected_log = p.scale.log() + p.alpha.reciprocal()
    result = (
        p.alpha.log()
        - expected_log
        + q.concentration.lgamma()
        - q.concentration * q.rate.log()
        + (1 - q.concentration) * expected_log
        + q.rate * p.alpha * p.scale / (p.alpha - 1)
        - 1
    )
    return _infinite_where(p.alpha <= 1, result)


@register_kl(Pareto, Normal)
def _pareto_normal(p: Any, q: Any) -> Any:
    common = p.scale / (p.alpha - 1)
    squares = p.alpha * common.pow(2) / (p.alpha - 2) + (p.alpha * common - q.loc).pow(2)
    result = (
        (math.sqrt(2 * math.pi) * q.scale * p.alpha / p.scale).log()
        - p.alpha.reciprocal()
        + squares / (2 * q.scale.pow(2))
        - 1
    )
    return _infinite_where(p.alpha <= 2, result)


@register_kl(Uniform, Beta)
def _uniform_beta(p: Any, q: Any) -> Any:
    width = p.high - p.low
    log_x = (_x_log_x(p.high) - _x_log_x(p.low) - width) / width
    log_1_x = (_x_log_x(1 - p.high) - _x_log_x(1 - p.low) + width) / width
    normalizer = (
        q.concentration1.lgamma() + q.concentration0.lgamma() - (q.concentration1 + q.concentration0).lgamma()
    )
    result = (q.concentration0 - 1) * log_1_x + normalizer - width.log() - (q.concentration1 - 1) * log_x
    return _infinite_where((p.high > 1) | (p.low < 0), result)


@register_kl(Uniform, ContinuousBernoulli)
def _uniform_continuous_bernoulli(p: Any, q: Any) -> Any:
    result = -p.entropy() - p.mean * q.logits - torch.log1p(-q.probs) - q._cont_bern_log_norm()
    return _infinite_where((p.high >= 1) | (p.low <= 0), result)


@register_kl(Uniform, Exponential)
def _uniform_exponential(p: Any, q: Any) -> Any:
    result = q.rate * (p.high + p.low) / 2 - ((p.high - p.low) * q.rate).log()
    return _infinite_where(p.low < 0, result)


@register_kl(Uniform, Gamma)
def _uniform_gamma(p: Any, q: Any) -> Any:
    width = p.high - p.low
    log_x = (_x_log_x(p.high) - _x_log_x(p.low) - width) / width
    result = (
        -width.log()
        + q.concentration.lgamma()
        - q.concentration * q.rate.log()
        + (1 - q.concentration) * log_x
        + q.rate * (p.high + p.low) / 2
    )
    return _infinite_where(p.low < 0, result)


@register_kl(Uniform, Gumbel)
def _uniform_gumbel(p: Any, q: Any) -> Any:
    common = q.scale / (p.high - p.low)
    high, low = (p.high - q.loc) / q.scale, (p.low - q.loc) / q.scale
    return common.log() + 0.5 * (high + low) - common * (torch.exp(-high) - torch.exp(-low))


@register_kl(Uniform, Normal)
def _uniform_normal(p: Any, q: Any) -> Any:
    width = p.high - p.low
    squares = width.pow(2) / 12 + ((p.high + p.low - 2 * q.loc) / 2).pow(2)
    return (math.sqrt(math.pi * 2) * q.scale / width).log() + 0.5 * squares / q.scale.pow(2)


@register_kl(Uniform, Pareto)
def _uniform_pareto(p: Any, q: Any) -> Any:
    width = p.high - p.low
    log_x = (_x_log_x(p.high) - _x_log_x(p.low) - width) / width
    result = log_x * (q.alpha + 1) - (q.alpha * q.scale.pow(q.alpha) * width).log()
    return _infinite_where(p.low < q.scale, result)
