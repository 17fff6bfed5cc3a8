"""torch.signal.windows: a length in, a window of that length out; symmetric, or periodic with `sym=False`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import mindtorch_v2 as torch

from ... import _dtype

__all__ = [
    "bartlett", "blackman", "cosine", "exponential", "gaussian", "general_cosine", "general_hamming", "hamming", "hann", "kaiser",
    "nuttall",
]  # fmt: skip


def _check(name: str, M: int, dtype: Any, layout: Any) -> Any:
    kind = torch.get_default_dtype() if dtype is None else dtype
    if M < 0:
        raise ValueError(f"{name} requires non-negative window length, got M={M}")
    if layout is not _dtype.strided:
        raise ValueError(f"{name} is implemented for strided tensors only, got: {layout}")
    if kind not in (_dtype.float32, _dtype.float64):
        raise ValueError(f"{name} expects float32 or float64 dtypes, got: {kind}")
    return kind


def _line(start: float, end: float, M: int, dtype: Any, device: Any, requires_grad: bool) -> Any:
    return torch.linspace(
        start=start, end=end, steps=M, dtype=dtype, device=device, requires_grad=requires_grad
    )


def _empty(dtype: Any, device: Any, requires_grad: bool) -> Any:
    return torch.empty((0,), dtype=dtype, device=device, requires_grad=requires_grad)


def exponential(
    M: int, *, center: float | None = None, tau: float = 1.0, sym: bool = True, dtype: Any = None, layout: Any = _dtype.strided,
    device: Any = None, requires_grad: bool = False,
) -> Any:  # fmt: skip
    """A window that decays exponentially on both sides."""
    dtype = _check("exponential", M, dtype, layout)
    if tau <= 0:
        raise ValueError(f"Tau must be positive, got: {tau} instead.")
    if sym and center is not None:
        raise ValueError("Center must be None for symmetric windows")
    if M == 0:
        return _empty(dtype, device, requires_grad)
    if center is None:
        center = (M if not sym and M > 1 else M - 1) / 2.0
    k = _line(-center / tau, (-center + (M - 1)) / tau, M, dtype, device, requires_grad)
    return torch.exp(-torch.abs(k))


def cosine(
    M: int, *, sym: bool = True, dtype: Any = None, layout: Any = _dtype.strided, device: Any = None, requires_grad: bool = False,
) -> Any:  # fmt: skip
    """Half a period of a sine."""
    dtype = _check("cosine", M, dtype, layout)
    if M == 0:
        return _empty(dtype, device, requires_grad)
    step = torch.pi / (M + 1 if not sym and M > 1 else M)
    return torch.sin(_line(0.5 * step, (0.5 + M - 1) * step, M, dtype, device, requires_grad))


def gaussian(
    M: int, *, std: float = 1.0, sym: bool = True, dtype: Any = None, layout: Any = _dtype.strided, device: Any = None,
    requires_grad: bool = False,
) -> Any:  # fmt: skip
    """A Gaussian of standard deviation `std`."""
    dtype = _check("gaussian", M, dtype, layout)
    if std <= 0:
        raise ValueError(f"Standard deviation must be positive, got: {std} instead.")
    if M == 0:
        return _empty(dtype, device, requires_grad)
    start = -(M if not sym and M > 1 else M - 1) / 2.0
    scale = 1 / (std * 2**0.5)
    k = _line(start * scale, (start + (M - 1)) * scale, M, dtype, device, requires_grad)
    return torch.exp(-(k**2))


def kaiser(
    M: int, *, beta: float = 12.0, sym: bool = True, dtype: Any = None, layout: Any = _dtype.strided, device: Any = None,
    requires_grad: bool = False,
) -> Any:  # fmt: skip
    """A ratio of Bessel functions of shape `beta`."""
    dtype = _check("kaiser", M, dtype, layout)
    if beta < 0:
        raise ValueError(f"beta must be non-negative, got: {beta} instead.")
    if M == 0:
        return _empty(dtype, device, requires_grad)
    if M == 1:
        return torch.ones((1,), dtype=dtype, device=device, requires_grad=requires_grad)
    shape = torch.tensor(beta, dtype=dtype, device=device)
    start, step = -beta, 2.0 * beta / (M if not sym else M - 1)
    end = torch.minimum(shape, shape * 0 + start + (M - 1) * step)
    k = _line(start, end.item(), M, dtype, device, requires_grad)
    return torch.i0(torch.sqrt(shape * shape - torch.pow(k, 2))) / torch.i0(shape)


def hamming(
    M: int, *, sym: bool = True, dtype: Any = None, layout: Any = _dtype.strided, device: Any = None, requires_grad: bool = False,
) -> Any:  # fmt: skip
    """A raised cosine with minimum 0.08."""
    return general_hamming(M, sym=sym, dtype=dtype, layout=layout, device=device, requires_grad=requires_grad)


def hann(
    M: int, *, sym: bool = True, dtype: Any = None, layout: Any = _dtype.strided, device: Any = None, requires_grad: bool = False,
) -> Any:  # fmt: skip
    """A raised cosine."""
    return general_hamming(
        M, alpha=0.5, sym=sym, dtype=dtype, layout=layout, device=device, requires_grad=requires_grad
    )


def blackman(
    M: int, *, sym: bool = True, dtype: Any = None, layout: Any = _dtype.strided, device: Any = None, requires_grad: bool = False,
) -> Any:  # fmt: skip
    """Three cosine terms."""
    dtype = _check("blackman", M, dtype, layout)
    return general_cosine(
        M,
        a=[0.42, 0.5, 0.08],
        sym=sym,
        dtype=dtype,
        layout=layout,
        device=device,
        requires_grad=requires_grad,
    )


def bartlett(
    M: int, *, sym: bool = True, dtype: Any = None, layout: Any = _dtype.strided, device: Any = None, requires_grad: bool = False,
) -> Any:  # fmt: skip
    """A triangle."""
    dtype = _check("bartlett", M, dtype, layout)
    if M == 0:
        return _empty(dtype, device, requires_grad)
    if M == 1:
        return torch.ones((1,), dtype=dtype, device=device, requires_grad=requires_grad)
    start, step = -1, 2 / (M if not sym else M - 1)
    return 1 - torch.abs(_line(start, start + (M - 1) * step, M, dtype, device, requires_grad))


def general_cosine(
    M: int, *, a: Iterable, sym: bool = True, dtype: Any = None, layout: Any = _dtype.strided, device: Any = None,
    requires_grad: bool = False,
) -> Any:  # fmt: skip
    """A sum of cosines with the weights `a`."""
    dtype = _check("general_cosine", M, dtype, layout)
    if M == 0:
        return _empty(dtype, device, requires_grad)
    if M == 1:
        return torch.ones((1,), dtype=dtype, device=device, requires_grad=requires_grad)
    if not isinstance(a, Iterable):
        raise TypeError("Coefficients must be a list/tuple")
    if not a:
        raise ValueError("Coefficients cannot be empty")
    step = 2 * torch.pi / (M if not sym else M - 1)
    k = _line(0, (M - 1) * step, M, dtype, device, requires_grad)
    weights = torch.tensor(
        [(-1) ** i * w for i, w in enumerate(a)], device=device, dtype=dtype, requires_grad=requires_grad
    )
    i = torch.arange(
        weights.shape[0], dtype=weights.dtype, device=weights.device, requires_grad=weights.requires_grad
    )
    return (weights.unsqueeze(-1) * torch.cos(i.unsqueeze(-1) * k)).sum(0)


def general_hamming(
    M: int, *, alpha: float = 0.54, sym: bool = True, dtype: Any = None, layout: Any = _dtype.strided, device: Any = None,
    requires_grad: bool = False,
) -> Any:  # fmt: skip
    """A raised cosine with weights `alpha` and 1 - alpha."""
    return general_cosine(
        M,
        a=[alpha, 1.0 - alpha],
        sym=sym,
        dtype=dtype,
        layout=layout,
        device=device,
        requires_grad=requires_grad,
    )


def nuttall(
    M: int, *, sym: bool = True, dtype: Any = None, layout: Any = _dtype.strided, device: Any = None, requires_grad: bool = False,
) -> Any:  # fmt: skip
    """Four cosine terms, Nuttall's weights."""
    return general_cosine(
        M, a=[0.3635819, 0.4891775, 0.1365995, 0.0106411], sym=sym, dtype=dtype, layout=layout, device=device,
        requires_grad=requires_grad,
    )  # fmt: skip
