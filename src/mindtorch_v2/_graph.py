"""The autograd graph: what the dispatcher builds and the engine walks. Grad modes, nodes, edges, saved tensors."""

from __future__ import annotations

import re
import threading
import weakref
from collections import OrderedDict
from typing import Any, NamedTuple

import numpy as np

from . import _dtype
from ._storage import UntypedStorage
from ._tensor_slots import own_attributes, per_thread, remember


class _GradState(threading.local):
    """Per thread: grad mode, inference mode, the next sequence number, active saved-tensor hooks."""

    enabled = True
    below = 0  # not 0: a `__torch_dispatch__` handler or a library kernel runs below autograd; 2: gradients are enabled above it
    inference = False
    seq = 0
    saved_hooks: tuple = ()  # innermost last: (pack, unpack) pairs
    saved_hooks_error: str | None = None  # why hooks may not be used now
    multithreading = True
    dual_level: Any = None  # the open level of forward-mode differentiation
    view_replay = False
    layout_policy = True  # a leaf's gradient gets the leaf's strides
    numbers_taken = 0  # sequence numbers reserved after that of a node which does not exist yet
    run: Any = None  # the backward pass that runs on this thread
    node: Any = None  # the node that it evaluates, in anomaly mode


grad_state = per_thread(_GradState)


def own_grad_state() -> Any:
    """This thread's grad state, with `seq` and `enabled` by subscript: a recording reads both at each op."""
    return own_attributes(grad_state, ("seq", "enabled"))


class Switches:
    """Process-wide flags, so that the hot path reads one plain attribute."""

    # The number of users of saved-tensor hooks and of anomaly mode: only if there are any are the settings of the thread read.
    saved_hooks = 0
    anomaly = False
    anomaly_check_nan = True
    lock = threading.Lock()
    asked: Any = (
        None  # asked(*tensors): whether a `__torch_dispatch__` handler applies; None if there is none
    )
    quietly: Any = None  # quietly(function, *arguments): calls it with overrides disabled; False, without a call, if they are already

    @classmethod
    def watch(cls, change: int) -> None:
        """One user more (1) or less (-1)."""
        with cls.lock:
            cls.saved_hooks += change


WITHOUT_SEQUENCE = 1 << 62  # sequence numbers from here on are not shown in a profile


class Node:
    """A step of the backward pass. `next` holds one edge (node, output number) or None for each differentiable input."""

    next: tuple = ()
    seq = -1
    released = False
    shapes: Any = ()  # shape of the forward output; for several outputs a tuple of shapes (`n_outputs` > 1)
    dtypes: Any = None
    n_outputs = 1
    takes_none = False  # run it even when no gradient has arrived
    is_users = False  # runs a function that the user wrote
    frees_gradients = False  # incoming gradients are freed inside it, as a profile shows
    saved_names: tuple = ()  # all that is saved, in s_<name>
    saved_tensor_names: tuple = ()  # those of them that are freed after a backward pass
    _pre_hooks: dict | None = None  # called with all gradients, before apply
    _post_hooks: dict | None = None
    _output_hooks: dict | None = None  # output number -> list of tensor hooks
    _retain: dict | None = None  # output number -> weak reference to a tensor that keeps its gradient
    forward_thread = 0
    full_name: str | None = None  # torch's name of a node, where it is more than the class's

    @property
    def next_functions(self) -> tuple:
        return tuple((None, 0) if edge is None else edge for edge in self.next)

    def name(self) -> str:
        """What torch calls this node."""
        return self.full_name or type(self).__name__

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

    def _register_hook_dict(self, hooks: Any) -> None:
        self._post_hooks = hooks

    @property
    def _input_metadata(self) -> list:
        metadata = [self._input_metadata_of(number) for number in range(self.n_outputs)]
        return [_InputMetadata(list(shape), np_dtype) for shape, np_dtype in metadata]

    def _sequence_nr(self) -> int:
        return self.seq

    def _recorded_sequence(self) -> int:
        """The sequence number in a profile; AccumulateGrad nodes have none."""
        return self.seq if self.seq < WITHOUT_SEQUENCE else -1

    def _input_metadata_of(self, number: int) -> tuple:
        """Shape and NumPy dtype of forward output `number`."""
        if self.n_outputs == 1:
            return self.shapes, self.dtypes
        return self.shapes[number], self.dtypes[number]

    def apply(self, *grads: Any) -> tuple:
        raise NotImplementedError(f"{self.name()} has no backward")

    def release(self) -> None:
        """Release what was saved for the backward pass."""
        self.released = True
        for name in self.saved_tensor_names:
            setattr(self, "s_" + name, RELEASED)

    def __call__(self, *grads: Any) -> Any:
        result = self.apply(*grads) if self.n_outputs == 1 or len(grads) > 1 else self.apply(grads[0])
        return result[0] if len(result) == 1 else result

    def __getattr__(self, name: str) -> Any:
        if name.startswith(("_saved_", "_raw_saved_")):
            field = self._saved_field(name[name.index("saved_") + 6 :])
            if field is not None:
                if name.startswith("_saved_"):
                    return unpack(self, field)
                if field in self.saved_tensor_names:
                    return raw_saved(self, field)
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def _saved_field(self, name: str) -> str | None:
        """What a value that torch calls `name` is saved as here."""
        for field in (name, _TORCHS_NAMES.get(name, ""), name.replace("_sym_sizes", "_shape")):
            if field in self.saved_names:
                return field
        return None

    def __repr__(self) -> str:
        return f"<{type(self).__name__} object at {id(self):#x}>"


