"""The autograd graph: what the dispatcher builds and the engine walks. Grad modes, nodes, edges, saved tensors."""

from __future__ import annotations

import threading
import weakref
from collections import OrderedDict
from typing import Any

import numpy as np

from . import _dtype
from ._storage import UntypedStorage


class _GradState(threading.local):
    """Per thread: grad mode, inference mode, the next sequence number, active saved-tensor hooks."""

    enabled = True
    inference = False
    seq = 0
    saved_hooks: tuple = ()  # innermost last: (pack, unpack) pairs
    saved_hooks_error: str | None = None
    multithreading = True
    anomaly = False
    anomaly_check_nan = True
    run_nr = -1  # number of the backward pass that runs on this thread; -1: none
    run_is_partial = False  # that pass goes to some leaves or tensors only


grad_state = _GradState()


class Switches:
    """Process-wide flags, so that the hot path asks one plain attribute."""

    # True once anybody has used saved-tensor hooks or anomaly mode: only then are the thread's own settings read.
    saved_hooks = False


class Node:
    """A step of the backward pass. `next` holds one edge (node, output number) or None for each differentiable input."""

    next: tuple = ()
    seq = -1
    released = False
    shapes: Any = ()  # shape of the forward output; for several outputs a tuple of shapes (`n_outputs` > 1)
    dtypes: Any = None
    n_outputs = 1
    saved_names: tuple = ()  # all that is saved, in s_<name>
    saved_tensor_names: tuple = ()  # those of them that are freed after a backward pass
    _pre_hooks: dict | None = None  # called with all gradients, before apply
    _post_hooks: dict | None = None
    _output_hooks: dict | None = None  # output number -> list of tensor hooks
    _retain: dict | None = None  # output number -> weak reference to a tensor that keeps its gradient
    _trace: Any = None
    forward_thread = 0

    @property
    def next_functions(self) -> tuple:
        return tuple((None, 0) if edge is None else edge for edge in self.next)

    def name(self) -> str:
        """The class's name."""
        return type(self).__name__

    @property
    def metadata(self) -> dict:
        return self.__dict__.setdefault("_metadata", {})

    def register_hook(self, fn: Any) -> Any:
        """Call `fn(grad_inputs, grad_outputs)` after this node has run."""
        from .utils.hooks import RemovableHandle

        if self._post_hooks is None:
            self._post_hooks = OrderedDict()
        handle = RemovableHandle(self._post_hooks)
        self._post_hooks[handle.id] = fn
        return handle

    def register_prehook(self, fn: Any) -> Any:
        """Call `fn(grad_outputs)` before this node runs."""
        from .utils.hooks import RemovableHandle

        if self._pre_hooks is None:
            self._pre_hooks = OrderedDict()
        handle = RemovableHandle(self._pre_hooks)
        self._pre_hooks[handle.id] = fn
        return handle

    def _sequence_nr(self) -> int:
        return self.seq

    def _recorded_sequence(self) -> int:
        """What a profile shows; the accumulation of leaves has none."""
        return self.seq if self.seq < 1 << 62 else -1

    def _input_metadata_of(self, number: int) -> tuple:
        """Shape and NumPy dtype of forward output `number`."""
        if self.n_outputs == 1:
            return self.shapes, self.dtypes
        return self.shapes[number], self.dtypes[number]

    def apply(self, *grads: Any) -> tuple:
        raise NotImplementedError(f"{self.name()} has no backward")

    def release(self) -> None:
        """Let go of what was saved for the backward pass."""
        self.released = True
        for name in self.saved_tensor_names:
            setattr(self, "s_" + name, RELEASED)

    def __call__(self, *grads: Any) -> Any:
        result = self.apply(*grads) if self.n_outputs == 1 or len(grads) > 1 else self.apply(grads[0])
        return result[0] if len(result) == 1 else result

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_saved_"):
            field = name[len("_saved_") :]
            field = {"result": "out", "self_sym_sizes": "self_shape"}.get(field, field)
            for candidate in (field, field.replace("_sym_sizes", "_shape")):
                if candidate in self.saved_names:
                    return unpack(self, candidate)
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def __repr__(self) -> str:
        return f"<{type(self).__name__} object at {id(self):#x}>"


class _Released:
    """Stands where a saved value was, once the graph is freed."""


RELEASED = _Released()


class Packed:
    """A saved tensor that went through a user's pack hook."""

    __slots__ = ("value", "unpack")

    def __init__(self, value: Any, unpack: Any) -> None:
        self.value, self.unpack = value, unpack


class SavedResult:
    """An output saved by its own node: an alias without history, so that no reference cycle keeps it alive."""

    __slots__ = ("alias", "version", "number")

    def __init__(self, alias: Any, version: int, number: int) -> None:
        self.alias, self.version, self.number = alias, version, number


RELEASED_TEXT = (
    "Trying to backward through the graph a second time (or directly access saved tensors after they have already been freed). "
    "Saved intermediate values of the graph are freed when you call .backward() or autograd.grad(). Specify retain_graph=True "
    "if you need to backward through the graph a second time or if you need to access saved tensors after calling backward."
)


def modified_text(tensor: Any, owner: str, version: int, expected: int) -> str:
    shape = "[" + ", ".join(map(str, tensor._array.shape)) + "]"
    kind = _dtype.BY_NUM[tensor._array.dtype.num]._abbr
    return (
        "one of the variables needed for gradient computation has been modified by an inplace operation: "
        f"[torch.{kind}Tensor {shape}]{owner}, is at version {version}; expected version {expected} instead. Hint: enable anomaly "
        "detection to find the operation that failed to compute its gradient, with torch.autograd.set_detect_anomaly(True)."
    )


def version_of(tensor: Any) -> int:
    storage = tensor._storage
    return 0 if storage is None else storage._version


