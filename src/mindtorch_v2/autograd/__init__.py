"""Automatic differentiation: `backward` and `grad`, grad modes, custom functions, and gradient checks."""

from __future__ import annotations

import warnings
from typing import Any

from .. import _dispatch, _dtype
from .. import _recording_hooks as _hooks
from .._graph import SavedTensor as SavedTensor
from .._graph import accumulator, grad_state, is_own_leaf
from .._size import Size
from .._tensor import Tensor
from . import anomaly_mode as anomaly_mode
from . import engine, grad_mode
from . import inplace as inplace
from .anomaly_mode import detect_anomaly, set_detect_anomaly
from .function import Function, NestedIOFunction
from .grad_mode import _force_original_view_tracking as _force_original_view_tracking
from .grad_mode import _unsafe_preserve_version_counter as _unsafe_preserve_version_counter
from .grad_mode import (
    enable_grad,
    enforce_grad_layout_policy,
    inference_mode,
    no_grad,
    set_grad_enabled,
    set_multithreading_enabled,
)
from .graph import GradientEdge
from .variable import Variable

_CYCLE = (
    "Using backward() with create_graph=True will create a reference cycle between the parameter and its gradient which can cause a memory "
    "leak. We recommend using autograd.grad when creating the graph to avoid this. If you have to use this function, make sure to reset "
    "the .grad fields of your parameters to None after use to break the cycle and avoid the leak."
)


class _Warned:
    """Warnings that are shown once per process."""

    cycle = False


def _as_tuple(value: Any) -> tuple:
    if value is None:
        return ()
    return (value,) if isinstance(value, (Tensor, GradientEdge)) else tuple(value)


def _seeds(grads: Any, count: int) -> tuple:
    """The gradients passed by the caller, or None for each output; surplus ones are ignored."""
    if grads is None:
        return (None,) * count
    seeds = _as_tuple(grads)
    if len(seeds) < count:
        raise RuntimeError(f"got {count} tensors and {len(seeds)} gradients")
    return seeds[:count]


def _make_grads(outputs: Any, grads: Any, is_grads_batched: bool) -> tuple:
    """A gradient for each output: the one passed in, checked, or ones for a scalar."""
    return tuple(
        _make_grad(number, output, gradient) for number, (output, gradient) in enumerate(zip(outputs, grads))
    )


def _make_grad(number: int, output: Any, gradient: Any) -> Tensor | None:
    if isinstance(output, GradientEdge):
        shape, np_dtype = output.node._input_metadata_of(output.output_nr)
        shape, dtype, requires = Size(shape), _dtype.BY_NUM[np_dtype.num], True
    else:
        shape, dtype, requires = output.shape, output.dtype, output.requires_grad
    if isinstance(gradient, Tensor):
        if gradient.shape != shape:
            raise RuntimeError(
                f"Mismatch in shape: grad_output[{number}] has a shape of {gradient.shape} and output[{number}] has a shape of {shape}."
            )
        if dtype.is_complex != gradient.dtype.is_complex:
            raise RuntimeError(
                "For complex Tensors, both grad_output and output are required to have the same dtype. Mismatch in dtype: "
                f"grad_output[{number}] has a dtype of {gradient.dtype} and output[{number}] has a dtype of {dtype}."
            )
        return gradient
    if gradient is not None:
        raise TypeError(f"gradients can be either Tensors or None, but got {type(gradient).__name__}")
    if not requires:
        return None
    if shape.numel() != 1:
        raise RuntimeError("grad can be implicitly created only for scalar outputs")
    if not dtype.is_floating_point:
        raise RuntimeError(f"grad can be implicitly created only for real scalar outputs but got {dtype}")
    if isinstance(output, GradientEdge):
        return _dispatch.FUNCTIONS["ones"](shape, dtype=dtype)
    return _dispatch.FUNCTIONS["ones_like"](output, memory_format=_dtype.preserve_format)


def _roots(outputs: tuple, gradients: tuple) -> list:
    roots = []
    for number, (output, gradient) in enumerate(zip(outputs, gradients)):
        if isinstance(output, GradientEdge):
            roots.append((output.node, output.output_nr, gradient))
            continue
        if not output.requires_grad:
            raise RuntimeError(
                f"element {number} of tensors does not require grad and does not have a grad_fn"
            )
        node = output.grad_fn
        if node is None and not is_own_leaf(output):
            continue
        roots.append((accumulator(output) if node is None else node, output._output_nr, gradient))
    return roots