_TORCHS_NAMES = {
    "result": "out",
    "result0": "out",
    "self_sym_sizes": "self_shape",
    "self_scalar_type": "self_dtype",
}


class _InputMetadata(NamedTuple):
    """What a gradient for a node must look like."""

    shape: Any
    np_dtype: Any
    device: Any = None
    is_nested_tensor: bool = False

    @property
    def dtype(self) -> Any:
        return _dtype.BY_NUM[self.np_dtype.num]


class _Released:
    """Replaces a saved value once the graph is freed."""


RELEASED = _Released()


class Packed:
    """A saved tensor that went through a user's pack hook. `history`: the edge of the tensor that was packed."""

    __slots__ = ("value", "unpack", "history")

    def __init__(self, pack: Any, unpack: Any, tensor: Any, history: tuple | None) -> None:
        self.value, self.unpack, self.history = _packed(pack, tensor), unpack, history


class SavedResult:
    """An output saved by its own node: an alias without history, so that no reference cycle keeps it alive."""

    __slots__ = ("alias", "version", "number", "written", "part")

    def __init__(self, alias: Any, version: int, number: int) -> None:
        self.alias, self.version, self.number = alias, version, number
        self.written: Any = None  # for a write through a view: a weak reference to the base's CopySlices
        self.part: Any = None  # and one to the node of the view since then

    def history(self, node: Node) -> tuple:
        """Where the gradient of this output goes."""
        if self.written is None:
            return node, self.number
        part = None if self.part is None else self.part()
        return (self.written().through_view() if part is None else part), 0


class SavedTensor:
    """A handle on one saved tensor of a node (`node._raw_saved_self`)."""

    def __init__(self, node: Any, name: str, place: int | None = None) -> None:
        self._node, self._name, self._place = node, name, place

    def _value(self) -> Any:
        value = getattr(self._node, "s_" + self._name)
        return value if self._place is None or value.__class__ is _Released else value[self._place]

    def unpack(self) -> Any:
        """The tensor, as the backward pass would get it."""
        value = unpack(self._node, self._name)
        return value if self._place is None else value[self._place]

    def register_hooks(self, pack_hook: Any, unpack_hook: Any) -> None:
        """Send the tensor through `pack_hook` now and through `unpack_hook` when it is needed."""
        value = self._value()
        if value.__class__ is _Released:
            raise RuntimeError(FREED_TEXT)
        if value is None:
            raise RuntimeError("Calling register_hooks on a saved tensor with value None is forbidden")
        if value.__class__ is Packed or getattr(value, "alias", None).__class__ is Packed:
            raise RuntimeError(
                "Calling register_hooks on a saved tensor whose hooks have already been set. Hint: only one pair of hooks is allowed "
                "at a time."
            )
        packed = pack_value(self._node, value, pack_hook, unpack_hook)
        if self._place is not None:
            whole = list(getattr(self._node, "s_" + self._name))
            whole[self._place] = packed
            packed = tuple(whole)
        setattr(self._node, "s_" + self._name, packed)


