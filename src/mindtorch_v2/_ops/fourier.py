"""Fourier transforms, by SciPy's pocketfft: single precision stays single. The derivative of each is the inverse transform."""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _dispatch
from .._dispatch import OPS, composite, op
from .._dtype import INTEGRAL_NUMS, Default
from ._children import UNKNOWN, Child, child, dtype_or_default, empty, tensor_of
from ._namespace import functions as F

if TYPE_CHECKING:
    from mindtorch_prof.settings import Settings

# torch numbers the scalings: 0 none, 1 by 1/sqrt(n), 2 by 1/n
NONE, ROOT, FULL = 0, 1, 2


@functools.cache
def _scipy_fft() -> Any:
    from scipy import fft

    return fft


def _norm(normalization: int, forward: bool) -> str:
    """SciPy's name of a scaling for a transform in a direction."""
    if normalization == ROOT:
        return "ortho"
    return "backward" if (normalization == NONE) == forward else "forward"


def _order(array: np.ndarray, dim: tuple) -> list[int]:
    """The dimensions that are not transformed, by descending stride, and then the others."""
    rest = [d for d in range(array.ndim) if d not in dim]
    if len(rest) > 1:
        rest.sort(key=lambda d: -abs(array.strides[d]) if array.shape[d] > 1 else -math.inf)
    return rest + list(dim)


def _along_last(array: np.ndarray, dim: tuple, transform: Any) -> np.ndarray:
    """Transform dimensions after moving them to the end; the result keeps that order in memory."""
    order = _order(array, dim)
    if order == list(range(array.ndim)):
        return np.ascontiguousarray(transform(array))
    moved = np.ascontiguousarray(transform(array.transpose(order)))
    back = [0] * len(order)
    for place, d in enumerate(order):
        back[d] = place
    return moved.transpose(back)


def _transform(one: Any, many: Any, count: int, norm: str) -> Any:
    """A transform of the last `count` dimensions; that of one dimension takes less time."""
    if count == 1:
        return lambda array: one(array, norm=norm)
    last = tuple(range(-count, 0))
    return lambda array: many(array, axes=last, norm=norm)


def _positive(dim: tuple, ndim: int) -> tuple:
    return tuple([d % ndim for d in dim])


@op(
    "aten::_fft_c2c(Tensor self, SymInt[] dim, int normalization, bool forward) -> Tensor",
    expose="no",
    node="FftC2CBackward0",
)
def _fft_c2c(self: np.ndarray, dim: tuple, normalization: int, forward: bool) -> np.ndarray:
    if not dim:
        return self.copy()
    fft, norm = _scipy_fft(), _norm(normalization, forward)
    dim = _sorted(self, _positive(dim, self.ndim))
    one, many = (fft.fft, fft.fftn) if forward else (fft.ifft, fft.ifftn)
    return _along_last(self, dim, _transform(one, many, len(dim), norm))


def _sorted(array: np.ndarray, dim: tuple) -> tuple:
    return dim if len(dim) < 2 else tuple(sorted(dim, key=lambda d: -abs(array.strides[d])))


_fft_c2c.derivative(self=lambda g, dim, normalization, forward: _fft_c2c(g, dim, normalization, not forward))


@op(
    "aten::_fft_r2c(Tensor self, int[] dim, int normalization, bool onesided) -> Tensor",
    expose="no",
    node="FftR2CBackward0",
)
def _fft_r2c(self: np.ndarray, dim: tuple, normalization: int, onesided: bool) -> np.ndarray:
    fft, norm = _scipy_fft(), _norm(normalization, True)
    dim = _positive(dim, self.ndim)
    dim = _sorted(self, dim[:-1]) + dim[-1:]
    one, many = (fft.rfft, fft.rfftn) if onesided else (fft.fft, fft.fftn)
    return _along_last(self, dim, _transform(one, many, len(dim), norm))