def storage_of(tensor: Any) -> UntypedStorage:
    """The tensor's storage, made now if nobody has looked yet."""
    storage = tensor._storage
    if storage is None:
        storage = tensor._storage = UntypedStorage._of(tensor._array)
    return storage


def unpack(node: Node, name: str) -> Any:
    """A saved value, ready for use: checked for writes since, with its history."""
    value = getattr(node, "s_" + name)
    kind = value.__class__
    if kind is _Released:
        raise RuntimeError(RELEASED_TEXT)
    if kind is SavedResult:
        return _unpack_result(node, value)
    if kind is Packed:
        return _unpack_packed(node, name, value)
    if kind is list or (kind is tuple and value and hasattr(value[0], "_rg")):
        for tensor, expected in zip(value, getattr(node, "v_" + name)):
            if tensor is not None and version_of(tensor) != expected:
                raise RuntimeError(modified_text(tensor, _owner(tensor), version_of(tensor), expected))
        return value
    if hasattr(value, "_rg"):
        storage = value._storage
        if storage is not None and storage._version != getattr(node, "v_" + name):
            expected = getattr(node, "v_" + name)
            raise RuntimeError(modified_text(value, _owner(value), storage._version, expected))
    return value


def _owner(tensor: Any) -> str:
    fn = tensor._grad_fn
    return "" if fn is None else f", which is output {tensor._output_nr} of {fn.name()}"


def _unpack_result(node: Node, saved: SavedResult) -> Any:
    alias = saved.alias
    if alias.__class__ is Packed:
        tensor = alias.unpack(alias.value)
        alias = tensor
    elif alias._storage._version != saved.version:
        owner = f", which is output {saved.number} of {node.name()}"
        raise RuntimeError(modified_text(alias, owner, alias._storage._version, saved.version))
    if not grad_state.enabled or alias._array.dtype.num in _dtype.INTEGRAL_NUMS:
        return alias
    fresh = alias.__class__.__new__(alias.__class__)
    fresh._array, fresh._storage = alias._array, alias._storage
    fresh._rg, fresh._grad_fn, fresh._output_nr = True, node, saved.number
    return fresh


def _unpack_packed(node: Node, name: str, packed: Packed) -> Any:
    tensor = packed.unpack(packed.value)
    original = getattr(node, "e_" + name, None)  # the edge of the tensor that was packed
    if original is not None and grad_state.enabled and tensor._grad_fn is None:
        fn, number = original
        fresh = tensor.__class__.__new__(tensor.__class__)
        fresh._array, fresh._storage = tensor._array, tensor._storage
        if isinstance(fn, AccumulateGrad):
            return fn.variable
        fresh._rg, fresh._grad_fn, fresh._output_nr = True, fn, number
        return fresh
    return tensor


def pack_saved(node: Node) -> None:
    """Send what `node` saved through the innermost saved-tensor hooks, if any are active on this thread."""
    hooks = grad_state.saved_hooks
    if not hooks:
        return
    pack, unpack_hook = hooks[-1]
    for name in node.saved_tensor_names:
        value = getattr(node, "s_" + name, None)
        if value.__class__ is SavedResult:
            value.alias = Packed(_packed(pack, value.alias), unpack_hook)
        elif hasattr(value, "_rg") and value.__class__ is not Packed:
            setattr(node, "e_" + name, edge(value))
            setattr(node, "s_" + name, Packed(_packed(pack, value), unpack_hook))


def _packed(pack: Any, tensor: Any) -> Any:
    """pack(tensor) under no_grad, refusing a hook that writes to its input."""
    before = version_of(tensor)
    state, enabled = grad_state, grad_state.enabled
    state.enabled = False
    try:
        view = tensor.__class__.__new__(tensor.__class__)
        view._array, view._storage = tensor._array, storage_of(tensor)
        packed = pack(view if not tensor._rg or tensor._grad_fn is not None else tensor)
    finally:
        state.enabled = enabled
    if version_of(tensor) != before:
        raise RuntimeError("A saved tensor pack hook is modifying its input in place. Tensors provided as input to pack hook can not be "
                           "modified by in-place operations as this can lead to unexpected side-effects. Please open an issue if you need "
                           "to perform in-place operations on the input to a pack hook.")
    return packed


class AccumulateGrad(Node):
    """The end of the graph: adds what arrives to a leaf's `.grad`. The leaf knows it only weakly."""

    variable: Any
    seq = 1 << 62  # as soon as its gradient is complete

    def name(self) -> str:
        return "torch::autograd::AccumulateGrad"

    def _input_metadata_of(self, number: int) -> tuple:
        array = self.variable._array
        return array.shape, array.dtype

    def _sequence_nr(self) -> int:
        return (1 << 64) - 1


def accumulator(leaf: Any) -> AccumulateGrad:
    """The leaf's AccumulateGrad node; one as long as some graph holds it."""
    found = leaf._accumulator
    node = None if found is None else found()
    if node is None:
        node = AccumulateGrad.__new__(AccumulateGrad)
        node.variable = leaf
        leaf._accumulator = weakref.ref(node)
    return node


def edge(tensor: Any) -> tuple | None:
    """Where the gradient of `tensor` goes: (node, output number), or None."""
    if not tensor._rg:
        return None
    fn = tensor._grad_fn if tensor._base is None else tensor.grad_fn
    if fn is None:
        fn = accumulator(tensor)
    return fn, tensor._output_nr


def attach(tensor: Any, node: Node, number: int = 0) -> None:
    """Make `tensor` output `number` of `node`."""
    tensor._rg = True
    tensor._grad_fn = node
    tensor._output_nr = number


def is_differentiable(array: np.ndarray) -> bool:
    return array.dtype.num not in _dtype.INTEGRAL_NUMS