def raw_saved(node: Any, name: str) -> Any:
    """Handles on what `node` saved as `name`: one, or a tuple of them."""
    value = getattr(node, "s_" + name)
    if value.__class__ in (list, tuple):
        return tuple(SavedTensor(node, name, place) for place in range(len(value)))
    return SavedTensor(node, name)


FREED_TEXT = (
    "Calling register_hooks on a saved tensor after it has been freed. Saved intermediate values of the graph are freed when you call "
    ".backward() or autograd.grad(). Specify retain_graph=True if you need to backward through the graph a second time or if you need to "
    "access saved variables after calling backward."
)
RELEASED_TEXT = (
    "Trying to backward through the graph a second time (or directly access saved tensors after they have already been freed). "
    "Saved intermediate values of the graph are freed when you call .backward() or autograd.grad(). Specify retain_graph=True "
    "if you need to backward through the graph a second time or if you need to access saved tensors after calling backward."
)


def modified_text(tensor: Any, owner: str, version: int, expected: int) -> str:
    shape = "[" + ", ".join(map(str, tensor._array.shape)) + "]"
    dtype = _dtype.BY_NUM[tensor._array.dtype.num]
    kind = f"CPU{dtype._abbr}Type" if dtype.is_complex else f"torch.{dtype._abbr}Tensor"
    if Switches.anomaly:
        hint = (
            "the backtrace further above shows the operation that failed to compute its gradient. The variable in question was changed "
            "in there or anywhere later. Good luck!"
        )
    else:
        hint = (
            "enable anomaly detection to find the operation that failed to compute its gradient, with "
            "torch.autograd.set_detect_anomaly(True, check_nan=False)."
        )
    return (
        "one of the variables needed for gradient computation has been modified by an inplace operation: "
        f"[{kind} {shape}]{owner} is at version {version}; expected version {expected} instead. Hint: {hint}"
    )


def owner_text(node: Any, number: int) -> str:
    """The op that created a tensor, for `modified_text`."""
    return f", which is output {number} of {re.sub('Backward[0-9]*$', '', node.name())},"


def version_of(tensor: Any) -> int:
    storage = tensor._storage
    return 0 if storage is None else storage._version


def storage_of(tensor: Any) -> UntypedStorage:
    """The tensor's storage, created at first use."""
    storage = tensor._storage
    if storage is None:
        kind = InferenceStorage if tensor._spoiled is INFERENCE else UntypedStorage
        storage = tensor._storage = kind._of(tensor._array)
    return storage


def note_holder(source: Any, tensor: Any) -> None:
    """`tensor`, which is no view, is on the memory of `source`: both are found through it from now on (`_storage.share`)."""
    storage = source._storage if source._storage._keeps is None else source._storage._keeps
    holders = storage._holders
    if holders is None:
        holders = storage._holders = {}
    if source._base is not None:
        source = source._base
    for holder in (source, tensor) if tensor._base is None else (source,):
        remember(holders, holder)


INFERENCE = (
    "Inference tensors cannot be saved for backward. Please do not use Tensors created in inference mode in computation tracked by "
    "autograd. To work around this, you can make a clone to get a normal tensor and use it in autograd, or use `torch.no_grad()` instead of "
    "`torch.inference_mode()`."
)


class InferenceStorage(UntypedStorage):
    """Memory allocated in inference mode: writes are not counted, and raise outside it."""

    @property
    def _version(self) -> int:  # type: ignore[override]
        return 0

    @_version.setter
    def _version(self, value: int) -> None:
        if not grad_state.inference:
            refuse_write()


def refuse_write() -> None:
    raise RuntimeError(
        "Inplace update to inference tensor outside InferenceMode is not allowed.You can make a clone to get a normal tensor before doing "
        "inplace update.See https://github.com/pytorch/rfcs/pull/17 for more details."
    )


def is_inference(tensor: Any) -> bool:
    """Whether a tensor's memory was allocated in inference mode."""
    storage = tensor._storage
    return tensor._spoiled is INFERENCE if storage is None else storage.__class__ is InferenceStorage