def backward(
    tensors: Any,
    grad_tensors: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    grad_variables: Any = None,
    inputs: Any = None,
) -> None:
    """Add the gradients of `tensors` to the `.grad` of the leaves of their graph (of `inputs` only, when given)."""
    if grad_variables is not None:
        warnings.warn(
            "`grad_variables` is deprecated. Use `grad_tensors` instead.", FutureWarning, stacklevel=2
        )
        if grad_tensors is not None:
            raise RuntimeError(
                "`grad_tensors` and `grad_variables` (deprecated) arguments both passed to `backward()`. Please only use `grad_tensors`."
            )
        grad_tensors = grad_variables
    if isinstance(inputs, dict):
        inputs = tuple(inputs.values())
    if inputs is not None and not isinstance(inputs, (Tensor, GradientEdge)) and len(inputs) == 0:
        raise RuntimeError("`inputs` argument to `backward()` cannot be empty.")
    outputs = _as_tuple(tensors)
    roots = _roots(outputs, _make_grads(outputs, _seeds(grad_tensors, len(outputs)), False))
    targets = None
    if inputs is not None:
        targets = {_target(index, item) for index, item in enumerate(_as_tuple(inputs))}
    if create_graph and not _Warned.cycle:
        _Warned.cycle = True
        warnings.warn(_CYCLE, stacklevel=2)
    keep_graph = create_graph if retain_graph is None else retain_graph
    engine.run(roots, keep_graph, create_graph, None, targets)


def _target(number: int, place: Any) -> Any:
    """The node at which the gradient for one of `backward(inputs=...)` ends."""
    if isinstance(place, GradientEdge):
        return place.node
    if place.requires_grad and place.grad_fn is None:
        return accumulator(place)
    place.retain_grad()
    return place.grad_fn


