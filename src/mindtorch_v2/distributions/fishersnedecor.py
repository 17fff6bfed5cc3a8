"""The Fisher-Snedecor (F) distribution."""

from __future__ import annotations

import math
from typing import Any

import mindtorch_v2 as torch

from . import constraints
from .distribution import Distribution
from .gamma import Gamma
from .utils import broadcast_all

__all__ = ["FisherSnedecor"]


class FisherSnedecor(Distribution):
    """The ratio of two scaled chi-squared variables with `df1` and `df2` degrees of freedom."""

    arg_constraints = {"df1": constraints.positive, "df2": constraints.positive}
    support = constraints.positive
    has_rsample = True

    def __init__(self, df1: Any, df2: Any, validate_args: bool | None = None) -> None:
        self.df1, self.df2 = broadcast_all(df1, df2)
        self._gamma1 = Gamma(self.df1 * 0.5, self.df1)
        self._gamma2 = Gamma(self.df2 * 0.5, self.df2)
        super().__init__(self.df1.size(), validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> FisherSnedecor:
        new = self._get_checked_instance(FisherSnedecor, _instance)
        new._gamma1 = self._gamma1.expand(torch.Size(batch_shape))
        new._gamma2 = self._gamma2.expand(torch.Size(batch_shape))
        return self._expand_parameters(FisherSnedecor, batch_shape, new, {"df1": 0, "df2": 0})

    @property
    def mean(self) -> Any:
        return torch.where(self.df2 > 2, self.df2 / (self.df2 - 2), math.nan)

    @property
    def mode(self) -> Any:
        mode = (self.df1 - 2) / self.df1 * self.df2 / (self.df2 + 2)
        return torch.where(self.df1 <= 2, math.nan, mode)

    @property
    def variance(self) -> Any:
        df2 = torch.where(self.df2 <= 4, math.nan, self.df2)
        return 2 * df2.pow(2) * (self.df1 + df2 - 2) / (self.df1 * (df2 - 2).pow(2) * (df2 - 4))

    def rsample(self, sample_shape: Any = torch.Size()) -> Any:
        x1 = self._gamma1.rsample(sample_shape).view(self._extended_shape(sample_shape))
        x2 = self._gamma2.rsample(sample_shape).view(self._extended_shape(sample_shape))
        tiny = torch.finfo(x2.dtype).tiny
        x2.clamp_(min=tiny)
        return (x1 / x2).clamp_(min=tiny)

    def log_prob(self, value: Any) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        half1, half2 = self.df1 * 0.5, self.df2 * 0.5
        ratio = self.df1 / self.df2
        normalizer = (half1 + half2).lgamma() - half1.lgamma() - half2.lgamma()
        powers = half1 * ratio.log() + (half1 - 1) * torch.log(value)
        tail = (half1 + half2) * torch.log1p(ratio * value)
        return normalizer + powers - tail
