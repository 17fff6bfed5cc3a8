"""Checkpointing: calls a function without keeping the tensors it saves for backward; they are recomputed.

Without re-entry, each saved tensor is replaced by an empty holder. The first holder that backward opens runs
the function again, which fills the others.
"""

from __future__ import annotations

import contextlib
import enum
import functools
import itertools
import warnings
import weakref
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NoReturn

import numpy as np

import mindtorch_v2 as torch

from .. import _dispatch
from .. import _recording_hooks as _hooks
from ..autograd.function import _apply
from ..autograd.graph import saved_tensors_hooks

__all__ = [
    "checkpoint",
    "checkpoint_sequential",
    "CheckpointError",
    "CheckpointFunction",
    "check_backward_validity",
    "detach_variable",
    "get_device_states",
    "set_device_states",
    "noop_context_fn",
    "set_checkpoint_early_stop",
    "DefaultDeviceType",
    "set_checkpoint_debug_enabled",
    "CheckpointPolicy",
    "SelectiveCheckpointContext",
    "create_selective_checkpoint_contexts",
]

_ContextFn = Callable[[], tuple[Any, Any]]


class CheckpointError(RuntimeError):
    """The recomputation saved other tensors than the forward pass."""


class DefaultDeviceType:
    """The device type whose random state is preserved besides the CPU's: here there is only the CPU."""

    _default_device_type = "cpu"

    @staticmethod
    def set_device_type(device: str = "cuda") -> None:
        """Set the device type; only the CPU exists here."""
        if device != "cpu":
            raise RuntimeError(
                f"Cannot use device type {device!r} for checkpointing: this build has the CPU only."
            )

    @staticmethod
    def get_device_type() -> str:
        """The device type."""
        return DefaultDeviceType._default_device_type


# ----------------------------------------------------------------------------------------- shared by both
# variants


