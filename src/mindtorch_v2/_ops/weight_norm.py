"""Weight normalisation: a direction v and a length g in, `g * v / norm(v)` out; the norm is over all dims but one."""

from __future__ import annotations

from typing import Any

import numpy as np

from mindtorch_prof.inputs import ELEMENT_TYPES

from .._dispatch import composite, op
from .._graph import grad_state
from ._children import Child, child, tensor
from ._namespace import functions as F
from .norms import norm_along, norm_of_all


@composite("aten::norm_except_dim(Tensor v, int pow=2, int dim=0) -> Tensor", expose="function")
def norm_except_dim(v: Any, pow: int = 2, dim: int = 0) -> Any:
    if dim == -1:
        return norm_of_all(v, pow)
    rest = [1] * (v.dim() - 1)
    if dim == 0:
        return norm_along(v.contiguous().view((v.shape[0], -1)), pow, 1).view((v.shape[0], *rest))
    if dim == v.dim() - 1:
        return norm_along(v.contiguous().view((-1, v.shape[-1])), pow, 0).view((*rest, v.shape[-1]))
    return F.transpose(norm_except_dim(F.transpose(v, 0, dim), pow, 0), 0, dim)


@composite("aten::_weight_norm(Tensor v, Tensor g, int dim=0) -> Tensor", expose="function")
def _weight_norm(v: Any, g: Any, dim: int = 0) -> Any:
    if dim in (0, v.dim() - 1):
        return F._weight_norm_interface(v.contiguous(), g.contiguous(), dim)[0]
    return v * (g / F.norm_except_dim(v, 2, dim))


def _other_dims(ndim: int, dim: int) -> tuple[int, ...]:
    return tuple(d for d in range(ndim) if d != dim % ndim)


# torch calls the second argument g, which in a rule is the gradient.
@op("aten::_weight_norm_interface(Tensor v, Tensor length, int dim=0) -> (Tensor, Tensor)",
    expose="function", node="WeightNormInterfaceBackward0", outputs=1)  # fmt: skip
def _weight_norm_interface(v: np.ndarray, length: np.ndarray, dim: int = 0) -> Any:
    norms = np.sqrt(np.sum(np.square(v), axis=_other_dims(v.ndim, dim), keepdims=True))
    return v * (length / norms), norms


@_weight_norm_interface.children
def _(v: Any, length: Any, dim: int) -> list[Child]:
    norms = tensor([n if d == dim % len(v.shape) else 1 for d, n in enumerate(v.shape)], length)
    return [
        child("aten::empty_like", v, None, None, None, None, 0, allocates=True),
        child("aten::empty_strided", norms.shape, norms.strides, ELEMENT_TYPES[norms.type].number, 0),
    ]


@_weight_norm_interface.backward("v", "length")
def _(g: Any, v: Any, length: Any, dim: int, result1: Any) -> Any:
    grad_w = g.contiguous()
    if grad_state.enabled:
        return F._weight_norm_differentiable_backward(grad_w, v, length, result1, dim)
    return F._weight_norm_interface_backward(grad_w, v, length, result1, dim)


@op("aten::_weight_norm_interface_backward(Tensor grad_w, Tensor saved_v, Tensor saved_g, "
    "Tensor saved_norms, int dim) -> (Tensor, Tensor)", expose="no", nondifferentiable=True)  # fmt: skip
def _weight_norm_interface_backward(
    grad_w: np.ndarray, saved_v: np.ndarray, saved_g: np.ndarray, saved_norms: np.ndarray, dim: int
) -> Any:
    along = np.sum(grad_w * saved_v, axis=_other_dims(saved_v.ndim, dim), keepdims=True) / saved_norms
    return (grad_w - saved_v * (along / saved_norms)) * (saved_g / saved_norms), along


@_weight_norm_interface_backward.children
def _(grad_w: Any, saved_v: Any, saved_g: Any, saved_norms: Any, dim: Any) -> list[Child]:
    return [
        child("aten::empty_like", saved_v, None, None, None, None, 0, allocates=True),
        child("aten::empty_like", saved_g, None, None, None, None, 0),
    ]


@composite("aten::_weight_norm_differentiable_backward(Tensor grad_w, Tensor saved_v, Tensor saved_g, "
           "Tensor saved_norms, int dim) -> (Tensor, Tensor)", expose="no")  # fmt: skip
def _weight_norm_differentiable_backward(
    grad_w: Any, saved_v: Any, saved_g: Any, saved_norms: Any, dim: int
) -> Any:
    # The saved norms have no history, so what depends on v through them is computed again.
    norms = F.norm_except_dim(saved_v, 2, dim)
    along = F.sum(grad_w * saved_v, list(_other_dims(saved_v.dim(), dim)), True) / norms
    return (saved_g / norms) * (grad_w - saved_v * (along / norms)), along
