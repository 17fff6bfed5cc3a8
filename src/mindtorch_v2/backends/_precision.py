"""The precision of float32 matrix products. NumPy's have full precision; the settings are only stored."""

from __future__ import annotations

import warnings

_precision = "highest"


class FP32Precision:
    """The precision setting for one kind of op of one library: none (not set), ieee, tf32 or bf16."""

    __slots__ = ("_chosen",)

    def __init__(self, chosen: str = "none") -> None:
        self._chosen = chosen

    @property
    def fp32_precision(self) -> str:
        """The setting."""
        return self._chosen

    @fp32_precision.setter
    def fp32_precision(self, value: str) -> None:
        if value not in ("none", "ieee", "tf32", "bf16"):
            raise RuntimeError(f"Unknown precision: {value}")
        self._chosen = value


def get_float32_matmul_precision() -> str:
    """The precision setting: highest, high or medium."""
    return _precision


def set_float32_matmul_precision(precision: str) -> None:
    """Set the precision: highest, high or medium. Products here always have the highest."""
    global _precision
    if precision not in ("highest", "high", "medium"):
        warnings.warn(
            f"{precision} is not one of 'highest', 'high', or 'medium'; the current"
            "setFloat32MatmulPrecision call has no effect.",
            stacklevel=2,
        )
        return
    _precision = precision
