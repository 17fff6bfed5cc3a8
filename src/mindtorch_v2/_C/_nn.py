"""torch._C._nn: the ops behind torch.nn.functional by their aten names."""

from __future__ import annotations

from typing import Any

from .._ops import functions

_NAMES = frozenset(
    "adaptive_avg_pool2d adaptive_avg_pool3d adaptive_max_pool2d adaptive_max_pool3d avg_pool2d avg_pool3d binary_cross_entropy "
    "col2im cross_entropy_loss elu elu_ gelu gelu_ glu hardsigmoid hardsigmoid_ hardswish hardswish_ hardtanh hardtanh_ "
    "huber_loss im2col l1_loss leaky_relu leaky_relu_ linear log_sigmoid max_pool2d_with_indices max_pool3d_with_indices mish mish_ "
    "mse_loss multi_margin_loss multilabel_margin_loss nll_loss nll_loss2d nll_loss_nd one_hot pad reflection_pad1d "
    "reflection_pad2d reflection_pad3d relu6 relu6_ replication_pad1d replication_pad2d replication_pad3d rrelu_with_noise "
    "rrelu_with_noise_ scaled_dot_product_attention silu silu_ smooth_l1_loss soft_margin_loss softplus softshrink "
    "upsample_bicubic2d upsample_bilinear2d upsample_linear1d upsample_nearest1d upsample_nearest2d upsample_nearest3d "
    "upsample_trilinear3d fractional_max_pool2d fractional_max_pool3d max_unpool2d max_unpool3d".split()
)


def _parse_to(*args: Any, **kwargs: Any) -> tuple[Any, Any, bool, Any]:
    """Device, dtype, non_blocking and memory format, from any call form of `Tensor.to`."""
    from .._ops.copies import parse_to

    device, dtype, non_blocking, _, memory_format = parse_to(args, kwargs)
    return device, dtype, non_blocking, memory_format


def __getattr__(name: str) -> Any:
    found = getattr(functions, name, None) if name in _NAMES else None
    if found is None:
        raise AttributeError(f"module 'torch._C._nn' has no attribute '{name}'")
    return found


def __dir__() -> list[str]:
    return sorted(name for name in _NAMES if hasattr(functions, name))
