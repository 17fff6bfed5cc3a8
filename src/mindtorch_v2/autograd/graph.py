"""The autograd graph as users see it: nodes and edges, saved-tensor hooks, and hooks on several gradients."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Generator, Iterable, Sequence
from typing import Any, Literal, NamedTuple

import mindtorch_v2 as torch

from .._graph import Node, Switches, accumulator, grad_state, storage_of
from ..utils.hooks import RemovableHandle

__all__ = [
    "saved_tensors_hooks",
    "save_on_cpu",
    "disable_saved_tensors_hooks",
    "register_multi_grad_hook",
    "allow_mutation_on_saved_tensors",
    "Node",
    "GradientEdge",
    "get_gradient_edge",
    "increment_version",
    "region_activation_memory_budget",
    "set_warn_on_accumulate_grad_stream_mismatch",
    "set_override_stale_capture_stream",
]


class GradientEdge(NamedTuple):
    """Where the gradient of a tensor goes: output `output_nr` of `node`."""

    node: Node
    output_nr: int
    ownership_token: Node | None = None


def get_gradient_edge(tensor: torch.Tensor) -> GradientEdge:
    """The gradient edge of `tensor`; `grad` and `backward` accept it in place of the tensor."""
    if not tensor.requires_grad:
        raise RuntimeError(
            "It is not possible to get the gradient edge for a Tensor that does not require gradients"
        )
    return GradientEdge(_get_grad_fn_or_grad_acc(tensor), tensor.output_nr)


def _get_grad_fn_or_grad_acc(t: torch.Tensor | GradientEdge) -> Node:
    """The node that a tensor's gradient reaches."""
    if isinstance(t, GradientEdge):
        return t.node
    if not t.requires_grad:
        raise AssertionError("Expected gradient function to be set")
    return t.grad_fn or accumulator(t)


def increment_version(tensor: torch.Tensor | Iterable[torch.Tensor]) -> None:
    """Count a write to `tensor` that autograd did not see."""
    for written in (tensor,) if isinstance(tensor, torch.Tensor) else tensor:
        storage_of(written)._version += 1


# ---------------------------------------------------------------------------------------------------- saved-tensor hooks


class saved_tensors_hooks:
    """Context manager: a tensor saved for backward is replaced by `pack_hook(tensor)`; `unpack_hook` restores
    it.
    """

    def __init__(
        self, pack_hook: Callable[[torch.Tensor], Any], unpack_hook: Callable[[Any], torch.Tensor]
    ) -> None:
        self.pack_hook, self.unpack_hook = pack_hook, unpack_hook

    def __enter__(self) -> None:
        _push_hooks(self.pack_hook, self.unpack_hook)

    def __exit__(self, *args: object) -> None:
        _pop_hooks()


def _push_hooks(pack_hook: Any, unpack_hook: Any) -> None:
    if grad_state.saved_hooks_error is not None:
        raise RuntimeError(grad_state.saved_hooks_error)
    grad_state.saved_hooks = (*grad_state.saved_hooks, (pack_hook, unpack_hook))
    Switches.watch(1)


def _pop_hooks() -> None:
    grad_state.saved_hooks = grad_state.saved_hooks[:-1]
    Switches.watch(-1)


class save_on_cpu(saved_tensors_hooks):
    """Context manager: saved tensors are copied to CPU memory, where they already are."""

    def __init__(self, pin_memory: bool = False, device_type: str = "cuda") -> None:
        def pack(tensor: torch.Tensor) -> Any:
            if not pin_memory:
                return tensor.device, tensor.cpu()
            return tensor.device, tensor.pin_memory()

        def unpack(packed: Any) -> torch.Tensor:
            device, tensor = packed
            return tensor.to(device, non_blocking=pin_memory)

        super().__init__(pack, unpack)


@contextlib.contextmanager
def disable_saved_tensors_hooks(error_message: str) -> Generator[None, None, None]:
    """Context manager: using saved-tensor hooks raises `error_message`."""
    before = grad_state.saved_hooks_error
    if grad_state.saved_hooks:
        raise RuntimeError(error_message)
    grad_state.saved_hooks_error = error_message
    try:
        yield
    finally:
        grad_state.saved_hooks_error = before


class _AllowMutationOnSavedContext:
    """The copies kept by one `allow_mutation_on_saved_tensors`."""

    def __init__(self) -> None:
        self.copies: dict[int, torch.Tensor] = {}
        self.count = 0

    def clear(self) -> None:
        """Drop all copies."""
        self.copies.clear()


class _Mutation(threading.local):
    active = False


_mutation = _Mutation()


