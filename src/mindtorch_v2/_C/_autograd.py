"""torch._C._autograd: low-level functions of the engine and the profiler, under the names of torch's C++
bindings.
"""

# This module only re-exports names.
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
    """Activate a pair of saved-tensor hooks; `torch.autograd.graph.saved_tensors_hooks` does this on entry."""
    _push_hooks(pack_hook, unpack_hook)


def _pop_saved_tensors_default_hooks() -> None:
    """Deactivate the innermost pair of saved-tensor hooks."""
    _pop_hooks()


def _get_sequence_nr() -> int:
    """The sequence number that this thread's next node will get."""
    from .._graph import grad_state

    return grad_state.seq
