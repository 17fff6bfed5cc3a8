"""Writes under autograd: what may be written, and how the history of a tensor, its base and its views changes then."""

from __future__ import annotations

from typing import Any

from .. import _dispatch, _dtype
from .._graph import RELEASED_TEXT, Node, attach, edge, grad_state, storage_of
from .._tensor import Tensor


def check_inplace(tensor: Any) -> None:
    """Raise torch's error if `tensor` must not be written while gradients are recorded."""
    if not tensor._rg:
        base = tensor._base
        if base is not None and base._rg and tensor._grad_fn is None and base._rebase_count == tensor._seen_rebase:
            if base._grad_fn is None:
                raise RuntimeError("a view of a leaf Variable that requires grad is being used in an in-place operation.")
            raise RuntimeError(
                "A view was created in no_grad mode and is being modified inplace with grad mode enabled. Given that this use case is "
                "ambiguous and error-prone, it is forbidden. You can clarify your code by moving both the view and the inplace either "
                "both inside the no_grad block (if you don't want the inplace to be tracked) or both outside (if you want the inplace "
                "to be tracked)."
            )
        return
    base = tensor._base
    if base is None:
        if tensor._grad_fn is None:
            raise RuntimeError("a leaf Variable that requires grad is being used in an in-place operation.")
        return
    if base._grad_fn is None:
        raise RuntimeError("a view of a leaf Variable that requires grad is being used in an in-place operation.")
    if tensor._multi_view:
        raise RuntimeError(
            f"Output {tensor._output_nr} of {tensor._grad_fn.name()} is a view and is being modified inplace. This view is the output of a "
            "function that returns multiple views. Such functions do not allow the output views to be modified inplace. You should "
            "replace the inplace operation by an out-of-place one."
        )


def keep_before_write(tensor: Any) -> Any:
    """A copy of what is about to be overwritten and that the backward pass needs; it keeps its history."""
    return tensor.clone()


class CopySlices(Node):
    """The history of a base tensor after a write through one of its views."""

    saved_names = ()
    fn: Node
    geometry: tuple
    base_shape: tuple
    base_stride: tuple

    def name(self) -> str:
        return "torch::autograd::CopySlices"

    def apply(self, gradient: Any) -> tuple:
        if self.fn is None:
            raise RuntimeError(RELEASED_TEXT)
        size, stride, offset = self.geometry
        whole = gradient.new_empty_strided(self.base_shape, self.base_stride).copy_(gradient)
        part = whole.as_strided(size, stride, offset)
        results = self._apply_inner(part.clone(memory_format=_dtype.contiguous_format))
        first = results[0]
        if self.next[0] is not None:
            if first is None:
                part.zero_()
            else:
                part.copy_(first)
            answer = whole
        else:
            answer = None
        return (answer, *results[1:])

    def _apply_inner(self, gradient: Any) -> tuple:
        ranges, fn = _dispatch.ranges, self.fn
        if ranges is None:
            return fn.apply(gradient)
        token = ranges.enter(fn.name(), 1, fn._recorded_sequence(), fn.forward_thread, (gradient,))
        try:
            return fn.apply(gradient)
        finally:
            ranges.exit(token)

    def release(self) -> None:
        if self.fn is not None:
            self.fn.release()
        self.released = True


def rebase(tensor: Any, node: Node) -> None:
    """`tensor` was written by the op of `node`: from now on its history starts there."""
    base = tensor._base
    if base is None:
        _move_retained(tensor, node)
        attach(tensor, node)
        tensor._rebase_count += 1
        return
    copy = CopySlices()
    copy.seq = node.seq
    copy.forward_thread = node.forward_thread
    copy.fn = node
    base_offset = base.storage_offset()
    copy.geometry = (tuple(tensor.shape), tensor.stride(), tensor.storage_offset() - base_offset)
    copy.base_shape, copy.base_stride = tuple(base.shape), base.stride()
    copy.shapes, copy.dtypes = base._array.shape, base._array.dtype
    # the node runs inside CopySlices: its first edge only says whether that gradient is wanted
    copy.next = (edge(base), *node.next[1:])
    if copy.next[0] is not None and node.next[0] is None:
        node.next = (copy.next[0], *node.next[1:])
    _move_retained(base, copy)
    attach(base, copy)
    base._rebase_count += 1
    tensor._rg = True
    refresh_view(tensor)


def refresh_view(view: Any) -> None:
    """Make the history of a view anew from its base, which was written since."""
    base = view._base
    state, enabled = grad_state, grad_state.enabled
    recorder, _dispatch.recorder = _dispatch.recorder, None
    state.enabled = True
    try:
        again = base.as_strided(tuple(view.shape), view.stride(), view.storage_offset())
    finally:
        state.enabled = enabled
        _dispatch.recorder = recorder
    view._grad_fn, view._output_nr, view._rg = again._grad_fn, 0, again._rg
    view._seen_rebase = base._rebase_count


def _move_retained(tensor: Any, node: Node) -> None:
    if tensor._retain_handle is not None:
        from .hooks import retain_on

        retain_on(tensor, node)


def detach_(tensor: Any) -> Any:
    """Forget the history of `tensor`, in place."""
    if tensor._base is not None and tensor._rg:
        raise RuntimeError(
            "Can't detach views in-place. Use detach() instead. If you are using DistributedDataParallel (DDP) for training, and "
            "gradient_as_bucket_view is set as True, gradients are views of DDP buckets, and hence detach_() cannot be called on these "
            "gradients. To fix this error, please refer to the Optimizer.zero_grad() function in torch/optim/optimizer.py as the solution."
        )
    tensor._rg, tensor._grad_fn, tensor._output_nr = False, None, 0
    return tensor


_dispatch.check_inplace = check_inplace  # type: ignore[attr-defined]
_dispatch.keep_before_write = keep_before_write  # type: ignore[attr-defined]
_dispatch.rebase = rebase  # type: ignore[attr-defined]

__all__ = ["CopySlices", "Tensor", "check_inplace", "rebase", "refresh_view", "storage_of"]