def _r2c_grad(g: Any, dim: tuple, normalization: int, onesided: bool, self: Any) -> Any:
    if onesided:
        self_shape = self.shape
        last = dim[-1]
        missing = self_shape[last] - g.shape[last]
        if missing > 0 and not _dispatch.grad_state.enabled:
            whole = OPS["new_zeros"].entry(g, tuple(self_shape))
            F.copy_(F.slice(whole, last, 0, g.shape[last]), g)
            g = whole
        elif missing > 0:
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
    fft, norm = _scipy_fft(), _norm(normalization, False)
    dim = _positive(dim, self.ndim)
    if len(dim) > 1:
        self = _fft_c2c.op.kernel(self, dim[:-1], normalization, False)
    return _along_last(self, dim[-1:], lambda array: fft.irfft(array, last_dim_size, norm=norm))


def _c2r_grad(g: Any, dim: tuple, normalization: int, last_dim_size: int) -> Any:
    gradient = _fft_r2c(g, dim, normalization, True)
    last = dim[-1] % gradient.ndim
    doubled = gradient.shape[last] - 1 - (1 if last_dim_size % 2 == 0 else 0)
    if doubled <= 0:
        return gradient
    if not _dispatch.grad_state.enabled:
        OPS["mul_.Scalar"].entry(gradient.narrow(last, 1, doubled), 2)
        return gradient
    weights = np.ones(gradient.shape[last])
    weights[1 : 1 + doubled] = 2
    shape = [gradient.shape[last] if d == last else 1 for d in range(gradient.ndim)]
    return gradient * _dispatch.wrap(weights.astype(gradient._array.real.dtype).reshape(shape))


_fft_c2r.derivative(self=_c2r_grad)


# ---------------------------------------------------------------------------------------------------- torch.fft's functions


def to_float(x: Any) -> Any:
    """Integers as the default dtype; half and bfloat16 are refused as torch does on the CPU."""
    if x._array.dtype.num in INTEGRAL_NUMS:
        return x.to(Default.dtype)
    if x.dtype.itemsize < 4:
        raise RuntimeError(f"Unsupported dtype {x.dtype._abbr}")
    return x


def to_complex(x: Any) -> Any:
    """A complex tensor of the same precision."""
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
    shape = x.shape
    padding = [0] * (2 * len(shape))
    for d, n in zip(dims, sizes):
        have = shape[d]
        if n < 1:
            raise RuntimeError(f"Invalid number of data points ({n}) specified")
        if n < have:
            x = F.slice(x, d, 0, n)
        elif n > have:
            padding[2 * (len(shape) - 1 - d) + 1] = n - have
    return F.constant_pad_nd(x, padding, 0) if any(padding) else x


def _one(n: int, dim: int) -> int:
    if not -n <= dim < n:
        if n == 0:
            raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-n}, {n - 1}], but got {dim})"
        )
    return dim % n


def dims_and_sizes(x: Any, s: Any, dim: Any) -> tuple[tuple, list[int]]:
    """The dimensions to transform and their sizes, from torch's `s` and `dim`."""
    shape = x.shape
    ndim = len(shape)
    if dim is None:
        dims = tuple(range(0 if s is None else ndim - len(s), ndim))
    else:
        dims = tuple([_one(ndim, d) for d in ((dim,) if isinstance(dim, int) else dim)])
    if s is not None and len(s) > ndim:
        raise RuntimeError(f"Got shape with {len(s)} values but input tensor only has {ndim} dimensions.")
    if len(dims) > 1 and len(set(dims)) != len(dims):
        raise RuntimeError("FFT dims must be unique")
    if s is not None and len(s) != len(dims):
        raise RuntimeError("When given, dim and shape arguments must have the same length")
    sizes = [shape[d] for d in dims] if s is None else [shape[d] if n == -1 else n for n, d in zip(s, dims)]
    return dims, sizes


def _c2c(x: Any, s: Any, dim: Any, norm: Any, forward: bool) -> Any:
    x = to_complex(x)
    dims, sizes = dims_and_sizes(x, s, dim)
    return _fft_c2c(resized(x, sizes, dims), dims, normalization_of(norm, forward), forward)