def grad(
    outputs: Any,
    inputs: Any,
    grad_outputs: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> Any:
    """The gradients of `outputs` with respect to `inputs`; nothing is added to `.grad`."""
    if materialize_grads and allow_unused is False:
        raise ValueError(
            "Expected allow_unused to be True or not passed when materialize_grads=True, but got: allow_unused=False."
        )
    if not only_inputs:
        warnings.warn(
            "only_inputs argument is deprecated and is ignored now (defaults to True). To accumulate gradient for other parts of the "
            "graph, please use torch.autograd.backward.",
            FutureWarning,
            stacklevel=2,
        )
    names = tuple(inputs) if isinstance(inputs, dict) else None
    output_tuple, input_tuple = _as_tuple(outputs), _as_tuple(inputs if names is None else inputs.values())
    if not input_tuple:
        raise RuntimeError("`inputs` argument to `grad()` cannot be empty.")
    seeds = _seeds(grad_outputs, len(output_tuple))
    keep_graph = create_graph if retain_graph is None else retain_graph
    compute = _batched_gradients if is_grads_batched else _gradients
    gradients = compute(output_tuple, input_tuple, seeds, keep_graph, create_graph)
    if None in [value if value is None else 0 for value in gradients]:
        _fill_unused(
            gradients, input_tuple, create_graph, materialize_grads or bool(allow_unused), materialize_grads
        )
    return tuple(gradients) if names is None else dict(zip(names, gradients))


def _gradients(outputs: tuple, inputs: tuple, seeds: Any, keep_graph: bool, create_graph: bool) -> list:
    """The gradient for each input, or None for one that no output depends on."""
    roots = _roots(outputs, _make_grads(outputs, seeds, False))
    captures = engine.Captures([_edge(item) for item in inputs])
    engine.run(roots, keep_graph, create_graph, captures)
    return captures.gradients


def _batched_gradients(
    outputs: tuple, inputs: tuple, seeds: Any, keep_graph: bool, create_graph: bool
) -> list:
    """The same with seeds that have one more dimension in front: one backward pass per row, stacked."""
    if all(seed is None for seed in seeds):
        _make_grads(outputs, seeds, True)  # says which gradients are missing
    _check_batches(outputs, seeds)
    n_rows = next(len(seed) for seed in seeds if seed is not None)
    rows = [
        _gradients(
            outputs,
            inputs,
            [None if seed is None else seed[i] for seed in seeds],
            keep_graph or i < n_rows - 1,
            create_graph,
        )
        for i in range(n_rows)
    ]
    with grad_mode.set_grad_enabled(create_graph):
        return [None if parts[0] is None else _dispatch.FUNCTIONS["stack"](parts) for parts in zip(*rows)]


def _check_batches(outputs: tuple, seeds: Any) -> None:
    for number, (output, seed) in enumerate(zip(outputs, seeds)):
        if seed is not None and seed.shape[1:] != output.shape:
            raise RuntimeError(
                "If `is_grads_batched=True`, we interpret the first dimension of each grad_output as the batch dimension. The sizes of the "
                "remaining dimensions are expected to match the shape of corresponding output, but a mismatch was detected: "
                f"grad_output[{number}] has a shape of {seed.shape} and output[{number}] has a shape of {output.shape}."
            )
    sizes = [len(seed) for seed in seeds if seed is not None]
    if len(set(sizes)) > 1:
        raise ValueError(
            f"vmap: Expected all tensors to have the same size in the mapped dimension, got sizes {sizes} for the mapped dimension"
        )


def _edge(place: Any) -> tuple:
    if isinstance(place, GradientEdge):
        return place.node, place.output_nr
    if not place.requires_grad:
        raise RuntimeError("One of the differentiated Tensors does not require grad")
    node = place.grad_fn
    return accumulator(place) if node is None else node, place._output_nr


def _fill_unused(gradients: list, inputs: tuple, create_graph: bool, allowed: bool, zeros: bool) -> None:
    """Results of `grad` for inputs that no output depends on."""
    if not allowed:
        index = next(i for i, value in enumerate(gradients) if value is None)
        raise RuntimeError(
            f"The differentiated Tensor at index {index} appears to not have been used in the graph. Set allow_unused=True if this is "
            "the desired behavior."
        )
    if zeros and any(isinstance(item, GradientEdge) for item in inputs):
        raise RuntimeError("materialize_grads cannot be used when the given input is a GradientEdge")
    for number, value in enumerate(gradients):
        if value is None and zeros:
            gradients[number] = _dispatch.FUNCTIONS["zeros_like"](inputs[number], requires_grad=create_graph)


def variable(*args: Any, **kwargs: Any) -> Any:
    """Raises: the old way to make a tensor."""
    raise RuntimeError("torch.autograd.variable(...) is deprecated, use torch.tensor(...) instead")


def is_multithreading_enabled() -> bool:
    """Whether a backward pass may use threads."""
    return grad_state.multithreading


def is_view_replay_enabled() -> bool:
    """Whether views are to be replayed after writes to their base; see `_force_original_view_tracking`."""
    return grad_state.view_replay


def _current_graph_task_id() -> int:
    """The number of the backward pass that runs on this thread; -1 when none does."""
    return -1 if grad_state.run is None else grad_state.run.number


def _is_checkpoint_valid() -> bool:
    """Whether the running backward pass reaches every leaf: a re-entrant checkpoint needs that."""
    return grad_state.run is None or grad_state.run.needed is None


def _profiler_enabled() -> bool:
    """Whether a profiler is recording."""
    return _hooks.active_recording() is not None


def _get_sequence_nr() -> int:
    """The sequence number that this thread's next node will get."""
    return grad_state.seq


# These modules import names defined above.
from . import forward_ad as forward_ad  # noqa: E402
from . import function as function  # noqa: E402
from . import functional as functional  # noqa: E402
from . import graph as graph  # noqa: E402
from .gradcheck import gradcheck, gradgradcheck  # noqa: E402

# The profiler's names that torch keeps here, by the module that defines them; imported on first access.
_PROFILER_NAMES = {
    **dict.fromkeys(("profiler", "profiler_legacy", "profiler_util"), ""),
    **dict.fromkeys(("DeviceType", "ProfilerActivity", "ProfilerState"), "mindtorch_prof.torch_api.enums"),
    "ProfilerConfig": ".profiler.experimental_config",
    **dict.fromkeys(("_KinetoEvent", "_ProfilerResult"), "mindtorch_prof.torch_api.event_tree"),
    **dict.fromkeys(
        ("_pop_saved_tensors_default_hooks", "_push_saved_tensors_default_hooks"), "._C._autograd"
    ),
    "kineto_available": ".profiler.session",
    **dict.fromkeys(
        ("_record_function_with_args_enter", "_record_function_with_args_exit"), ".profiler.record_function"
    ),
    **dict.fromkeys(
        ("ProfilerEvent", "_add_metadata_json", "_disable_profiler", "_disable_profiler_legacy", "_enable_profiler", "_enable_profiler_legacy",
         "_enable_record_function", "_is_kineto_stopped", "_kineto_step", "_prepare_profiler", "_profiler_type",
         "_supported_activities", "_toggle_collection_dynamic"),
        ".profiler.c_api",
    ),
}  # fmt: skip


def __getattr__(name: str) -> Any:
    home = _PROFILER_NAMES.get(name)
    if home is None:
        raise AttributeError(f"module 'torch.autograd' has no attribute '{name}'")
    from importlib import import_module

    if not home:
        return import_module("." + name, __name__)
    return getattr(import_module(home, __package__.rpartition(".")[0]), name)


__all__ = [
    "Variable",
    "Function",
    "backward",
    "grad_mode",
    "NestedIOFunction",
    "detect_anomaly",
    "enable_grad",
    "grad",
    "gradcheck",
    "gradgradcheck",
    "inference_mode",
    "no_grad",
    "set_detect_anomaly",
    "set_grad_enabled",
    "set_multithreading_enabled",
    "enforce_grad_layout_policy",
    "variable",
]
