"""Hooks on tensors: `register_hook`, `retain_grad` and the hook after accumulation."""

from __future__ import annotations

import weakref
from collections import OrderedDict
from typing import Any

from .._graph import Node
from ..utils.hooks import RemovableHandle


def register_tensor_hook(tensor: Any, hook: Any) -> RemovableHandle:
    """Call `hook` with the gradient of `tensor`; stored on the node that produces it, or on the leaf."""
    if not tensor._rg:
        raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
    node = tensor.grad_fn
    if node is None:
        if tensor._hooks is None:
            tensor._hooks = OrderedDict()
        hooks = tensor._hooks
    else:
        if node._output_hooks is None:
            node._output_hooks = {}
        hooks = node._output_hooks.setdefault(tensor._output_nr, OrderedDict())
    handle = RemovableHandle(hooks)
    hooks[handle.id] = hook
    return handle


def register_post_accumulate_hook(tensor: Any, hook: Any) -> RemovableHandle:
    """Call `hook(tensor)` after a gradient was added to the leaf's `.grad`."""
    if not tensor._rg:
        raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
    if tensor.grad_fn is not None:
        raise RuntimeError("post accumulate grad hooks cannot be registered on non-leaf tensors")
    if tensor._post_accumulate_hooks is None:
        tensor._post_accumulate_hooks = OrderedDict()
    handle = RemovableHandle(tensor._post_accumulate_hooks)
    tensor._post_accumulate_hooks[handle.id] = hook
    return handle


def retain_grad(tensor: Any) -> None:
    """Keep the gradient of a non-leaf."""
    if not tensor._rg:
        raise RuntimeError("can't retain_grad on Tensor that has requires_grad=False")
    node = tensor.grad_fn
    if node is None or tensor._retain_handle is not None:
        return
    retain_on(tensor, node)


def retain_on(tensor: Any, node: Node) -> None:
    """Let `node` store the gradient of its output in `tensor`."""
    old = tensor._retain_handle
    if old is not None and old[0]._retain:
        old[0]._retain.pop(old[1], None)
    if node._retain is None:
        node._retain = {}
    number = tensor._output_nr if old is None else 0
    node._retain[number] = weakref.ref(tensor)
    tensor._retain_handle = (node, number)