@contextlib.contextmanager
def allow_mutation_on_saved_tensors() -> Generator[_AllowMutationOnSavedContext, None, None]:
    """Context manager: tensors may be written after they were saved for backward; a copy is kept until the
    context ends.
    """
    context = _AllowMutationOnSavedContext()

    def pack(tensor: torch.Tensor) -> int:
        context.count += 1
        context.copies[context.count] = tensor.detach().clone()
        return context.count

    def unpack(number: int) -> torch.Tensor:
        if number not in context.copies:
            raise AssertionError(
                "Trying to backward outside of the 'allow_mutation_on_saved_tensors' contextin which the graph was originally recorded."
            )
        return context.copies[number]

    if _mutation.active:
        raise RuntimeError("allow_mutation_on_saved_tensors contexts cannot be nested")
    _mutation.active = True
    try:
        with saved_tensors_hooks(pack, unpack):
            yield context
    finally:
        context.clear()
        _mutation.active = False


# ---------------------------------------------------------------------------------------------------- hooks on several gradients


class _MultiHandle(RemovableHandle):
    """Removes several hooks at once."""

    handles: tuple[RemovableHandle, ...]

    def __init__(self, handles: tuple[RemovableHandle, ...]) -> None:
        self.handles = handles

    def remove(self) -> None:
        """Remove all of them."""
        for handle in self.handles:
            handle.remove()

    def __getstate__(self) -> Any:
        return self.handles

    def __setstate__(self, state: Any) -> None:
        self.handles = state


def register_multi_grad_hook(
    tensors: Sequence[torch.Tensor],
    fn: Callable[[Sequence[torch.Tensor | None]], None] | Callable[[torch.Tensor], None],
    *,
    mode: Literal["all", "any"] = "all",
) -> RemovableHandle:
    """Call `fn` once in each backward pass: with all gradients of `tensors` when the last one arrives, or
    with the first.
    """
    if mode not in ("all", "any"):
        raise ValueError(f"Expects mode to be one of ('all', 'any') but got {mode}")
    hooks = _AllGradients(tensors, fn) if mode == "all" else _AnyGradient(fn)
    return _MultiHandle(
        tuple(tensor.register_hook(hooks.hook(index)) for index, tensor in enumerate(tensors))
    )


class _AllGradients:
    """Collects the gradients of each backward pass."""

    def __init__(self, tensors: Sequence[torch.Tensor], fn: Any) -> None:
        self.nodes = [_get_grad_fn_or_grad_acc(tensor) for tensor in tensors]
        self.fn = fn
        self.lock = threading.Lock()
        self.runs: dict[int, list] = {}  # run number -> [number of gradients still to come, the gradients]

    def hook(self, index: int) -> Callable[[torch.Tensor], None]:
        """The hook for the tensor at `index`."""

        def collect(gradient: torch.Tensor) -> None:
            run = grad_state.run
            if run is None:
                raise AssertionError("expected this hook to be called inside a backward call")
            with self.lock:
                state = self.runs.get(run.number)
                if state is None:
                    n_missing = sum(run.reaches(node) for node in self.nodes)
                    state = self.runs[run.number] = [n_missing, [None] * len(self.nodes)]
                    run.callbacks.append(lambda: self.runs.pop(run.number, None))
                state[0] -= 1
                state[1][index] = gradient
            if state[0] == 0:
                self.fn(state[1])

        return collect


class _AnyGradient:
    """Passes on the first gradient of each backward pass."""

    def __init__(self, fn: Any) -> None:
        self.fn = fn
        self.lock = threading.Lock()
        self.last = -1

    def hook(self, index: int) -> Callable[[torch.Tensor], None]:
        """The hook for the tensor at `index`."""

        def first(gradient: torch.Tensor) -> None:
            run = grad_state.run
            if run is None:
                raise AssertionError("expected this hook to be called inside a backward call")
            with self.lock:
                if self.last == run.number:
                    return
                self.last = run.number
            self.fn(gradient)

        return first


# ---------------------------------------------------------------------------------------------------- not applicable to a CPU


def region_activation_memory_budget(budget: float) -> contextlib.AbstractContextManager[None]:
    """Raises, as torch does outside of `torch.compile`."""
    raise RuntimeError(
        "torch.autograd.graph.region_activation_memory_budget can only be used inside a torch.compile region; it has no effect in "
        "eager mode."
    )


def set_warn_on_accumulate_grad_stream_mismatch(enabled: bool) -> None:
    """No effect: the CPU has no streams."""


def set_override_stale_capture_stream(enabled: bool) -> None:
    """No effect: the CPU has no streams."""
