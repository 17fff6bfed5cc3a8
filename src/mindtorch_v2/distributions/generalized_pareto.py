"""The generalised Pareto distribution."""

from __future__ import annotations

import math
from typing import Any

import mindtorch_v2 as torch

from . import constraints
from .distribution import Distribution
from .utils import broadcast_all

__all__ = ["GeneralizedPareto"]


class GeneralizedPareto(Distribution):
    """Exceedances over `loc`: a bounded tail, an exponential or a power law by `concentration`'s sign."""

    arg_constraints = {
        "loc": constraints.real,
        "scale": constraints.positive,
        "concentration": constraints.real,
    }
    has_rsample = True

    def __init__(self, loc: Any, scale: Any, concentration: Any, validate_args: bool | None = None) -> None:
        self.loc, self.scale, self.concentration = broadcast_all(loc, scale, concentration)
        super().__init__(self.loc.size(), validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> GeneralizedPareto:
        names = {"loc": 0, "scale": 0, "concentration": 0}
        return self._expand_parameters(GeneralizedPareto, batch_shape, _instance, names)

    def _is_exponential(self) -> Any:
        """Where the concentration is zero, so that a limit replaces the formula."""
        return torch.isclose(self.concentration, torch.zeros_like(self.concentration))

    def _safe_concentration(self) -> Any:
        return torch.where(self._is_exponential(), torch.ones_like(self.concentration), self.concentration)

    def rsample(self, sample_shape: Any = torch.Size()) -> Any:
        shape = self._extended_shape(sample_shape)
        return self.icdf(torch.rand(shape, dtype=self.loc.dtype, device=self.loc.device))

    def log_prob(self, value: Any) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        z = self._z(value)
        safe = self._safe_concentration()
        power = (1 + 1 / safe) * torch.log1p(safe * z)
        return -self.scale.log() - torch.where(self._is_exponential(), z, power)

    def log_survival_function(self, value: Any) -> Any:
        """The log of the probability of values above `value`."""
        if self._validate_args:
            self._validate_sample(value)
        z = self._z(value)
        safe = self._safe_concentration()
        return torch.where(self._is_exponential(), -z, -torch.log1p(safe * z) / safe)

    def log_cdf(self, value: Any) -> Any:
        """The log of the probability of values up to `value`."""
        return torch.log1p(-torch.exp(self.log_survival_function(value)))

    def cdf(self, value: Any) -> Any:
        return torch.exp(self.log_cdf(value))

    def icdf(self, value: Any) -> Any:
        safe = self._safe_concentration()
        logu = torch.log1p(-value)
        power = self.loc + self.scale / safe * torch.expm1(-safe * logu)
        return torch.where(self._is_exponential(), self.loc - self.scale * logu, power)

    def _z(self, x: Any) -> Any:
        return (x - self.loc) / self.scale

    @property
    def mean(self) -> Any:
        finite = self.loc + self.scale / (1 - self.concentration)
        return torch.where(self.concentration < 1, finite, math.nan)

    @property
    def variance(self) -> Any:
        finite = self.scale**2 / ((1 - self.concentration) ** 2 * (1 - 2 * self.concentration))
        return torch.where(self.concentration < 0.5, finite, math.nan)

    def entropy(self) -> Any:
        return torch.log(self.scale) + self.concentration + 1

    @property
    def mode(self) -> Any:
        return self.loc

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> constraints.Constraint:
        upper = torch.where(self.concentration < 0, self.loc - self.scale / self.concentration, math.inf)
        return constraints.interval(self.loc, upper)