def _r2c(x: Any, s: Any, dim: Any, norm: Any, forward: bool) -> Any:
    x = to_float(x)
    if x.dtype.is_complex:
        raise RuntimeError(
            f"{'rfft' if forward else 'ihfft'} expects a real input tensor, but got {x.dtype._abbr}"
        )
    dims, sizes = dims_and_sizes(x, s, dim)
    made = _fft_r2c(resized(x, sizes, dims), dims, normalization_of(norm, forward), True)
    return made if forward else F.conj(made)


def _c2r(x: Any, s: Any, dim: Any, norm: Any, forward: bool) -> Any:
    x = to_complex(x)
    dims, sizes = dims_and_sizes(x, s, dim)
    last = sizes[-1] if s is not None and s[-1] != -1 else 2 * (x.shape[dims[-1]] - 1)
    if last < 1:
        raise RuntimeError(f"Invalid number of data points ({last}) specified")
    inner = [*sizes[:-1], last // 2 + 1]
    x = resized(x, inner, dims)
    return _fft_c2r(F.conj(x) if forward else x, dims, normalization_of(norm, forward), last)


def _real_or_complex(x: Any, n: Any, dim: int, norm: Any, forward: bool) -> Any:
    """The transform along one dimension, of real numbers without making them complex first."""
    x = to_float(x)
    size = None if n is None else (n,)
    if x.dtype.is_complex:
        return _c2c(x, size, (dim,), norm, forward)
    dims, sizes = dims_and_sizes(x, size, (dim,))
    made = _fft_r2c(resized(x, sizes, dims), dims, normalization_of(norm, forward), False)
    return made if forward else F.conj(made)


def _hermitian(x: Any, s: Any, dim: Any, norm: Any) -> Any:
    x = to_complex(x)
    dims, sizes = dims_and_sizes(x, s, dim)
    if len(dims) > 1:
        x = _c2c(x, sizes[:-1], dims[:-1], norm, True)
    last = None if s is None or s[-1] == -1 else (s[-1],)
    return _c2r(x, last, dims[-1:], norm, True)


def _hermitian_back(x: Any, s: Any, dim: Any, norm: Any) -> Any:
    dims, sizes = dims_and_sizes(x, s, dim)
    made = _r2c(x, sizes[-1:], dims[-1:], norm, False)
    return _c2c(made, sizes[:-1], dims[:-1], norm, False) if len(dims) > 1 else made


def _declare(one: str, two: str, many: str, body: Any) -> Any:
    """Declare the ops of one transform: along one dimension, two, and any number."""

    def along_one(self: Any, n: Any, dim: int, norm: Any) -> Any:
        return body(self, None if n is None else (n,), (dim,), norm)

    def along_many(self: Any, s: Any, dim: Any, norm: Any) -> Any:
        return body(self, s, dim, norm)

    return (
        composite(f"{one}(Tensor self, SymInt? n=None, int dim=-1, str? norm=None) -> Tensor", expose="no")(
            along_one
        ),
        composite(
            f"{two}(Tensor self, SymInt[1]? s=None, int[1] dim=[-2, -1], str? norm=None) -> Tensor",
            expose="no",
        )(along_many),
        composite(
            f"{many}(Tensor self, SymInt[1]? s=None, int[1]? dim=None, str? norm=None) -> Tensor",
            expose="no",
        )(along_many),
    )


def _first(forward: bool) -> Any:
    def body(x: Any, s: Any, dim: Any, norm: Any) -> Any:
        return _c2c(x, s, dim, norm, forward)

    return body


fft, fft2, fftn = _declare("aten::fft_fft", "aten::fft_fft2", "aten::fft_fftn", _first(True))
ifft, ifft2, ifftn = _declare("aten::fft_ifft", "aten::fft_ifft2", "aten::fft_ifftn", _first(False))
rfft, rfft2, rfftn = _declare(
    "aten::fft_rfft",
    "aten::fft_rfft2",
    "aten::fft_rfftn",
    lambda x, s, dim, norm: _r2c(x, s, dim, norm, True),
)
irfft, irfft2, irfftn = _declare(
    "aten::fft_irfft",
    "aten::fft_irfft2",
    "aten::fft_irfftn",
    lambda x, s, dim, norm: _c2r(x, s, dim, norm, False),
)
hfft, hfft2, hfftn = _declare("aten::fft_hfft", "aten::fft_hfft2", "aten::fft_hfftn", _hermitian)
ihfft, ihfft2, ihfftn = _declare("aten::fft_ihfft", "aten::fft_ihfft2", "aten::fft_ihfftn", _hermitian_back)
fft.op.kernel = lambda self, n, dim, norm: _real_or_complex(self, n, dim, norm, True)
ifft.op.kernel = lambda self, n, dim, norm: _real_or_complex(self, n, dim, norm, False)


def _all(x: Any, dim: Any) -> tuple:
    return tuple(range(x.ndim)) if dim is None else (dim,) if isinstance(dim, int) else tuple(dim)


@composite("aten::fft_fftshift(Tensor self, int[1]? dim=None) -> Tensor", expose="no")
def fftshift(self: Any, dim: Any) -> Any:
    dims = _all(self, dim)
    return F.roll(self, [self.shape[d] // 2 for d in dims], dims)


@composite("aten::fft_ifftshift(Tensor self, int[1]? dim=None) -> Tensor", expose="no")
def ifftshift(self: Any, dim: Any) -> Any:
    dims = _all(self, dim)
    return F.roll(self, [(self.shape[d] + 1) // 2 for d in dims], dims)


_FREQUENCIES = "(int n, float d=1., *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor"


def _check_spacing(name: str, dtype: Any) -> Any:
    kind = dtype or Default.dtype
    if kind._rank < 2:
        raise RuntimeError(f"{name} requires a floating point or complex dtype")
    return kind


@op(f"aten::fft_fftfreq{_FREQUENCIES}", expose="no", nondifferentiable=True)
def fftfreq(n: int, d: float, dtype: Any, layout: Any, device: Any, pin_memory: Any) -> np.ndarray:
    return np.fft.fftfreq(n, d).astype(_check_spacing("fftfreq", dtype)._np)


@op(f"aten::fft_rfftfreq{_FREQUENCIES}", expose="no", nondifferentiable=True)
def rfftfreq(n: int, d: float, dtype: Any, layout: Any, device: Any, pin_memory: Any) -> np.ndarray:
    return np.fft.rfftfreq(n, d).astype(_check_spacing("rfftfreq", dtype)._np)


@fftfreq.children
def _(
    n: Any, d: Any, dtype: Any, layout: Any, device: Any, pin_memory: Any, *, settings: Settings
) -> list[Child]:
    size = UNKNOWN if n is UNKNOWN else (n,)
    kind = dtype_or_default(dtype, settings)
    result = tensor_of(size, kind)
    return [
        empty(size, dtype, layout, pin_memory),
        child("aten::arange.out", n, result),
        child("aten::slice.Tensor", result, 0, (n + 1) // 2, 0),
        child("aten::arange.start_out", -(n // 2), 0, 1, tensor_of((0,), kind)),
        child("aten::mul_.Scalar", result, _frequency_step(n, d)),
    ]


@rfftfreq.children
def _(
    n: Any, d: Any, dtype: Any, layout: Any, device: Any, pin_memory: Any, *, settings: Settings
) -> list[Child]:
    size = UNKNOWN if n is UNKNOWN else (n // 2 + 1,)
    kind = dtype_or_default(dtype, settings)
    result = tensor_of(size, kind)
    return [
        empty(size, dtype, layout, pin_memory),
        child("aten::arange.start_out", 0, n // 2 + 1, 1, result),
        child("aten::mul_.Scalar", result, _frequency_step(n, d)),
    ]


def _frequency_step(n: Any, d: Any) -> Any:
    return UNKNOWN if n is UNKNOWN else 1.0 / (n * d)
