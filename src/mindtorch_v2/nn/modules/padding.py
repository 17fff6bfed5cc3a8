"""Padding layers: amounts in, a module whose forward is one call of F.pad out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..._tensor import Tensor
from .. import functional as F
from .module import Module
from .utils import _ntuple, _pair, _quadruple

if TYPE_CHECKING:
    from ..common_types import _size_2_t, _size_4_t, _size_6_t

__all__ = [
    "CircularPad1d",
    "CircularPad2d",
    "CircularPad3d",
    "ConstantPad1d",
    "ConstantPad2d",
    "ConstantPad3d",
    "ReflectionPad1d",
    "ReflectionPad2d",
    "ReflectionPad3d",
    "ReplicationPad1d",
    "ReplicationPad2d",
    "ReplicationPad3d",
    "ZeroPad1d",
    "ZeroPad2d",
    "ZeroPad3d",
]

_sextuple = _ntuple(6)


class _CircularPadNd(Module):
    padding: Sequence[int]

    def _check_input_dim(self, input: Tensor) -> None:
        raise NotImplementedError

    def forward(self, input: Tensor) -> Tensor:
        """F.pad in circular mode."""
        self._check_input_dim(input)
        return F.pad(input, self.padding, "circular")

    def extra_repr(self) -> str:
        """The amounts."""
        return f"{self.padding}"


class CircularPad1d(_CircularPadNd):
    """Circular padding: values come from the opposite end."""

    padding: tuple[int, ...]

    def __init__(self, padding: _size_2_t) -> None:
        super().__init__()
        self.padding = _pair(padding)

    def _check_input_dim(self, input: Tensor) -> None:
        if input.dim() not in (2, 3):
            raise ValueError(f"expected 2D or 3D input (got {input.dim()}D input)")


class CircularPad2d(_CircularPadNd):
    """Circular padding: values come from the opposite end."""

    padding: tuple[int, ...]

    def __init__(self, padding: _size_4_t) -> None:
        super().__init__()
        self.padding = _quadruple(padding)

    def _check_input_dim(self, input: Tensor) -> None:
        if input.dim() not in (3, 4):
            raise ValueError(f"expected 3D or 4D input (got {input.dim()}D input)")


class CircularPad3d(_CircularPadNd):
    """Circular padding: values come from the opposite end."""

    padding: tuple[int, ...]

    def __init__(self, padding: _size_6_t) -> None:
        super().__init__()
        self.padding = _sextuple(padding)

    def _check_input_dim(self, input: Tensor) -> None:
        if input.dim() not in (4, 5):
            raise ValueError(f"expected 4D or 5D input (got {input.dim()}D input)")


class _ConstantPadNd(Module):
    value: float
    padding: Sequence[int]

    def __init__(self, value: float) -> None:
        super().__init__()
        self.value = value

    def forward(self, input: Tensor) -> Tensor:
        """F.pad with the value."""
        return F.pad(input, self.padding, "constant", self.value)

    def extra_repr(self) -> str:
        """The amounts and the value."""
        return f"padding={self.padding}, value={self.value}"


class ConstantPad1d(_ConstantPadNd):
    """Padding with one value."""

    padding: tuple[int, ...]

    def __init__(self, padding: _size_2_t, value: float) -> None:
        super().__init__(value)
        self.padding = _pair(padding)


class ConstantPad2d(_ConstantPadNd):
    """Padding with one value."""

    padding: tuple[int, ...]

    def __init__(self, padding: _size_4_t, value: float) -> None:
        super().__init__(value)
        self.padding = _quadruple(padding)


class ConstantPad3d(_ConstantPadNd):
    """Padding with one value."""

    padding: tuple[int, ...]

    def __init__(self, padding: _size_6_t, value: float) -> None:
        super().__init__(value)
        self.padding = _sextuple(padding)


class _ReflectionPadNd(Module):
    padding: Sequence[int]

    def forward(self, input: Tensor) -> Tensor:
        """F.pad in reflect mode."""
        return F.pad(input, self.padding, "reflect")

    def extra_repr(self) -> str:
        """The amounts."""
        return f"{self.padding}"


class ReflectionPad1d(_ReflectionPadNd):
    """Padding by reflecting the input at its edge."""

    padding: tuple[int, ...]

    def __init__(self, padding: _size_2_t) -> None:
        super().__init__()
        self.padding = _pair(padding)


class ReflectionPad2d(_ReflectionPadNd):
    """Padding by reflecting the input at its edge."""

    padding: tuple[int, ...]

    def __init__(self, padding: _size_4_t) -> None:
        super().__init__()
        self.padding = _quadruple(padding)


class ReflectionPad3d(_ReflectionPadNd):
    """Padding by reflecting the input at its edge."""

    padding: tuple[int, ...]

    def __init__(self, padding: _size_6_t) -> None:
        super().__init__()
        self.padding = _sextuple(padding)


class _ReplicationPadNd(Module):
    padding: Sequence[int]

    def forward(self, input: Tensor) -> Tensor:
        """F.pad in replicate mode."""
        return F.pad(input, self.padding, "replicate")

    def extra_repr(self) -> str:
        """The amounts."""
        return f"{self.padding}"


class ReplicationPad1d(_ReplicationPadNd):
    """Padding by repeating the edge."""

    padding: tuple[int, ...]

    def __init__(self, padding: _size_2_t) -> None:
        super().__init__()
        self.padding = _pair(padding)


class ReplicationPad2d(_ReplicationPadNd):
    """Padding by repeating the edge."""

    padding: tuple[int, ...]

    def __init__(self, padding: _size_4_t) -> None:
        super().__init__()
        self.padding = _quadruple(padding)


class ReplicationPad3d(_ReplicationPadNd):
    """Padding by repeating the edge."""

    padding: tuple[int, ...]

    def __init__(self, padding: _size_6_t) -> None:
        super().__init__()
        self.padding = _sextuple(padding)


class ZeroPad1d(ConstantPad1d):
    """Padding with zeros."""

    padding: tuple[int, ...]

    def __init__(self, padding: _size_2_t) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        """The amounts."""
        return f"{self.padding}"


class ZeroPad2d(ConstantPad2d):
    """Padding with zeros."""

    padding: tuple[int, ...]

    def __init__(self, padding: _size_4_t) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        """The amounts."""
        return f"{self.padding}"


class ZeroPad3d(ConstantPad3d):
    """Padding with zeros."""

    padding: tuple[int, ...]

    def __init__(self, padding: _size_6_t) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        """The amounts."""
        return f"{self.padding}"
