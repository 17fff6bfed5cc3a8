"""Fourier transforms, by SciPy's pocketfft: single precision stays single. The derivative of each is a transform back."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .. import _dispatch
from .._dispatch import op
from .._dtype import BY_NUM, INTEGRAL_NUMS, Default
from ._namespace import functions as F

# torch numbers the scalings: 0 none, 1 by 1/sqrt(n), 2 by 1/n
NONE, ROOT, FULL = 0, 1, 2


def _scale(made: np.ndarray, count: int, normalization: int) -> np.ndarray:
    if normalization == NONE or not count:
        return made
    return made * made.real.dtype.type(1 / math.sqrt(count) if normalization == ROOT else 1 / count)


@op(
    "aten::_fft_c2c(Tensor self, SymInt[] dim, int normalization, bool forward) -> Tensor",
    expose="no",
    node="FftC2CBackward0",
)
def _fft_c2c(self: np.ndarray, dim: tuple, normalization: int, forward: bool) -> np.ndarray:
    from scipy import fft

    if not dim:
        return self.copy()
    count = math.prod(self.shape[d] for d in dim)
    made = fft.fftn(self, axes=dim) if forward else fft.ifftn(self, axes=dim, norm="forward")
    return _scale(made, count, normalization)


_fft_c2c.derivative(self=lambda g, dim, normalization, forward: _fft_c2c(g, dim, normalization, not forward))


@op(
    "aten::_fft_r2c(Tensor self, int[] dim, int normalization, bool onesided) -> Tensor",
    expose="no",
    node="FftR2CBackward0",
)
def _fft_r2c(self: np.ndarray, dim: tuple, normalization: int, onesided: bool) -> np.ndarray:
    from scipy import fft

    count = math.prod(self.shape[d] for d in dim)
    made = fft.rfftn(self, axes=dim) if onesided else fft.fftn(self, axes=dim)
    return _scale(made, count, normalization)


def _r2c_grad(g: Any, dim: tuple, normalization: int, onesided: bool, self_shape: Any) -> Any:
    if onesided:
        last = dim[-1]
        missing = self_shape[last] - g.shape[last]
        if missing > 0:
            shape = list(g.shape)
            shape[last] = missing
            g = F.cat([g, F.zeros(shape, dtype=g.dtype)], last)
    return F.real(_fft_c2c(g, dim, normalization, False))


_fft_r2c.derivative(self=_r2c_grad)


@op(
    "aten::_fft_c2r(Tensor self, int[] dim, int normalization, SymInt last_dim_size) -> Tensor",
    expose="no",
    node="FftC2RBackward0",
)
def _fft_c2r(self: np.ndarray, dim: tuple, normalization: int, last_dim_size: int) -> np.ndarray:
    from scipy import fft

    sizes = [self.shape[d] for d in dim[:-1]] + [last_dim_size]
    made = fft.irfftn(self, sizes, axes=dim, norm="forward")
    return _scale(made, math.prod(sizes), normalization)


def _c2r_grad(g: Any, dim: tuple, normalization: int, last_dim_size: int) -> Any:
    made = _fft_r2c(g, dim, normalization, True)
    last = dim[-1]
    doubled = made.shape[last] - 1 - (1 if last_dim_size % 2 == 0 else 0)
    if doubled > 0:
        weights = np.ones(made.shape[last])
        weights[1 : 1 + doubled] = 2
        shape = [1] * made.ndim
        shape[last] = -1
        made = made * _dispatch.wrap(
            weights.astype(BY_NUM[made._array.dtype.num].to_real()._np).reshape(shape)
        )
    return made


_fft_c2r.derivative(self=_c2r_grad)


# ---------------------------------------------------------------------------------------------------- what torch.fft needs


def to_float(x: Any) -> Any:
    """Integers as the default dtype; half and bfloat16 are refused as torch does on the CPU."""
    if x._array.dtype.num in INTEGRAL_NUMS:
        return x.to(Default.dtype)
    if x.dtype.itemsize < 4:
        raise RuntimeError(f"Unsupported dtype {x.dtype._abbr}")
    return x


def to_complex(x: Any) -> Any:
    x = to_float(x)
    return x if x.dtype.is_complex else x.to(x.dtype.to_complex())


def normalization_of(norm: Any, forward: bool) -> int:
    """The scaling that a norm name means for a transform in a direction."""
    if norm is None or norm == "backward":
        return NONE if forward else FULL
    if norm == "forward":
        return FULL if forward else NONE
    if norm == "ortho":
        return ROOT
    raise RuntimeError(f'Invalid normalization mode: "{norm}"')


def resized(x: Any, sizes: Any, dims: Any) -> Any:
    """Cut or zero-pad dimensions to sizes."""
    for d, n in zip(dims, sizes):
        have = x.shape[d]
        if n < 1:
            raise RuntimeError(f"Invalid number of data points ({n}) specified")
        if n < have:
            x = x.narrow(d, 0, n)
        elif n > have:
            shape = list(x.shape)
            shape[d] = n - have
            x = F.cat([x, F.zeros(shape, dtype=x.dtype)], d)
    return x