def detach_variable(inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """The inputs, with tensors detached but their requires_grad kept."""
    if not isinstance(inputs, tuple):
        raise RuntimeError(
            f"Only tuple of tensors is supported. Got Unsupported input type: {type(inputs).__name__}"
        )
    return tuple(
        value.detach().requires_grad_(value.requires_grad) if isinstance(value, torch.Tensor) else value
        for value in inputs
    )


def check_backward_validity(inputs: Iterable[Any]) -> None:
    """Warn if no input requires grad."""
    if not any(value.requires_grad for value in inputs if isinstance(value, torch.Tensor)):
        warnings.warn("None of the inputs have requires_grad=True. Gradients will be None", stacklevel=2)


def get_device_states(*args: Any) -> tuple[list[int], list[Any]]:
    """Random states of the other devices that hold the arguments: none."""
    return [], []


def set_device_states(devices: Any, states: Any, *, device_type: str | None = None) -> None:
    """Restore random states of other devices; there are none."""
    if len(devices) or len(states):
        raise RuntimeError("There is no device besides the CPU whose random state could be set.")


def noop_context_fn() -> tuple[Any, Any]:
    """Two contexts that do nothing."""
    return contextlib.nullcontext(), contextlib.nullcontext()


class _CapturedState:
    """State that a function's results depend on besides its inputs: random state and autocast.

    Captured at construction, restored for the recomputation.
    """

    def __init__(self, preserve_rng_state: bool) -> None:
        self.rng_state = torch.get_rng_state() if preserve_rng_state else None
        self.autocast = {
            "enabled": torch.is_autocast_enabled("cpu"),
            "dtype": torch.get_autocast_dtype("cpu"),
            "cache_enabled": torch.is_autocast_cache_enabled(),
        }

    @contextlib.contextmanager
    def restored(self) -> Iterator[None]:
        """Context manager: restore the captured state, and at the end the state before."""
        before = None if self.rng_state is None else torch.get_rng_state()
        if self.rng_state is not None:
            torch.set_rng_state(self.rng_state)
        try:
            with torch.enable_grad(), torch.amp.autocast("cpu", **self.autocast):
                yield
        finally:
            if before is not None:
                torch.set_rng_state(before)


# ---------------------------------------------------------------------------------------------- with re-entry


class CheckpointFunction(torch.autograd.Function):
    """Runs a function without a graph; its backward runs it again with one, and a backward pass inside."""

    @staticmethod
    def forward(ctx: Any, run_function: Any, preserve_rng_state: bool, *args: Any) -> Any:
        """Run the function and save its inputs."""
        check_backward_validity(args)
        ctx.run_function = run_function
        ctx.captured_state = _CapturedState(preserve_rng_state)
        ctx.tensor_indices = [i for i, arg in enumerate(args) if isinstance(arg, torch.Tensor)]
        ctx.inputs = [None if isinstance(arg, torch.Tensor) else arg for arg in args]
        ctx.save_for_backward(*(args[i] for i in ctx.tensor_indices))
        with torch.no_grad():
            return run_function(*args)

    @staticmethod
    def backward(ctx: Any, *args: Any) -> Any:
        """Run the function again and differentiate it."""
        if not torch.autograd._is_checkpoint_valid():
            raise RuntimeError(
                "When use_reentrant=True, torch.utils.checkpoint is incompatible with .grad() or passing an "
                "`inputs` parameter to .backward(). To resolve this error, you can either set "
                "use_reentrant=False, or call .backward() without passing the `inputs` argument."
            )
        inputs = list(ctx.inputs)
        for i, tensor in zip(ctx.tensor_indices, ctx.saved_tensors):
            inputs[i] = tensor
        detached = detach_variable(tuple(inputs))
        with ctx.captured_state.restored():
            outputs = ctx.run_function(*detached)
        if isinstance(outputs, torch.Tensor):
            outputs = (outputs,)
        differentiable = [
            (output, gradient)
            for output, gradient in zip(outputs, args)
            if isinstance(output, torch.Tensor) and output.requires_grad
        ]
        if not differentiable:
            raise RuntimeError("none of output has requires_grad=True, this checkpoint() is not necessary")
        torch.autograd.backward(
            [output for output, _ in differentiable], [gradient for _, gradient in differentiable]
        )
        gradients = tuple(value.grad if isinstance(value, torch.Tensor) else None for value in detached)
        return (None, None, *gradients)


# ------------------------------------------------------------------------------------------- without re-entry

_early_stop_override: bool | None = None
_debug_override: bool | None = None


@contextlib.contextmanager
def set_checkpoint_early_stop(enable: bool) -> Iterator[None]:
    """Context manager: set for all checkpoints whether recomputation stops once all needed tensors are
    recomputed.
    """
    global _early_stop_override
    before, _early_stop_override = _early_stop_override, enable
    try:
        yield
    finally:
        _early_stop_override = before


@contextlib.contextmanager
def set_checkpoint_debug_enabled(enabled: bool | None) -> Iterator[None]:
    """Context manager: set for all checkpoints whether errors list the ops that ran; None leaves it to each."""
    global _debug_override
    before, _debug_override = _debug_override, enabled
    try:
        yield
    finally:
        _debug_override = before


def _metadata(tensor: Any) -> dict[str, Any]:
    return {"shape": tensor.shape, "dtype": tensor.dtype, "device": tensor.device}


_determinism_checks: dict[str, Callable[[Any], Any]] = {"default": _metadata, "none": lambda _: None}


class _StopRecomputationError(Exception):
    """Raised to stop the recomputation once all saved tensors are recomputed."""


class _SaveInputs(torch.autograd.Function):
    """Saves tensors as an op does, so that an outer checkpoint sees and drops them."""

    @staticmethod
    def forward(ctx: Any, *tensors: Any) -> Any:
        ctx.save_for_backward(*tensors)
        return _dispatch.wrap(np.empty(0, np.float32))

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Apply without an event in a profile and without using a sequence number: it computes nothing."""
        count = _dispatch.grad_state.seq
        try:
            return _apply(cls, (args, kwargs))
        finally:
            _dispatch.grad_state.seq = count

    @staticmethod
    def backward(ctx: Any, *args: Any) -> NoReturn:
        raise AssertionError("Did not expect to backward on this graph")


class _Holder:
    """Replaces a saved tensor in the graph; `recomputed` maps the number of a backward pass to the tensor."""

    __slots__ = ("__weakref__", "recomputed")

    def __init__(self) -> None:
        self.recomputed: dict[int, Any] = {}


class _Frame:
    """One call of a checkpointed function: how to rerun it, and the holders of the tensors it saved."""

    def __init__(
        self, run_again: Callable[..., Any], metadata_of: Callable[[Any], Any], early_stop: bool
    ) -> None:
        self.run_again = run_again
        self.metadata_of = metadata_of
        self.early_stop = early_stop
        self.holders: list[weakref.ref[_Holder]] = []
        self.metadata: list[Any] = []
        self.recomputed_in: set[int] = set()

    def save_inputs(self, args: tuple[Any, ...]) -> None:
        """Save the inputs; tensors in a node of their own, which never runs."""
        self.tensor_indices = [i for i, arg in enumerate(args) if isinstance(arg, torch.Tensor)]
        self.flags = [args[i].requires_grad for i in self.tensor_indices]
        self.inputs = [None if isinstance(arg, torch.Tensor) else arg for arg in args]
        anchor = _dispatch.wrap(np.empty(0, np.float32)).requires_grad_()
        self.node = _SaveInputs.apply(anchor, *(args[i] for i in self.tensor_indices)).grad_fn

    def get_inputs(self) -> list[Any]:
        """The saved inputs."""
        inputs = list(self.inputs)
        for i, needs_grad, tensor in zip(self.tensor_indices, self.flags, self.node.saved_tensors[1:]):
            same = tensor.requires_grad == needs_grad
            inputs[i] = tensor if same else tensor.detach().requires_grad_(needs_grad)
        return inputs

    def pack(self, tensor: Any) -> _Holder:
        """A holder in place of a tensor that an op saves."""
        holder = _Holder()
        self.holders.append(weakref.ref(holder))
        self.metadata.append(self.metadata_of(tensor))
        return holder

    def unpack(self, holder: _Holder) -> Any:
        """The tensor of a holder; recomputes all of them if this backward pass has not done so yet."""
        run = _current_run()
        if run not in self.recomputed_in:
            self.recompute(run)
            if run >= 0:
                self.recomputed_in.add(run)
        if run not in holder.recomputed:
            raise CheckpointError(
                "torch.utils.checkpoint: Unpack is being triggered for a tensor that was already unpacked "
                "once. "
                "If you are calling ctx.saved_tensors in backward, make sure to do so only once. Otherwise "
                "please "
                "open an issue with details on your use case."
            )
        value = holder.recomputed.pop(run)
        if run < 0:  # the other tensors of this run are not needed
            for reference in self.holders:
                other = reference()
                if other is not None:
                    other.recomputed.pop(run, None)
        return value

    def recompute(self, run: int) -> None:
        """Run the function again and fill the holders."""
        recomputed: list[Any] = []

        def fill(tensor: Any) -> Any:
            index = len(recomputed)
            if index >= len(self.holders):
                raise CheckpointError(
                    "torch.utils.checkpoint: trying to save more tensors during recomputation than during "
                    "the "
                    "original forward pass.\n" + _TIP
                )
            recomputed.append(self.metadata_of(tensor))
            value = tensor.detach()
            holder = self.holders[index]()
            if holder is not None:
                holder.recomputed[run] = value
            if self.early_stop and len(recomputed) == len(self.holders):
                raise _StopRecomputationError
            return value

        inputs = self.get_inputs()
        try:
            with saved_tensors_hooks(fill, lambda value: value), torch.enable_grad():
                self.run_again(*inputs)
        except _StopRecomputationError:
            pass
        self.check(recomputed)

    def check(self, recomputed: list[Any]) -> None:
        """Compare the recomputed tensors' metadata with that of the forward pass."""
        if len(recomputed) != len(self.holders):
            raise CheckpointError(
                "torch.utils.checkpoint: A different number of tensors was saved during the original "
                "forward and "
                f"recomputation.\nNumber of tensors saved during forward: {len(self.holders)}\n"
                f"Number of tensors saved during recomputation: {len(recomputed)}.\n" + _TIP
            )
        differing = [
            f"tensor at position {i}:\nsaved metadata: {saved_metadata}\nrecomputed metadata: {recomputed_metadata}\n"
            for i, (holder, saved_metadata, recomputed_metadata) in enumerate(
                zip(self.holders, self.metadata, recomputed)
            )
            if holder() is not None and saved_metadata != recomputed_metadata
        ]
        if differing:
            raise CheckpointError(
                "torch.utils.checkpoint: Recomputed values for the following tensors have different "
                "metadata than "
                "during the forward pass.\n" + "".join(differing) + ".\n" + _TIP
            )


_TIP = """
Tip: To see a more detailed error message, either pass `debug=True` to
`torch.utils.checkpoint.checkpoint(...)` or wrap the code block
with `with torch.utils.checkpoint.set_checkpoint_debug_enabled(True):` to
enable checkpoint‑debug mode globally.
"""

_outside_runs = itertools.count(-1, -1)


def _current_run() -> int:
    """The number of the backward pass running on this thread; a new negative number if there is none."""
    run = torch.autograd._current_graph_task_id()
    return run if run >= 0 else next(_outside_runs)


def _checkpoint_without_reentrant(
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    preserve_rng_state: bool,
    context_fn: _ContextFn,
    determinism_check: str,
    debug: bool,
    early_stop: bool,
) -> Any:
    metadata_of = _determinism_checks.get(determinism_check)
    if metadata_of is None:
        raise ValueError(
            f"determinism_check should be one of {list(_determinism_checks)}, but got {determinism_check}"
        )
    if debug and context_fn is not noop_context_fn:
        raise ValueError("debug=True is incompatible with non-default context_fn")
    log = _OpLog() if debug else None
    forward_context, recompute_context = context_fn() if log is None else (log.forward(), log.recomputation())
    captured_state = _CapturedState(preserve_rng_state)
    kwarg_names = tuple(kwargs)
    n_args = len(args)

    def run_again(*inputs: Any) -> None:
        with captured_state.restored(), recompute_context:
            function(*inputs[:n_args], **dict(zip(kwarg_names, inputs[n_args:])))

    frame = _Frame(run_again, metadata_of, early_stop)
    unpack = frame.unpack if log is None else log.with_op_lists(frame.unpack)
    if torch.is_grad_enabled():
        frame.save_inputs((*args, *kwargs.values()))
    with saved_tensors_hooks(frame.pack, unpack), forward_context:
        return function(*args, **kwargs)


class _OpLog:
    """For debug=True: the ops of the forward pass and of the recomputation, for error messages."""

    def __init__(self) -> None:
        self.ops: tuple[list[str], list[str]] = ([], [])

    def forward(self) -> Any:
        """Context manager: log the ops of the forward pass."""
        return _hooks.observed_by(_OpNames(self.ops[0]))

    def recomputation(self) -> Any:
        """Context manager: log the ops of the recomputation."""
        return _hooks.observed_by(_OpNames(self.ops[1]))

    def with_op_lists(self, unpack: Callable[[Any], Any]) -> Callable[[Any], Any]:
        """`unpack` whose errors list the ops of both runs."""

        def explained(holder: Any) -> Any:
            try:
                return unpack(holder)
            except CheckpointError as error:
                parts = ["original forward", "recomputation"]
                lists = [
                    f"Operators that ran in the {part}:\n" + "\n".join(ops)
                    for part, ops in zip(parts, self.ops)
                ]
                text = str(error).replace(_TIP, "")
                raise CheckpointError(text + "\n" + "\n\n".join(lists)) from error

        return explained


class _OpNames:
    """Observer that lists the ops of one run, each with the shapes of its tensors."""

    def __init__(self, ops: list[str]) -> None:
        self.ops = ops
        ops.clear()

    def wrap(self, recorder: Any, ranges: Any) -> tuple[Any, Any]:
        def note(op: Any, *arguments: Any) -> Any:
            if op.name != "detach":  # called by the checkpoint itself
                shapes = ", ".join(
                    str(list(value.shape)) for value in arguments if isinstance(value, torch.Tensor)
                )
                self.ops.append(f"  {op.qualified_name}({shapes})")
            return _hooks.pass_on(recorder, op, arguments)

        return _dispatch.Hook(note), ranges


# ------------------------------------------------------------------------------------------- public functions


def checkpoint(
    function: Callable[..., Any],
    *args: Any,
    use_reentrant: bool | None = None,
    context_fn: _ContextFn = noop_context_fn,
    determinism_check: str = "default",
    debug: bool = False,
    early_stop: bool = True,
    **kwargs: Any,
) -> Any:
    """Call `function` and drop what it saves for backward; backward recomputes it."""
    if use_reentrant is None:
        warnings.warn(
            "torch.utils.checkpoint: the use_reentrant parameter should be passed explicitly. Starting in "
            "PyTorch "
            "2.9, calling checkpoint without use_reentrant will raise an exception. use_reentrant=False is "
            "recommended, but if you need to preserve the current default behavior, you can pass "
            "use_reentrant=True. Refer to docs for more details on the differences between the two variants.",
            stacklevel=2,
        )
        use_reentrant = True
    preserve_rng_state = kwargs.pop("preserve_rng_state", True)
    if kwargs and use_reentrant:
        raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
    if _early_stop_override is not None:
        early_stop = _early_stop_override
    if use_reentrant:
        if context_fn is not noop_context_fn or debug:
            raise ValueError("Passing `context_fn` or `debug` is only supported when use_reentrant=False.")
        return CheckpointFunction.apply(function, preserve_rng_state, *args)
    if _debug_override is not None:
        debug = _debug_override
    return _checkpoint_without_reentrant(
        function, args, kwargs, preserve_rng_state, context_fn, determinism_check, debug, early_stop
    )


def checkpoint_sequential(
    functions: Any, segments: int, input: Any, use_reentrant: bool | None = None, **kwargs: Any
) -> Any:
    """Call functions one after another, checkpointing all segments of them but the last."""
    if use_reentrant is None:
        warnings.warn(
            "torch.utils.checkpoint.checkpoint_sequential: the use_reentrant parameter should be passed "
            "explicitly. In version 2.9 we will raise an exception if use_reentrant is not passed. "
            "use_reentrant=False is recommended, but if you need to preserve the current default behavior, "
            "you can "
            "pass use_reentrant=True. Refer to docs for more details on the differences between the two "
            "variants.",
            stacklevel=2,
        )
        use_reentrant = True
    preserve_rng_state = kwargs.pop("preserve_rng_state", True)
    if kwargs:
        raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
    if isinstance(functions, torch.nn.Sequential):
        functions = list(functions.children())
    size = len(functions) // segments
    end = 0
    for start in range(0, size * (segments - 1), size):
        end = start + size
        input = checkpoint(
            _in_sequence(functions[start:end]),
            input,
            use_reentrant=use_reentrant,
            preserve_rng_state=preserve_rng_state,
        )
    return _in_sequence(functions[end:])(input)


def _in_sequence(functions: Any) -> Callable[[Any], Any]:
    def run(value: Any) -> Any:
        for function in functions:
            value = function(value)
        return value

    return run


class CheckpointPolicy(enum.Enum):
    """The treatment of an op's result in selective checkpointing."""

    MUST_SAVE = 0
    PREFER_SAVE = 1
    MUST_RECOMPUTE = 2
    PREFER_RECOMPUTE = 3
    MUST_CPU_OFFLOAD = 4
    PREFER_CPU_OFFLOAD = 5


class SelectiveCheckpointContext:
    """Information about a call that is passed to a policy of selective checkpointing."""

    def __init__(self, *, is_recompute: bool, op_output: Any = None) -> None:
        self.is_recompute = is_recompute
        self.op_output = op_output


class _CachedResult:
    """A cached result, and its version at the time."""

    def __init__(self, value: Any) -> None:
        self.value = value.detach() if isinstance(value, torch.Tensor) else value
        self.version = value._version if isinstance(value, torch.Tensor) else 0

    def get(self, allow_mutation: bool) -> Any:
        """The result; raises if it has been written to."""
        tensor = isinstance(self.value, torch.Tensor)
        if tensor and not allow_mutation and self.value._version != self.version:
            raise RuntimeError("Tensor cached during selective activation checkpoint has been mutated")
        return self.value


def _selective_modes() -> tuple[type, type]:
    """The mode classes of the two passes; created on demand, because their base class is imported on demand."""
    from ._python_dispatch import TorchDispatchMode
    from ._pytree import tree_map

    class _CachingTorchDispatchMode(TorchDispatchMode):
        """First pass: caches the results that the policy selects."""

        def __init__(self, policy_fn: Callable[..., Any], storage: dict[Any, list]) -> None:
            super().__init__()
            self.policy_fn, self.storage = policy_fn, storage

        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            kwargs = kwargs or {}
            if func in _ignored():
                return func(*args, **kwargs)
            out = func(*args, **kwargs)
            context = SelectiveCheckpointContext(is_recompute=False, op_output=out)
            policy = self.policy_fn(context, func, *args, **kwargs)
            saved = isinstance(policy, CheckpointPolicy) and policy not in _RECOMPUTED
            self.storage.setdefault(func, []).append(tree_map(_CachedResult, out) if saved else None)
            return out

    class _CachedTorchDispatchMode(TorchDispatchMode):
        """Second pass: returns cached results, computes the others."""

        def __init__(self, storage: dict[Any, list], allow_cache_entry_mutation: bool) -> None:
            super().__init__()
            self.storage, self.allow_cache_entry_mutation = storage, allow_cache_entry_mutation
            self.call_counts: dict[Any, int] = {}
            self.entered = False

        def __enter__(self) -> Any:
            if self.entered:
                raise RuntimeError(
                    "Trying to backward an extra time. You are only allowed to backward once on any region computed under selective "
                    "activation checkpoint."
                )
            self.entered = True
            return super().__enter__()

        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            kwargs = kwargs or {}
            if func in _ignored():
                return func(*args, **kwargs)
            index = self.call_counts[func] = self.call_counts.get(func, -1) + 1
            cached_results = self.storage.get(func, [])
            result = cached_results[index] if index < len(cached_results) else None
            if result is None:
                return func(*args, **kwargs)
            cached_results[index] = None
            return tree_map(lambda item: item.get(self.allow_cache_entry_mutation), result)

    return _CachingTorchDispatchMode, _CachedTorchDispatchMode


_RECOMPUTED = (CheckpointPolicy.MUST_RECOMPUTE, CheckpointPolicy.PREFER_RECOMPUTE)


@functools.cache
def _ignored() -> frozenset:
    """Ops for which the policy is not called."""
    return frozenset((torch.ops.aten.detach.default,))


def create_selective_checkpoint_contexts(
    policy_fn_or_list: Any, allow_cache_entry_mutation: bool = False
) -> tuple[Any, Any]:
    """The two contexts of a checkpoint that caches the results of some ops: those in a list, or those that a
    policy selects.
    """
    if isinstance(policy_fn_or_list, list):
        for op in policy_fn_or_list:
            if not isinstance(op, torch.ops.OpOverload):
                hint = ""
                if isinstance(op, torch.ops.OpOverloadPacket):
                    hint = (
                        "Please update the OpOverloadPacket to a specific OpOverload.For example, if you have `torch.ops.aten.mm`, change it "
                        "to `torch.ops.aten.mm.default`."
                    )
                raise ValueError(
                    f"Expected op in `op_list` to be an OpOverload but got: {op} of type {type(op)}. {hint}"
                )

        def policy_fn(ctx: Any, op: Any, *args: Any, **kwargs: Any) -> CheckpointPolicy:
            is_listed = op in policy_fn_or_list
            return CheckpointPolicy.MUST_SAVE if is_listed else CheckpointPolicy.PREFER_RECOMPUTE

    elif callable(policy_fn_or_list):
        policy_fn = policy_fn_or_list
    else:
        raise TypeError("policy_fn_or_list must be either a function or a list of ops.")
    caching, cached = _selective_modes()
    storage: dict[Any, list] = {}
    return caching(policy_fn, storage), cached(storage, allow_cache_entry_mutation)
