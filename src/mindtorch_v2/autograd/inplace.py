"""In-place writes under autograd: which are allowed, and how they change the history of a tensor, its base
and its views.
"""

from __future__ import annotations

import re
import weakref
from typing import Any

from .. import _dispatch, _dtype
from .._graph import (
    Node,
    SavedResult,
    Switches,
    attach,
    edge,
    grad_state,
    set_requires_grad,
    storage_of,
    version_of,
)
from .._tensor import Tensor
from .._torch_dispatch import replay_view

_MULTIPLE = (
    "This view is the output of a function that returns multiple views. Such functions do not allow the output views to be modified "
    "inplace. You should replace the inplace operation by an out-of-place one."
)
_CUSTOM = (
    "This view was created inside a custom Function (or because an input was returned as-is) and the autograd logic to handle view+inplace "
    "would override the custom backward associated with the custom Function, leading to incorrect gradients. This behavior is forbidden. "
    "You can fix this by cloning the output of the custom Function."
)
_AMBIGUOUS = (
    "Given that this use case is ambiguous and error-prone, it is forbidden. You can clarify your code by moving both the view and the "
    "inplace either both inside the {} block (if you don't want the inplace to be tracked) or both outside (if you want the inplace to be "
    "tracked)."
)
_WRITTEN = "is being modified inplace"
_CHANGED = "its base or another view of its base has been modified inplace"


def _check_view(view: Any, action: str) -> None:
    """Raise torch's error if a view must not be written, or used after a write to its memory (`action`
    is the text for either).
    """
    kind, fn = view._view_made_in, view._grad_fn
    if kind is None and not view._multi_view:
        return
    if fn is not None:
        start = (
            f"Output {view._output_nr} of {re.sub('Backward[0-9]*$', '', fn.name())} is a view and {action}. "
        )
    elif kind == "inference":
        start = f"A view was created in inference mode and {action} in normal mode. "
    else:
        start = f"A view was created in no_grad mode and {action} with grad mode enabled. "
    if view._multi_view:
        raise RuntimeError(start + _MULTIPLE)
    if kind == "function":
        raise RuntimeError(start + _CUSTOM)
    raise RuntimeError(start + _AMBIGUOUS.format("inference_mode" if kind == "inference" else "no_grad"))


def check_inplace(tensor: Any) -> None:
    """Raise torch's error if `tensor` must not be written while gradients are enabled."""
    base = tensor._base
    if base is None:
        if tensor._rg and tensor._grad_fn is None:
            raise RuntimeError("a leaf Variable that requires grad is being used in an in-place operation.")
        return
    _check_view(tensor, _WRITTEN)
    if (tensor._rg or base._rg) and base._grad_fn is None:
        raise RuntimeError(
            "a view of a leaf Variable that requires grad is being used in an in-place operation."
        )


def keep_before_write(tensor: Any) -> Any:
    """A copy of a value that the backward pass needs, taken before it is overwritten; it keeps its history.

    The next sequence number is reserved for the node of the write, which is created after this copy.
    """
    state = grad_state
    first = state.seq
    state.seq = first + 1
    copy = tensor.clone()
    state.numbers_taken = state.seq - first - 1
    state.seq = first
    return copy


class CopySlices(Node):
    """The history of a base tensor after a write through one of its views."""

    saved_names = ()
    fn: Node
    number: int
    geometry: tuple
    base_shape: tuple
    base_stride: tuple
    replay: Any = None  # the view ops to replay, where the base is a wrapper subclass

    def name(self) -> str:
        return "torch::autograd::CopySlices"

    def apply(self, gradient: Any) -> tuple:
        size, stride, offset = self.geometry
        base_gradient = gradient.new_empty_strided(self.base_shape, self.base_stride).copy_(gradient)
        part = (
            base_gradient.as_strided(size, stride, offset)
            if self.replay is None
            else replay_view(self.replay, base_gradient)
        )
        part_gradient = part.clone(memory_format=_dtype.contiguous_format)
        results = _dispatch.in_range(_application, _apply_inner, self, part_gradient)
        first = results[0]
        if self.next[0] is not None:
            if first is None:
                part.zero_()
            else:
                part.copy_(first)
            base_result = base_gradient
        else:
            base_result = None
        return (base_result, *results[1:])

    def release(self) -> None:
        """Release what the writing op has saved."""
        self.fn.release()
        self.released = True

    def through_view(self) -> Node:
        """A node for the written tensor as a part of its base."""
        node = _PartOfBase()
        node.geometry, node.base_shape, node.base_stride = self.geometry, self.base_shape, self.base_stride
        node.next = ((self, 0),)
        node.seq, grad_state.seq = grad_state.seq, grad_state.seq + 1
        node.shapes, node.dtypes = self.geometry[0], self.dtypes
        return node


def _apply_inner(node: CopySlices, gradient: Any) -> tuple:
    """Run the node of the op that wrote: only one of its outputs was written."""
    inner = node.fn
    return inner.apply(*[gradient if i == node.number else None for i in range(inner.n_outputs)])


