"""Fusion of a layer with the batch norm after it, into one layer for evaluation mode."""

from __future__ import annotations

import copy
from typing import Any, TypeVar

import mindtorch_v2 as torch

__all__ = ["fuse_conv_bn_eval", "fuse_conv_bn_weights", "fuse_linear_bn_eval", "fuse_linear_bn_weights"]

ConvT = TypeVar("ConvT")
LinearT = TypeVar("LinearT")


def _checked_statistics(bn: Any) -> tuple[torch.Tensor, torch.Tensor]:
    if bn.running_mean is None or bn.running_var is None:
        raise AssertionError("bn.running_mean and bn.running_var must not be None")
    return bn.running_mean, bn.running_var


def _parameters(like: Any, weight: Any, bias_like: Any, bias: Any) -> tuple[Any, Any]:
    weight_grad = like.requires_grad
    bias_grad = weight_grad if bias_like is None else bias_like.requires_grad
    return torch.nn.Parameter(weight, weight_grad), torch.nn.Parameter(bias, bias_grad)


def fuse_conv_bn_eval(conv: ConvT, bn: Any, transpose: bool = False) -> ConvT:
    """A copy of the convolution that includes the batch norm."""
    if conv.training or bn.training:
        raise AssertionError("Fusion only for eval!")
    fused = copy.deepcopy(conv)
    mean, var = _checked_statistics(bn)
    fused.weight, fused.bias = fuse_conv_bn_weights(
        fused.weight, fused.bias, mean, var, bn.eps, bn.weight, bn.bias, transpose
    )
    return fused


def fuse_conv_bn_weights(
    conv_w: torch.Tensor,
    conv_b: torch.Tensor | None,
    bn_rm: torch.Tensor,
    bn_rv: torch.Tensor,
    bn_eps: float,
    bn_w: torch.Tensor | None,
    bn_b: torch.Tensor | None,
    transpose: bool = False,
) -> tuple[torch.nn.Parameter, torch.nn.Parameter]:
    """Weight and bias of a convolution that includes the batch norm."""
    bias = torch.zeros_like(bn_rm) if conv_b is None else conv_b
    bn_w = torch.ones_like(bn_rm) if bn_w is None else bn_w
    bn_b = torch.zeros_like(bn_rm) if bn_b is None else bn_b
    factor = bn_w * torch.rsqrt(bn_rv + bn_eps)
    shape = [1] * conv_w.dim()
    shape[1 if transpose else 0] = -1
    weight = (conv_w * factor.reshape(shape)).to(dtype=conv_w.dtype)
    return _parameters(conv_w, weight, conv_b, ((bias - bn_rm) * factor + bn_b).to(dtype=bias.dtype))


def fuse_linear_bn_eval(linear: LinearT, bn: Any) -> LinearT:
    """A copy of the linear layer that includes the batch norm."""
    if linear.training or bn.training:
        raise AssertionError("Fusion only for eval!")
    fused = copy.deepcopy(linear)
    if bn.num_features not in (linear.out_features, 1):
        raise AssertionError(
            "To fuse, linear.out_features == bn.num_features or bn.num_features == 1, got "
            f"linear.out_features={linear.out_features} and bn.num_features={bn.num_features}"
        )
    mean, var = _checked_statistics(bn)
    fused.weight, fused.bias = fuse_linear_bn_weights(
        fused.weight, fused.bias, mean, var, bn.eps, bn.weight, bn.bias
    )
    return fused


def fuse_linear_bn_weights(
    linear_w: torch.Tensor,
    linear_b: torch.Tensor | None,
    bn_rm: torch.Tensor,
    bn_rv: torch.Tensor,
    bn_eps: float,
    bn_w: torch.Tensor,
    bn_b: torch.Tensor,
) -> tuple[torch.nn.Parameter, torch.nn.Parameter]:
    """Weight and bias of a linear layer that includes the batch norm."""
    bias = torch.zeros_like(bn_rm) if linear_b is None else linear_b
    factor = bn_w * torch.rsqrt(bn_rv + bn_eps)
    weight = linear_w * factor.unsqueeze(-1).to(dtype=linear_w.dtype)
    return _parameters(linear_w, weight, linear_b, ((bias - bn_rm) * factor + bn_b).to(dtype=bias.dtype))
