"""Distributions whose parameter has two forms, probabilities and logits; one is computed from the other on
demand.
"""

from __future__ import annotations

from typing import Any

from .distribution import Distribution
from .utils import lazy_property, logits_to_probs, probs_to_logits


def require_one(probs: Any, logits: Any) -> None:
    """Raise ValueError unless exactly one of the two is None."""
    if (probs is None) == (logits is None):
        raise ValueError("Either `probs` or `logits` must be specified, but not both.")


class ProbsOrLogits(Distribution):
    """Holds `probs` or `logits` and computes the other; `_param` is the one that was passed in."""

    _binary = True
    _param: Any

    @lazy_property
    def logits(self) -> Any:
        """Log odds, or log probabilities up to a constant."""
        return probs_to_logits(self.probs, is_binary=self._binary)

    @lazy_property
    def probs(self) -> Any:
        """Probabilities."""
        return logits_to_probs(self.logits, is_binary=self._binary)

    @property
    def param_shape(self) -> Any:
        """The shape of the parameter."""
        return self._param.size()

    def _new(self, *args: Any, **kwargs: Any) -> Any:
        return self._param.new(*args, **kwargs)

    def _keep_param(self) -> None:
        self._param = self.__dict__["probs"] if "probs" in self.__dict__ else self.__dict__["logits"]