def _application(node: CopySlices, gradient: Any) -> tuple:
    inner = node.fn
    return (
        inner.name(),
        _dispatch.BACKWARD_SCOPE,
        inner._recorded_sequence(),
        inner.forward_thread,
        (gradient,),
    )


class _PartOfBase(Node):
    """Turns the gradient of a part of a base tensor into one of the whole base."""

    geometry: tuple
    base_shape: tuple
    base_stride: tuple

    def name(self) -> str:
        return "AsStridedBackward0"

    def apply(self, gradient: Any) -> tuple:
        from .._ops.shape import as_strided_backward  # the ops are imported after autograd

        size, stride, offset = self.geometry
        return (as_strided_backward(gradient, size, stride, offset, self.base_shape, self.base_stride, 0),)


def rebase(tensor: Any, node: Node, number: int = 0) -> None:
    """`tensor` was written by the op of `node`, as its output `number`: its history starts there from now on."""
    if grad_state.numbers_taken:
        grad_state.seq += grad_state.numbers_taken
        grad_state.numbers_taken = 0
    base = tensor._base
    if base is None:
        _move_retained(tensor, node)
        attach(tensor, node, number)
        set_requires_grad(tensor, True)
        return
    copy = CopySlices()
    copy.seq, grad_state.seq = grad_state.seq, grad_state.seq + 1
    copy.forward_thread = node.forward_thread
    copy.fn, copy.number = node, number
    copy.replay = tensor._replay
    geometry = (tensor._array.shape, tensor.stride(), tensor.storage_offset())
    copy.geometry = (*geometry[:2], geometry[2] - base.storage_offset())
    copy.base_shape, copy.base_stride = base._array.shape, base.stride()
    copy.shapes, copy.dtypes = base._array.shape, base._array.dtype
    # the node runs inside CopySlices: its first edge only says whether that gradient is needed
    copy.next = (edge(base), *node.next[1:])
    if copy.next[0] is not None and node.next[0] is None:
        node.next = (copy.next[0], *node.next[1:])
    saved_results = [
        saved
        for name in node.saved_tensor_names
        if (saved := getattr(node, "s_" + name, None)).__class__ is SavedResult
    ]
    for saved in saved_results:
        saved.written = weakref.ref(copy)
    if Switches.anomaly:
        copy.metadata.update(node.metadata)
    _move_retained(base, copy)
    attach(base, copy)
    set_requires_grad(base, True)
    tensor._rg = True
    refresh_view(tensor, geometry)
    for saved in saved_results if tensor._grad_fn is not None else ():
        saved.part = weakref.ref(tensor._grad_fn)


def refresh_view(view: Any, geometry: tuple[Any, ...] | None = None) -> None:
    """Rebuild the history of a view, whose geometry (shape, strides, offset) may be known, from its base, whose memory has been
    written since."""
    base = view._base
    if not base._rg:
        view._seen_version = version_of(view)
        return
    _check_view(view, _CHANGED)
    state, enabled = grad_state, grad_state.enabled
    steps = view._replay
    state.enabled = True
    try:
        if steps is not None:
            rebuilt = replay_view(steps, base)
        else:
            # torch makes the node without a call of the op: neither a recorder nor an override sees one
            as_strided = _dispatch.OPS["as_strided"]
            run = as_strided.bodies.get("run", as_strided.run)
            rebuilt = run(base, *(geometry or (tuple(view.shape), view.stride(), view.storage_offset())))
    finally:
        state.enabled = enabled
    view._grad_fn, view._output_nr, view._rg = rebuilt._grad_fn, 0, rebuilt._rg
    view._seen_version = version_of(view)


def _move_retained(tensor: Any, node: Node) -> None:
    if tensor._retain_handle is not None:
        from .hooks import retain_on

        retain_on(tensor, node)


_DETACHED = (
    "Trying to use a saved tensor that has been detached in-place, i.e. with .detach_().This is not supported, please use out-of-place "
    "`.detach()` instead"
)


def detach_(tensor: Any) -> Any:
    """Drop the history of `tensor`, in place."""
    if tensor._base is not None:
        raise RuntimeError(
            "Can't detach views in-place. Use detach() instead. If you are using DistributedDataParallel (DDP) for training, and "
            "gradient_as_bucket_view is set as True, gradients are views of DDP buckets, and hence detach_() cannot be called on these "
            "gradients. To fix this error, please refer to the Optimizer.zero_grad() function in torch/optim/optimizer.py as the solution."
        )
    if tensor._grad_fn is not None:
        tensor._spoiled = _DETACHED
    set_requires_grad(tensor, False)
    tensor._grad_fn, tensor._output_nr = None, 0
    return tensor


_dispatch.check_inplace = check_inplace  # type: ignore[attr-defined]
_dispatch.keep_before_write = keep_before_write  # type: ignore[attr-defined]
_dispatch.rebase = rebase  # type: ignore[attr-defined]

__all__ = ["CopySlices", "Tensor", "check_inplace", "rebase", "refresh_view", "storage_of"]