def unpack(node: Node, name: str) -> Any:
    """A saved value, ready for use: checked for later writes, with its history."""
    value = getattr(node, "s_" + name)
    kind = value.__class__
    if kind is _Released:
        raise RuntimeError(RELEASED_TEXT)
    if kind is tuple and name in node.saved_tensor_names:
        return [_unpacked(node, x, expected) for x, expected in zip(value, getattr(node, "v_" + name))]
    if kind is SavedResult or kind is Packed:
        return _unpacked(node, value, 0)
    if hasattr(value, "_rg"):
        storage = value._storage
        if value._spoiled or (storage is not None and storage._version != getattr(node, "v_" + name)):
            return _unpacked(node, value, getattr(node, "v_" + name))
    return value


def _unpacked(node: Node, value: Any, expected: int) -> Any:
    """One saved tensor, ready for use."""
    if value is None:
        return None
    if value.__class__ is SavedResult:
        return _unpack_result(node, value)
    if value.__class__ is Packed:
        return unpack_packed(value)
    if value._spoiled and (value._spoiled is not INFERENCE or is_inference(value)):
        raise RuntimeError(value._spoiled)
    if version_of(value) != expected:
        raise RuntimeError(modified_text(value, _owner(value), version_of(value), expected))
    return value


def _owner(tensor: Any) -> str:
    fn = tensor.grad_fn
    return "" if fn is None else owner_text(fn, tensor._output_nr)


def _unpack_result(node: Node, saved: SavedResult) -> Any:
    alias = saved.alias
    if alias.__class__ is Packed:
        return unpack_packed(alias, saved.history(node) if grad_state.enabled else None)
    if Switches.asked is not None and saved.number < node.n_outputs and Switches.asked(alias):
        return _unpack_under_dispatch(node, saved) if is_differentiable(alias._array) else alias
    if alias._storage._version != saved.version:
        owner = owner_text(node, saved.number) if is_differentiable(alias._array) else ""
        raise RuntimeError(modified_text(alias, owner, alias._storage._version, saved.version))
    # a user's backward may enable gradients itself and then differentiate with respect to an output
    if not (grad_state.enabled or node.is_users) or not is_differentiable(alias._array):
        return alias
    return _alias_with_history(alias, saved.history(node))


def _unpack_under_dispatch(node: Node, saved: SavedResult) -> Any:
    """The same while `__torch_dispatch__` handlers are active: they see `detach`, and the result has its history."""
    from ._torch_dispatch import detach_for_saving

    alias = saved.alias
    if version_of(alias) != saved.version:
        raise RuntimeError(
            modified_text(alias, owner_text(node, saved.number), version_of(alias), saved.version)
        )
    fresh = detach_for_saving(alias)
    attach(fresh, *saved.history(node))
    return fresh


def with_history(tensor: Any, history: tuple) -> Any:
    """`tensor` for use in a backward pass: an alias that continues at `history` when gradients are recorded."""
    if not grad_state.enabled or tensor._array.dtype.kind in "iub":
        return tensor
    return _alias_with_history(tensor, history)


def _alias_with_history(tensor: Any, history: tuple) -> Any:
    if tensor._array_missing:
        from ._torch_dispatch import shallow_copy

        fresh = shallow_copy(tensor)
    else:
        from ._tensor import _new

        fresh = _new(tensor.__class__)
    fresh._array, fresh._storage = tensor._array, tensor._storage
    fresh._rg, (fresh._grad_fn, fresh._output_nr) = True, history
    return fresh


def unpack_packed(packed: Packed, history: tuple | None = None) -> Any:
    """What the unpack hook gives, tied to the graph as the packed tensor was."""
    from ._dispatch import call_user

    tensor = call_user(packed.unpack, packed.value)
    if not hasattr(tensor, "_rg"):
        kind = "None" if tensor is None else type(tensor).__name__
        raise TypeError(
            f"Output of saved tensor unpack_hook expected to be a Tensor but got result of type {kind}"
        )
    history = history or packed.history
    if history is None or (tensor._rg and tensor.grad_fn is history[0]):
        return tensor
    if history[0].__class__ is AccumulateGrad:
        if not grad_state.enabled or tensor is history[0].variable:
            return tensor
        leaf = tensor.detach()
        leaf._rg, leaf._accumulator = True, weakref.ref(history[0])
        return leaf
    return with_history(tensor, history)


