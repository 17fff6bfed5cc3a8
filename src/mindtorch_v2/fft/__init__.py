"""torch.fft: discrete Fourier transforms of one, two and n dimensions, real and complex."""

from __future__ import annotations

from typing import Any

import mindtorch_v2 as torch

from .. import _dispatch
from .._ops import fourier as _ops

__all__ = [
    "fft",
    "ifft",
    "fft2",
    "ifft2",
    "fftn",
    "ifftn",
    "rfft",
    "irfft",
    "rfft2",
    "irfft2",
    "rfftn",
    "irfftn",
    "hfft",
    "ihfft",
    "hfft2",
    "ihfft2",
    "hfftn",
    "ihfftn",
    "fftfreq",
    "rfftfreq",
    "fftshift",
    "ifftshift",
]


def _out(made: Any, out: Any) -> Any:
    if out is None:
        return made
    _dispatch.give_out(out, made._array)
    return out


def _dim(x: Any, dim: int) -> int:
    n = x.ndim
    if not -n <= dim < n:
        if n == 0:
            raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-n}, {n - 1}], but got {dim})"
        )
    return dim % n


def _dims_and_sizes(x: Any, s: Any, dim: Any) -> tuple[tuple, list[int]]:
    """The dimensions to transform and their sizes, from torch's `s` and `dim`."""
    if dim is None:
        dims = tuple(range(x.ndim)) if s is None else tuple(range(x.ndim - len(s), x.ndim))
    else:
        dims = tuple(_dim(x, d) for d in ((dim,) if isinstance(dim, int) else dim))
    if s is not None and len(s) > x.ndim:
        raise RuntimeError(f"Got shape with {len(s)} values but input tensor only has {x.ndim} dimensions.")
    if len(set(dims)) != len(dims):
        raise RuntimeError("FFT dims must be unique")
    if s is not None and len(s) != len(dims):
        raise RuntimeError("When given, dim and shape arguments must have the same length")
    sizes = (
        [x.shape[d] for d in dims] if s is None else [x.shape[d] if n == -1 else n for n, d in zip(s, dims)]
    )
    return dims, sizes


def _c2c(x: Any, s: Any, dim: Any, norm: Any, forward: bool) -> Any:
    x = _ops.to_complex(x)
    dims, sizes = _dims_and_sizes(x, s, dim)
    return _ops._fft_c2c(_ops.resized(x, sizes, dims), dims, _ops.normalization_of(norm, forward), forward)


def _r2c(x: Any, s: Any, dim: Any, norm: Any, forward: bool) -> Any:
    x = _ops.to_float(x)
    if x.dtype.is_complex:
        raise RuntimeError(
            f"{'rfft' if forward else 'ihfft'} expects a real input tensor, but got {x.dtype._abbr}"
        )
    dims, sizes = _dims_and_sizes(x, s, dim)
    made = _ops._fft_r2c(_ops.resized(x, sizes, dims), dims, _ops.normalization_of(norm, forward), True)
    return made if forward else torch.conj(made)


