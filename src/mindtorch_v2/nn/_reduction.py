"""Reductions of losses: names and old boolean flags in, aten's integers (none 0, mean 1, sum 2) out."""

from __future__ import annotations

import warnings

_ENUM = {"none": 0, "mean": 1, "sum": 2}


def get_enum(reduction: str) -> int:
    """The integer aten uses for a reduction's name."""
    enum = _ENUM.get(reduction)
    if enum is not None:
        return enum
    if reduction == "elementwise_mean":
        warnings.warn(
            "reduction='elementwise_mean' is deprecated. Please use reduction='mean' instead.", stacklevel=2
        )
        return 1
    raise ValueError(f"{reduction} is not a valid value for reduction")


def legacy_get_string(size_average: bool | None, reduce: bool | None, emit_warning: bool = True) -> str:
    """The reduction's name for the two deprecated flags."""
    if reduce is not None and not reduce:
        reduction = "none"
    elif size_average is None or size_average:
        reduction = "mean"
    else:
        reduction = "sum"
    if emit_warning:
        warnings.warn(
            f"size_average and reduce args will be deprecated, please use reduction='{reduction}' instead.",
            stacklevel=2,
        )
    return reduction


def legacy_get_enum(size_average: bool | None, reduce: bool | None, emit_warning: bool = True) -> int:
    """The integer aten uses for the two deprecated flags."""
    return get_enum(legacy_get_string(size_average, reduce, emit_warning))