def pack_saved(node: Node) -> None:
    """For a new node in anomaly mode or under saved-tensor hooks: note the forward call, pack what was saved."""
    if Switches.anomaly:
        from .autograd.anomaly_mode import note_forward

        note_forward(node)
    hooks = grad_state.saved_hooks
    if not hooks:
        return
    for name in node.saved_tensor_names:
        value = getattr(node, "s_" + name, None)
        if value.__class__ in (list, tuple):
            packed: Any = tuple([None if x is None else pack_value(node, x, *hooks[-1]) for x in value])
        elif value.__class__ is SavedResult or hasattr(value, "_rg"):
            packed = pack_value(node, value, *hooks[-1])
        else:
            continue
        setattr(node, "s_" + name, packed)


def pack_value(node: Node, value: Any, pack: Any, unpack_hook: Any) -> Any:
    """A saved tensor in the form that a pair of hooks gives it."""
    if value.__class__ is not SavedResult:
        return Packed(pack, unpack_hook, value, edge(value))
    alias = value.alias
    shown = (
        alias if alias._array.dtype.num in _dtype.INTEGRAL_NUMS else with_history(alias, (node, value.number))
    )
    value.alias = Packed(pack, unpack_hook, shown, None)
    return value


def _packed(pack: Any, tensor: Any) -> Any:
    """pack(tensor) under no_grad, refusing a hook that writes to its input."""
    from ._dispatch import call_user

    storage_of(tensor)
    before = version_of(tensor)
    state, enabled = grad_state, grad_state.enabled
    state.enabled = False
    try:
        packed = call_user(pack, tensor)
    finally:
        state.enabled = enabled
    if version_of(tensor) != before:
        raise RuntimeError(
            "A saved tensor pack hook is modifying its input in place. Tensors provided as input to pack hook cannot be modified by in-place "
            "operations as this can lead to unexpected side-effects. Please open an issue if you need to perform in-place operations on "
            "the input to a pack hook."
        )
    return packed


class AccumulateGrad(Node):
    """The end of the graph: adds what arrives to a leaf's `.grad`. The leaf has only a weak reference to it."""

    variable: Any
    seq = WITHOUT_SEQUENCE  # runs as soon as its gradient is complete

    def name(self) -> str:
        return "torch::autograd::AccumulateGrad"

    def _input_metadata_of(self, number: int) -> tuple:
        variable = self.variable
        if variable._array_missing or variable._is_sparse_layout:
            return tuple(variable.shape), variable.dtype._np
        return variable._array.shape, variable._array.dtype

    def _sequence_nr(self) -> int:
        return (1 << 64) - 1


def accumulator(leaf: Any) -> AccumulateGrad:
    """The leaf's AccumulateGrad node; one as long as some graph holds it."""
    reference = leaf._accumulator
    node = None if reference is None else reference()
    if node is None:
        node = AccumulateGrad.__new__(AccumulateGrad)
        node.variable = leaf
        leaf._accumulator = weakref.ref(node)
    return node


def edge(tensor: Any) -> tuple | None:
    """Where the gradient of `tensor` goes: (node, output number), or None."""
    if not tensor._rg:
        return None
    if tensor._base is None:
        fn = tensor._grad_fn
    else:
        fn = tensor.grad_fn
        if fn is None and not is_own_leaf(tensor):
            return None
    if fn is None:
        fn = accumulator(tensor)
    return fn, tensor._output_nr


def is_own_leaf(tensor: Any) -> bool:
    """Whether a tensor without a gradient function accumulates gradients: not a view that requires them only because its base came
    to require them later, or because it was created with gradients off."""
    return tensor._rg is True and tensor._view_made_in is None


def set_requires_grad(tensor: Any, value: bool) -> None:
    """Say whether a tensor takes part in gradients; so do the views that were taken of it, however many there are."""
    base = tensor._base
    tensor._rg = base._views_rg if base is not None and not value and not base._rg else value
    if tensor._views_rg is not None:
        tensor._views_rg[:] = (True,) if value else ()


def attach(tensor: Any, node: Node, number: int = 0) -> None:
    """Make `tensor` output `number` of `node`."""
    tensor._rg = True
    tensor._grad_fn = node
    tensor._output_nr = number


def is_differentiable(array: np.ndarray) -> bool:
    return array.dtype.num not in _dtype.INTEGRAL_NUMS
