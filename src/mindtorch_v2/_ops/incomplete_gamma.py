"""Incomplete gamma functions, and the in-place forms of `polygamma` and `float_power`."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _dispatch
from .._dispatch import function, op
from .._dtype import LOW_FLOATS, complex128, float64
from .._graph import grad_state
from ._namespace import functions as F


def _gamma(aten_name: str, inplace: str, scipy_name: str) -> Any:
    name = aten_name.removeprefix("aten::")

    @op(
        f"{aten_name}(Tensor self, Tensor other) -> Tensor",
        promote="same",
        numbers=False,
        inplace=inplace,
        out=True,
    )
    def kernel(self: np.ndarray, other: np.ndarray) -> np.ndarray:
        from scipy import special

        array = np.asarray(self)
        if array.dtype.kind not in "fV":
            abbr = _dispatch._dtype.BY_NUM[array.dtype.num]._abbr
            raise NotImplementedError(f"\"{name}_cpu\" not implemented for '{abbr}'")
        if array.dtype in LOW_FLOATS:
            return getattr(special, scipy_name)(
                array.astype(np.float32), np.asarray(other, np.float32)
            ).astype(array.dtype)
        return getattr(special, scipy_name)(array, np.asarray(other, array.dtype))

    return kernel


def _no_derivative(name: str) -> Any:
    def rule(g: Any) -> Any:
        raise NotImplementedError(f"the derivative for '{name}: input' is not implemented.")

    return rule


igamma = _gamma("aten::igamma", "aten::igamma_", "gammainc")
igammac = _gamma("aten::igammac", "aten::igammac_", "gammaincc")
igamma.derivative(
    self=_no_derivative("igamma"),
    other=lambda g, self, other: g * F.exp((self - 1) * F.log(other) - other - F.lgamma(self)),
)
igammac.derivative(
    self=_no_derivative("igammac"),
    other=lambda g, self, other: -g * F.exp((self - 1) * F.log(other) - other - F.lgamma(self)),
)


@op("aten::polygamma_(Tensor(a!) self, int n) -> Tensor(a!)", on="tensors", expose="no")
def _polygamma_(self: Any, n: int) -> Any:
    return self.copy_(F.polygamma(n, self))


@function(expose="method")
def polygamma_(self: Any, n: int) -> Any:
    """Replace each element by its polygamma of order n."""
    if grad_state.enabled and self._rg:  # the backward pass needs the values from before the write
        return self.copy_(F.polygamma(n, F.clone(self)))
    return _polygamma_(self, n)


@function(expose="method")
def float_power_(self: Any, exponent: Any) -> Any:
    """Raise to a power in place; only double tensors hold the result."""
    is_tensor = isinstance(exponent, _dispatch.Tensor)
    complex_ = self.dtype.is_complex or (
        exponent.dtype.is_complex if is_tensor else isinstance(exponent, complex)
    )
    wanted = complex128 if complex_ else float64
    if self.dtype is not wanted:
        raise RuntimeError(
            f"the base given to float_power_ has dtype {self.dtype._abbr} but the operation's result requires dtype {wanted._abbr}"
        )
    return self.pow_(exponent.to(wanted) if is_tensor else exponent)
