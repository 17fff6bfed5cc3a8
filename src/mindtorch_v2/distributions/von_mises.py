"""The von Mises distribution."""

from __future__ import annotations

import math
from typing import Any

import mindtorch_v2 as torch

from . import constraints
from .distribution import Distribution
from .utils import broadcast_all, lazy_property

__all__ = ["VonMises"]


# Polynomials of Abramowitz and Stegun, 9.8.1 to 9.8.4, for the modified Bessel functions of order 0 and 1, lowest power first:
# in (x / 3.75)^2 below 3.75, in 3.75 / x above it.
_SMALL = (
    (1.0, 3.5156229, 3.0899424, 1.2067492, 0.2659732, 0.0360768, 0.0045813),
    (0.5, 0.87890594, 0.51498869, 0.15084934, 0.02658733, 0.00301532, 0.00032411),
)
_LARGE = (
    (
        0.39894228,
        0.01328592,
        0.00225319,
        -0.00157565,
        0.00916281,
        -0.02057706,
        0.02635537,
        -0.01647633,
        0.00392377,
    ),
    (
        0.39894228,
        -0.03988024,
        -0.00362018,
        0.00163801,
        -0.01031555,
        0.02282967,
        -0.02895312,
        0.01787654,
        -0.00420059,
    ),
)


def _polynomial(y: Any, coefficients: tuple[float, ...]) -> Any:
    result: Any = coefficients[-1]
    for coefficient in reversed(coefficients[:-1]):
        result = coefficient + y * result
    return result


def _log_bessel(x: Any, order: int) -> Any:
    """log of the modified Bessel function of the first kind, of order 0 or 1."""
    y = x / 3.75
    y = y * y
    small = _polynomial(y, _SMALL[order])
    small = (x.abs() * small if order else small).log()
    y = 3.75 / x
    large = x - 0.5 * x.log() + _polynomial(y, _LARGE[order]).log()
    return torch.where(x < 3.75, small, large)


@torch.no_grad()
def _rejection_sample(loc: Any, concentration: Any, proposal_r: Any, x: Any) -> Any:
    """Best and Fisher's method: fill `x` with angles, drawing again where they are rejected."""
    done = torch.zeros(x.shape, dtype=torch.bool, device=loc.device)
    while not done.all():
        u1, u2, u3 = torch.rand((3, *x.shape), dtype=loc.dtype, device=loc.device).unbind()
        z = torch.cos(math.pi * u1)
        f = (1 + proposal_r * z) / (proposal_r + z)
        c = concentration * (proposal_r - f)
        accept = ((c * (2 - c) - u2) > 0) | ((c / u2).log() + 1 - c >= 0)
        if accept.any():
            x = torch.where(accept, (u3 - 0.5).sign() * f.acos(), x)
            done = done | accept
    return (x + math.pi + loc) % (2 * math.pi) - math.pi


class VonMises(Distribution):
    """Angles around `loc`, the tighter the larger `concentration`."""

    arg_constraints = {"loc": constraints.real, "concentration": constraints.positive}
    support = constraints.real
    has_rsample = False

    def __init__(self, loc: Any, concentration: Any, validate_args: bool | None = None) -> None:
        self.loc, self.concentration = broadcast_all(loc, concentration)
        super().__init__(self.loc.shape, torch.Size(), validate_args)

    def log_prob(self, value: Any) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        log_prob = self.concentration * torch.cos(value - self.loc)
        return log_prob - math.log(2 * math.pi) - _log_bessel(self.concentration, order=0)

    @lazy_property
    def _loc(self) -> Any:
        return self.loc.to(torch.double)

    @lazy_property
    def _concentration(self) -> Any:
        return self.concentration.to(torch.double)

    @lazy_property
    def _proposal_r(self) -> Any:
        kappa = self._concentration
        tau = 1 + (1 + 4 * kappa**2).sqrt()
        rho = (tau - (2 * tau).sqrt()) / (2 * kappa)
        proposal = (1 + rho**2) / (2 * rho)
        series = 1 / kappa + kappa  # for small kappa
        return torch.where(kappa < 1e-5, series, proposal)

    @torch.no_grad()
    def sample(self, sample_shape: Any = torch.Size()) -> Any:
        shape = self._extended_shape(sample_shape)
        x = torch.empty(shape, dtype=self._loc.dtype, device=self.loc.device)
        return _rejection_sample(self._loc, self._concentration, self._proposal_r, x).to(self.loc.dtype)

    def expand(self, batch_shape: Any, _instance: Any = None) -> VonMises:
        validate_args = self.__dict__.get("_validate_args")
        loc = self.loc.expand(batch_shape)
        concentration = self.concentration.expand(batch_shape)
        return type(self)(loc, concentration, validate_args=validate_args)

    @property
    def mean(self) -> Any:
        return self.loc

    @property
    def mode(self) -> Any:
        return self.loc

    @lazy_property
    def variance(self) -> Any:
        """The circular variance."""
        return 1 - (_log_bessel(self.concentration, order=1) - _log_bessel(self.concentration, order=0)).exp()
