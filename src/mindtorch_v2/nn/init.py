"""Initialisers: fill a tensor in place and return it, with the numbers torch draws for the generator's state."""

from __future__ import annotations

import functools
import math
import warnings
from collections.abc import Callable
from typing import Any, Literal

import mindtorch_v2 as torch
from mindtorch_v2 import Tensor

__all__ = [
    "calculate_gain",
    "uniform_",
    "normal_",
    "trunc_normal_",
    "constant_",
    "ones_",
    "zeros_",
    "eye_",
    "dirac_",
    "xavier_uniform_",
    "xavier_normal_",
    "kaiming_uniform_",
    "kaiming_normal_",
    "orthogonal_",
    "sparse_",
    "uniform",
    "normal",
    "constant",
    "eye",
    "dirac",
    "xavier_uniform",
    "xavier_normal",
    "kaiming_uniform",
    "kaiming_normal",
    "orthogonal",
    "sparse",
]

_NonlinearityType = Literal[
    "linear",
    "conv1d",
    "conv2d",
    "conv3d",
    "conv_transpose1d",
    "conv_transpose2d",
    "conv_transpose3d",
    "sigmoid",
    "tanh",
    "relu",
    "leaky_relu",
    "selu",
]
_FanMode = Literal["fan_in", "fan_out"]

