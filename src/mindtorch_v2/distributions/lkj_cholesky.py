"""The LKJ distribution of Cholesky factors of correlation matrices."""

from __future__ import annotations

import math
from typing import Any

import mindtorch_v2 as torch

from . import constraints
from .beta import Beta
from .distribution import Distribution
from .utils import broadcast_all

__all__ = ["LKJCholesky"]


class LKJCholesky(Distribution):
    """Lower Cholesky factors of correlation matrices; `concentration` 1 is uniform over the matrices."""

    arg_constraints = {"concentration": constraints.positive}
    support = constraints.corr_cholesky

    def __init__(self, dim: int, concentration: Any = 1.0, validate_args: bool | None = None) -> None:
        if dim < 2:
            raise ValueError(f"Expected dim to be an integer greater than or equal to 2. Found dim={dim}.")
        self.dim = dim
        (self.concentration,) = broadcast_all(concentration)
        self._beta = self._row_lengths()
        super().__init__(self.concentration.size(), torch.Size((dim, dim)), validate_args)

    def _row_lengths(self) -> Beta:
        """The squared length of each row without its diagonal, in the onion method."""
        marginal = self.concentration + 0.5 * (self.dim - 2)
        options = {"dtype": self.concentration.dtype, "device": self.concentration.device}
        offset = torch.arange(self.dim - 1, **options)
        offset = torch.cat([offset.new_zeros((1,)), offset])
        return Beta(offset + 0.5, marginal.unsqueeze(-1) - 0.5 * offset)

    def expand(self, batch_shape: Any, _instance: Any = None) -> LKJCholesky:
        new = self._get_checked_instance(LKJCholesky, _instance)
        batch_shape = torch.Size(batch_shape)
        new.dim = self.dim
        new._beta = self._beta.expand(batch_shape + (self.dim,))
        return self._expand_parameters(LKJCholesky, batch_shape, new, {"concentration": 0})

    def sample(self, sample_shape: Any = torch.Size()) -> Any:
        y = self._beta.sample(sample_shape).unsqueeze(-1)
        options = {"dtype": y.dtype, "device": y.device}
        normal = torch.randn(self._extended_shape(sample_shape), **options).tril(-1)
        direction = normal / normal.norm(dim=-1, keepdim=True)
        direction[..., 0, :].fill_(0.0)  # the first row is (1, 0, 0, ...)
        w = torch.sqrt(y) * direction
        diagonal = torch.clamp(1 - torch.sum(w**2, dim=-1), min=torch.finfo(w.dtype).tiny).sqrt()
        w += torch.diag_embed(diagonal)
        return w

    def log_prob(self, value: Any) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        diagonal = value.diagonal(dim1=-1, dim2=-2)[..., 1:]
        order = torch.arange(2, self.dim + 1, device=self.concentration.device)
        order = 2 * (self.concentration - 1).unsqueeze(-1) + self.dim - order
        unnormalized = torch.sum(order * diagonal.log(), dim=-1)
        rows = self.dim - 1
        alpha = self.concentration + 0.5 * rows
        denominator = torch.lgamma(alpha) * rows
        log_normalizer = 0.5 * rows * math.log(math.pi) + torch.mvlgamma(alpha - 0.5, rows) - denominator
        return unnormalized - log_normalizer
