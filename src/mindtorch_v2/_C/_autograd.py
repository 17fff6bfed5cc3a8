"""torch._C._autograd: the engine's and the profiler's low functions by the names under which torch's C++ side offers them."""

# A list of names, given on.
# ruff: noqa: F401

from __future__ import annotations

from collections.abc import Callable

from mindtorch_prof.torch_api.enums import DeviceType
from mindtorch_prof.torch_api.event_tree import _KinetoEvent, _ProfilerResult

from .._graph import SavedTensor
from ..autograd.graph import _pop_hooks, _push_hooks
from ..profiler.c_api import (
    ProfilerEvent,
    _add_metadata_json,
    _disable_profiler,
    _disable_profiler_legacy,
    _enable_profiler,
    _enable_profiler_legacy,
    _enable_record_function,
    _is_kineto_stopped,
    _kineto_step,
    _prepare_profiler,
    _profiler_enabled,
    _profiler_type,
    _supported_activities,
    _toggle_collection_dynamic,
)
from ..profiler.record_function import _record_function_with_args_enter, _record_function_with_args_exit
from ..profiler.session import kineto_available


def _push_saved_tensors_default_hooks(pack_hook: Callable, unpack_hook: Callable, /) -> None:
    """Begin what `torch.autograd.graph.saved_tensors_hooks` does inside."""
    _push_hooks(pack_hook, unpack_hook)


def _pop_saved_tensors_default_hooks() -> None:
    """End what was begun last."""
    _pop_hooks()


def _get_sequence_nr() -> int:
    """The number that the thread's next node of the graph will get."""
    from .._graph import grad_state

    return grad_state.seq
