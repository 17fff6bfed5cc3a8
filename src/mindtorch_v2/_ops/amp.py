"""Gradient scaling: unscale gradients and look for infinities in one pass, and adapt the scale."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._dispatch import composite
from .._graph import storage_of


def _check_one_element(tensor: Any, name: str) -> None:
    if tensor._array.size != 1:
        raise RuntimeError(f"{name} must be a 1-element tensor.")


@composite(
    "aten::_amp_foreach_non_finite_check_and_unscale_"
    "(Tensor(a!)[] self, Tensor(b!) found_inf, Tensor inv_scale) -> ()",
    expose="function",
)
def _unscale(self: Any, found_inf: Any, inv_scale: Any) -> None:
    """Multiply every tensor by `inv_scale`; set `found_inf` to 1 if one holds an infinity or NaN."""
    _check_one_element(inv_scale, "inv_scale")
    _check_one_element(found_inf, "found_inf")
    factor = inv_scale._array.item()
    for tensor in self:
        array = tensor._array
        if not np.isfinite(array).all():
            found_inf._array[...] = 1
        np.multiply(array, array.dtype.type(factor), out=array)
        storage_of(tensor)._version += 1
    storage_of(found_inf)._version += 1


@composite(
    "aten::_amp_update_scale_(Tensor(a!) self, Tensor(b!) growth_tracker, Tensor found_inf, "
    "float scale_growth_factor, float scale_backoff_factor, int growth_interval) -> Tensor(a!)",
    expose="function",
)
def _update_scale(
    self: Any,
    growth_tracker: Any,
    found_inf: Any,
    scale_growth_factor: float,
    scale_backoff_factor: float,
    growth_interval: int,
) -> Any:
    """Shrink the scale after an overflow, grow it after `growth_interval` steps without one."""
    _check_one_element(growth_tracker, "growth_tracker")
    _check_one_element(self, "current_scale")
    _check_one_element(found_inf, "found_inf")
    if growth_tracker._array.dtype != np.int32:
        raise RuntimeError("growth_tracker must be an int tensor.")
    scale, tracker = self._array, growth_tracker._array
    if found_inf._array.item():
        scale *= scale_backoff_factor
        tracker[...] = 0
    else:
        good = tracker.item() + 1
        if good == growth_interval:
            with np.errstate(over="ignore"):
                grown = np.float32(scale.item()) * np.float32(scale_growth_factor)
            if np.isfinite(grown):
                scale[...] = grown
            good = 0
        tracker[...] = good
    storage_of(self)._version += 1
    storage_of(growth_tracker)._version += 1
    return self
