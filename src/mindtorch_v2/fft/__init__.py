"""torch.fft: discrete Fourier transforms of one, two and n dimensions, real and complex."""

from __future__ import annotations

from typing import Any

from .._dispatch import into_out
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


def _transform_1d(op: Any, doc: str) -> Any:
    def transform(
        input: Any, n: int | None = None, dim: int = -1, norm: Any = None, *, out: Any = None
    ) -> Any:
        return into_out(op(input, n, dim, norm), out)

    return _set_name(transform, op, doc)


def _transform_2d(op: Any, doc: str) -> Any:
    def transform(
        input: Any, s: Any = None, dim: Any = (-2, -1), norm: Any = None, *, out: Any = None
    ) -> Any:
        return into_out(op(input, s, dim, norm), out)

    return _set_name(transform, op, doc)


def _transform_nd(op: Any, doc: str) -> Any:
    def transform(input: Any, s: Any = None, dim: Any = None, norm: Any = None, *, out: Any = None) -> Any:
        return into_out(op(input, s, dim, norm), out)

    return _set_name(transform, op, doc)


def _set_name(transform: Any, op: Any, doc: str) -> Any:
    transform.__name__ = transform.__qualname__ = op.op.name.removeprefix("fft_")
    transform.__doc__ = doc
    return transform


fft = _transform_1d(_ops.fft, "The transform along one dimension.")
ifft = _transform_1d(_ops.ifft, "The inverse transform along one dimension.")
fft2 = _transform_2d(_ops.fft2, "The transform along two dimensions.")
ifft2 = _transform_2d(_ops.ifft2, "The inverse transform along two dimensions.")
fftn = _transform_nd(_ops.fftn, "The transform along several dimensions.")
ifftn = _transform_nd(_ops.ifftn, "The inverse transform along several dimensions.")
rfft = _transform_1d(_ops.rfft, "The non-redundant half of a real signal's transform.")
irfft = _transform_1d(_ops.irfft, "The real signal of a half transform.")
rfft2 = _transform_2d(_ops.rfft2, "The half of a real signal's transform along two dimensions.")
irfft2 = _transform_2d(_ops.irfft2, "The real signal of a half transform along two dimensions.")
rfftn = _transform_nd(_ops.rfftn, "The half of a real signal's transform along several dimensions.")
irfftn = _transform_nd(_ops.irfftn, "The real signal of a half transform along several dimensions.")
hfft = _transform_1d(_ops.hfft, "The real transform of a signal that is Hermitian in time.")
ihfft = _transform_1d(_ops.ihfft, "The inverse of `hfft`.")
hfft2 = _transform_2d(_ops.hfft2, "`hfftn` along two dimensions.")
ihfft2 = _transform_2d(_ops.ihfft2, "`ihfftn` along two dimensions.")
hfftn = _transform_nd(_ops.hfftn, "`hfft` along the last and `fft` along the other dimensions.")
ihfftn = _transform_nd(_ops.ihfftn, "The inverse of `hfftn`.")


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
    """The frequencies of the entries of a transform."""
    frequencies = _ops.fftfreq(n, d, dtype=dtype)
    frequencies.requires_grad = requires_grad
    return into_out(frequencies, out)


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
    """The frequencies of the entries of a real transform."""
    frequencies = _ops.rfftfreq(n, d, dtype=dtype)
    frequencies.requires_grad = requires_grad
    return into_out(frequencies, out)


def fftshift(input: Any, dim: Any = None) -> Any:
    """Move frequency zero to the middle."""
    return _ops.fftshift(input, dim)


def ifftshift(input: Any, dim: Any = None) -> Any:
    """Move frequency zero back to the front."""
    return _ops.ifftshift(input, dim)