_GAINS: dict[str, float] = {
    **dict.fromkeys(("linear", "conv1d", "conv2d", "conv3d"), 1),
    **dict.fromkeys(("conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "sigmoid"), 1),
    "tanh": 5.0 / 3,
    "relu": math.sqrt(2.0),
    "selu": 3.0 / 4,
}


def calculate_gain(nonlinearity: _NonlinearityType, param: float | None = None) -> float:
    """The recommended gain for a nonlinearity: the factor for the standard deviation of its weights."""
    if nonlinearity == "leaky_relu":
        if param is None:
            param = 0.01
        elif isinstance(param, bool) or not isinstance(param, (int, float)):
            raise ValueError(f"negative_slope {param} not a valid number")
        return math.sqrt(2.0 / (1 + param**2))
    if nonlinearity in _GAINS:
        return _GAINS[nonlinearity]
    raise ValueError(f"Unsupported nonlinearity {nonlinearity}")


def _no_grad_uniform_(tensor: Tensor, a: float, b: float, generator: torch.Generator | None = None) -> Tensor:
    with torch.no_grad():
        return tensor.uniform_(a, b, generator=generator)


def _no_grad_normal_(
    tensor: Tensor, mean: float, std: float, generator: torch.Generator | None = None
) -> Tensor:
    with torch.no_grad():
        return tensor.normal_(mean, std, generator=generator)


def _no_grad_fill_(tensor: Tensor, val: float) -> Tensor:
    with torch.no_grad():
        return tensor.fill_(val)


def _no_grad_zero_(tensor: Tensor) -> Tensor:
    with torch.no_grad():
        return tensor.zero_()


def _normal_cdf(x: float) -> float:
    return (1.0 + math.erf(x / math.sqrt(2.0))) / 2.0


def _no_grad_trunc_normal_(
    tensor: Tensor, mean: float, std: float, a: float, b: float, generator: torch.Generator | None = None
) -> Tensor:
    if mean < a - 2 * std or mean > b + 2 * std:
        warnings.warn(
            "mean is more than 2 std from [a, b] in nn.init.trunc_normal_. "
            "The distribution of values may be incorrect.",
            stacklevel=2,
        )
    with torch.no_grad():
        if _normal_cdf((b - mean) / std) - _normal_cdf((a - mean) / std) > 0.3:
            return _redraw_outside(tensor, mean, std, a, b, generator)
        return _reject_uniforms(tensor, mean, std, a, b, generator)


def _redraw_outside(
    tensor: Tensor, mean: float, std: float, a: float, b: float, generator: torch.Generator | None
) -> Tensor:
    """Normal numbers, redrawn while outside [a, b]: for intervals that contain much of the distribution."""
    low = tensor.new_tensor(a, device="cpu").item()
    high = tensor.new_tensor(b, device="cpu").item()
    values = tensor.normal_(mean, std, generator=generator)
    outside = (values < low) | (values > high)
    while outside.any():
        values = torch.where(
            outside, torch.empty_like(values).normal_(mean, std, generator=generator), values
        )
        outside = (values < low) | (values > high)
    return tensor if values is tensor else tensor.copy_(values)


def _reject_uniforms(
    tensor: Tensor, mean: float, std: float, a: float, b: float, generator: torch.Generator | None
) -> Tensor:
    """Rejection sampling from uniform numbers in [a, b]: each is accepted with probability density / maximum
    density.
    """
    log_max_density = -0.5 * ((min(max(mean, a), b) - mean) / std) ** 2
    log_density, log_uniform = torch.empty_like(tensor), torch.empty_like(tensor)

    def rejected() -> Tensor:
        log_density.sub_(mean).div_(std).pow_(2).mul_(-0.5).sub_(log_max_density)
        return log_uniform.uniform_(generator=generator).log_() > log_density

    values = tensor.uniform_(a, b, generator=generator)
    log_density.copy_(values)
    redrawn = rejected()
    while redrawn.any():
        log_density.uniform_(a, b, generator=generator)
        values = torch.where(redrawn, log_density, values)
        redrawn = torch.where(redrawn, rejected(), redrawn)
    return tensor if values is tensor else tensor.copy_(values)


def uniform_(
    tensor: Tensor, a: float = 0.0, b: float = 1.0, generator: torch.Generator | None = None
) -> Tensor:
    """Fill with uniform numbers in [a, b)."""
    return _no_grad_uniform_(tensor, a, b, generator)


def normal_(
    tensor: Tensor, mean: float = 0.0, std: float = 1.0, generator: torch.Generator | None = None
) -> Tensor:
    """Fill with normal numbers."""
    return _no_grad_normal_(tensor, mean, std, generator)


def trunc_normal_(
    tensor: Tensor,
    mean: float = 0.0,
    std: float = 1.0,
    a: float = -2.0,
    b: float = 2.0,
    generator: torch.Generator | None = None,
) -> Tensor:
    """Fill with normal numbers in [a, b]."""
    return _no_grad_trunc_normal_(tensor, mean, std, a, b, generator=generator)


def constant_(tensor: Tensor, val: float) -> Tensor:
    """Fill with one value."""
    return _no_grad_fill_(tensor, val)


def ones_(tensor: Tensor) -> Tensor:
    """Fill with ones."""
    return _no_grad_fill_(tensor, 1.0)


def zeros_(tensor: Tensor) -> Tensor:
    """Fill with zeros."""
    return _no_grad_zero_(tensor)


def eye_(tensor: Tensor) -> Tensor:
    """Set a matrix to the identity, as far as its shape allows."""
    if tensor.ndimension() != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    with torch.no_grad():
        torch.eye(*tensor.shape, out=tensor, requires_grad=tensor.requires_grad)
    return tensor


def dirac_(tensor: Tensor, groups: int = 1) -> Tensor:
    """Set a convolution's weight so that it copies input channels to output channels, as far as the shape
    allows.
    """
    dimensions = tensor.ndimension()
    if dimensions not in (3, 4, 5):
        raise ValueError("Only tensors with 3, 4, or 5 dimensions are supported")
    sizes = tensor.size()
    if sizes[0] % groups != 0:
        raise ValueError("dim 0 must be divisible by groups")
    n_out = sizes[0] // groups
    centre = tuple(size // 2 for size in sizes[2:])
    with torch.no_grad():
        tensor.zero_()
        for group in range(groups):
            for channel in range(min(n_out, sizes[1])):
                tensor[(group * n_out + channel, channel, *centre)] = 1
    return tensor


def _calculate_fan_in_and_fan_out(tensor: Tensor) -> tuple[int, int]:
    if tensor.dim() < 2:
        raise ValueError("Fan in and fan out can not be computed for tensor with fewer than 2 dimensions")
    field = math.prod(tensor.shape[2:])
    return tensor.size(1) * field, tensor.size(0) * field


def xavier_uniform_(tensor: Tensor, gain: float = 1.0, generator: torch.Generator | None = None) -> Tensor:
    """Fill with uniform numbers whose variance preserves that of activations and gradients (Glorot and
    Bengio).
    """
    fan_in, fan_out = _calculate_fan_in_and_fan_out(tensor)
    std = gain * math.sqrt(2.0 / float(fan_in + fan_out))
    a = math.sqrt(3.0) * std
    return _no_grad_uniform_(tensor, -a, a, generator)


def xavier_normal_(tensor: Tensor, gain: float = 1.0, generator: torch.Generator | None = None) -> Tensor:
    """Fill with normal numbers whose variance preserves that of activations and gradients (Glorot and
    Bengio).
    """
    fan_in, fan_out = _calculate_fan_in_and_fan_out(tensor)
    std = gain * math.sqrt(2.0 / float(fan_in + fan_out))
    return _no_grad_normal_(tensor, 0.0, std, generator)


def _calculate_correct_fan(tensor: Tensor, mode: _FanMode) -> int:
    lowered = mode.lower()
    valid_modes = ["fan_in", "fan_out"]
    if lowered not in valid_modes:
        raise ValueError(f"Mode {lowered} not supported, please use one of {valid_modes}")
    fan_in, fan_out = _calculate_fan_in_and_fan_out(tensor)
    return fan_in if lowered == "fan_in" else fan_out


def _kaiming_std(tensor: Tensor, a: float, mode: _FanMode, nonlinearity: _NonlinearityType) -> float | None:
    """The standard deviation after He et al., None for a tensor without elements."""
    if 0 in tensor.shape:
        warnings.warn("Initializing zero-element tensors is a no-op", stacklevel=3)
        return None
    fan = _calculate_correct_fan(tensor, mode)
    return calculate_gain(nonlinearity, a) / math.sqrt(fan)


def kaiming_uniform_(
    tensor: Tensor,
    a: float = 0,
    mode: _FanMode = "fan_in",
    nonlinearity: _NonlinearityType = "leaky_relu",
    generator: torch.Generator | None = None,
) -> Tensor:
    """Fill with uniform numbers whose variance preserves that of activations through rectifiers (He et al.)."""
    std = _kaiming_std(tensor, a, mode, nonlinearity)
    if std is None:
        return tensor
    bound = math.sqrt(3.0) * std
    return _no_grad_uniform_(tensor, -bound, bound, generator)


def kaiming_normal_(
    tensor: Tensor,
    a: float = 0,
    mode: _FanMode = "fan_in",
    nonlinearity: _NonlinearityType = "leaky_relu",
    generator: torch.Generator | None = None,
) -> Tensor:
    """Fill with normal numbers whose variance preserves that of activations through rectifiers (He et al.)."""
    std = _kaiming_std(tensor, a, mode, nonlinearity)
    return tensor if std is None else _no_grad_normal_(tensor, 0, std, generator)


def orthogonal_(tensor: Tensor, gain: float = 1, generator: torch.Generator | None = None) -> Tensor:
    """Make the tensor, flattened to a matrix with its first dimension as rows, (semi-)orthogonal times gain."""
    if tensor.ndimension() < 2:
        raise ValueError("Only tensors with 2 or more dimensions are supported")
    if tensor.numel() == 0:
        return tensor
    rows = tensor.size(0)
    columns = tensor.numel() // rows
    flattened = tensor.new_empty((rows, columns)).normal_(0, 1, generator=generator)
    if rows < columns:
        flattened.t_()
    q, r = torch.linalg.qr(flattened)
    q *= torch.diag(r, 0).sign()  # makes the draw uniform over the orthogonal matrices
    if rows < columns:
        q.t_()
    with torch.no_grad():
        tensor.view_as(q).copy_(q)
        tensor.mul_(gain)
    return tensor


def sparse_(
    tensor: Tensor, sparsity: float, std: float = 0.01, generator: torch.Generator | None = None
) -> Tensor:
    """Fill a matrix with normal numbers and set a fraction of each column, at random rows, to zero."""
    if tensor.ndimension() != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    rows, columns = tensor.shape
    n_zeros = math.ceil(sparsity * rows)
    with torch.no_grad():
        tensor.normal_(0, std, generator=generator)
        for column in range(columns):
            # As in torch, the rows come from the default generator.
            tensor[torch.randperm(rows)[:n_zeros], column] = 0
    return tensor


def _make_deprecate(meth: Callable[..., Any]) -> Callable[..., Any]:
    new_name = meth.__name__
    old_name = new_name[:-1]

    @functools.wraps(meth)
    def deprecated(*args: Any, **kwargs: Any) -> Any:
        warnings.warn(
            f"`nn.init.{old_name}` is now deprecated in favor of `nn.init.{new_name}`.",
            FutureWarning,
            stacklevel=2,
        )
        return meth(*args, **kwargs)

    deprecated.__name__ = old_name
    deprecated.__doc__ = f"Deprecated: `{new_name}` under its old name."
    del deprecated.__wrapped__  # type: ignore[attr-defined]  # the signature is torch's (*args, **kwargs)
    return deprecated


uniform = _make_deprecate(uniform_)
normal = _make_deprecate(normal_)
constant = _make_deprecate(constant_)
eye = _make_deprecate(eye_)
dirac = _make_deprecate(dirac_)
xavier_uniform = _make_deprecate(xavier_uniform_)
xavier_normal = _make_deprecate(xavier_normal_)
kaiming_uniform = _make_deprecate(kaiming_uniform_)
kaiming_normal = _make_deprecate(kaiming_normal_)
orthogonal = _make_deprecate(orthogonal_)
sparse = _make_deprecate(sparse_)