def _c2r(x: Any, s: Any, dim: Any, norm: Any, forward: bool) -> Any:
    x = _ops.to_complex(x)
    dims, sizes = _dims_and_sizes(x, s, dim)
    last = sizes[-1] if s is not None and s[-1] != -1 else 2 * (x.shape[dims[-1]] - 1)
    if last < 1:
        raise RuntimeError(f"Invalid number of data points ({last}) specified")
    inner = [*sizes[:-1], last // 2 + 1]
    x = _ops.resized(x, inner, dims)
    return _ops._fft_c2r(torch.conj(x) if forward else x, dims, _ops.normalization_of(norm, forward), last)


def fft(input: Any, n: int | None = None, dim: int = -1, norm: Any = None, *, out: Any = None) -> Any:
    """The transform along one dimension."""
    return _out(_c2c(input, None if n is None else (n,), (dim,), norm, True), out)


def ifft(input: Any, n: int | None = None, dim: int = -1, norm: Any = None, *, out: Any = None) -> Any:
    """The inverse transform along one dimension."""
    return _out(_c2c(input, None if n is None else (n,), (dim,), norm, False), out)


def fftn(input: Any, s: Any = None, dim: Any = None, norm: Any = None, *, out: Any = None) -> Any:
    """The transform along several dimensions."""
    return _out(_c2c(input, s, dim, norm, True), out)


def ifftn(input: Any, s: Any = None, dim: Any = None, norm: Any = None, *, out: Any = None) -> Any:
    """The inverse transform along several dimensions."""
    return _out(_c2c(input, s, dim, norm, False), out)


def fft2(input: Any, s: Any = None, dim: Any = (-2, -1), norm: Any = None, *, out: Any = None) -> Any:
    """The transform along two dimensions."""
    return fftn(input, s, dim, norm, out=out)


def ifft2(input: Any, s: Any = None, dim: Any = (-2, -1), norm: Any = None, *, out: Any = None) -> Any:
    """The inverse transform along two dimensions."""
    return ifftn(input, s, dim, norm, out=out)


def rfft(input: Any, n: int | None = None, dim: int = -1, norm: Any = None, *, out: Any = None) -> Any:
    """The half of a real signal's transform that says it all."""
    return _out(_r2c(input, None if n is None else (n,), (dim,), norm, True), out)


def irfft(input: Any, n: int | None = None, dim: int = -1, norm: Any = None, *, out: Any = None) -> Any:
    """The real signal of a half transform."""
    return _out(_c2r(input, None if n is None else (n,), (dim,), norm, False), out)


def rfftn(input: Any, s: Any = None, dim: Any = None, norm: Any = None, *, out: Any = None) -> Any:
    """The half of a real signal's transform along several dimensions."""
    return _out(_r2c(input, s, dim, norm, True), out)


def irfftn(input: Any, s: Any = None, dim: Any = None, norm: Any = None, *, out: Any = None) -> Any:
    """The real signal of a half transform along several dimensions."""
    return _out(_c2r(input, s, dim, norm, False), out)


def rfft2(input: Any, s: Any = None, dim: Any = (-2, -1), norm: Any = None, *, out: Any = None) -> Any:
    """The half of a real signal's transform along two dimensions."""
    return rfftn(input, s, dim, norm, out=out)


def irfft2(input: Any, s: Any = None, dim: Any = (-2, -1), norm: Any = None, *, out: Any = None) -> Any:
    """The real signal of a half transform along two dimensions."""
    return irfftn(input, s, dim, norm, out=out)


def hfft(input: Any, n: int | None = None, dim: int = -1, norm: Any = None, *, out: Any = None) -> Any:
    """The real transform of a signal that is Hermitian in time."""
    return _out(_c2r(input, None if n is None else (n,), (dim,), norm, True), out)


def ihfft(input: Any, n: int | None = None, dim: int = -1, norm: Any = None, *, out: Any = None) -> Any:
    """The inverse of `hfft`."""
    return _out(_r2c(input, None if n is None else (n,), (dim,), norm, False), out)


def hfftn(input: Any, s: Any = None, dim: Any = None, norm: Any = None, *, out: Any = None) -> Any:
    """`hfft` along the last and `fft` along the other dimensions."""
    x = _ops.to_complex(input)
    dims, sizes = _dims_and_sizes(x, s, dim)
    if len(dims) > 1:
        x = _c2c(x, sizes[:-1], dims[:-1], norm, True)
    last = None if s is None or s[-1] == -1 else (s[-1],)
    return _out(_c2r(x, last, dims[-1:], norm, True), out)


def ihfftn(input: Any, s: Any = None, dim: Any = None, norm: Any = None, *, out: Any = None) -> Any:
    """The inverse of `hfftn`."""
    dims, sizes = _dims_and_sizes(input, s, dim)
    made = _r2c(input, sizes[-1:], dims[-1:], norm, False)
    if len(dims) > 1:
        made = _c2c(made, sizes[:-1], dims[:-1], norm, False)
    return _out(made, out)


def hfft2(input: Any, s: Any = None, dim: Any = (-2, -1), norm: Any = None, *, out: Any = None) -> Any:
    """`hfftn` along two dimensions."""
    return hfftn(input, s, dim, norm, out=out)


def ihfft2(input: Any, s: Any = None, dim: Any = (-2, -1), norm: Any = None, *, out: Any = None) -> Any:
    """`ihfftn` along two dimensions."""
    return ihfftn(input, s, dim, norm, out=out)


def fftfreq(
    n: int,
    d: float = 1.0,
    *,
    out: Any = None,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Any:
    """The frequencies of a transform's entries."""
    import numpy as np

    made = torch.tensor(
        np.fft.fftfreq(n, d), dtype=dtype or torch.get_default_dtype(), requires_grad=requires_grad
    )
    return _out(made, out)


def rfftfreq(
    n: int,
    d: float = 1.0,
    *,
    out: Any = None,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Any:
    """The frequencies of a half transform's entries."""
    import numpy as np

    made = torch.tensor(
        np.fft.rfftfreq(n, d), dtype=dtype or torch.get_default_dtype(), requires_grad=requires_grad
    )
    return _out(made, out)


def fftshift(input: Any, dim: Any = None) -> Any:
    """Frequency zero to the middle."""
    dims = tuple(range(input.ndim)) if dim is None else (dim,) if isinstance(dim, int) else tuple(dim)
    return torch.roll(input, [input.shape[d] // 2 for d in dims], dims)


def ifftshift(input: Any, dim: Any = None) -> Any:
    """Frequency zero back to the front."""
    dims = tuple(range(input.ndim)) if dim is None else (dim,) if isinstance(dim, int) else tuple(dim)
    return torch.roll(input, [(input.shape[d] + 1) // 2 for d in dims], dims)
