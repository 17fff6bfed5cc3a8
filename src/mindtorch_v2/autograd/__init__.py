"""Automatic differentiation: `backward` and `grad`, the modes, functions of one's own, and checks."""

from __future__ import annotations

from typing import Any

from .. import _dispatch
from .._graph import accumulator, grad_state
from .._tensor import Tensor
from . import engine, inplace
from .function import Function
from .grad_mode import enable_grad, inference_mode, no_grad, set_grad_enabled, set_multithreading_enabled

Variable = Tensor


def _as_tuple(value: Any) -> tuple:
    if value is None:
        return ()
    return (value,) if isinstance(value, Tensor) else tuple(value)


def _make_grads(outputs: tuple, gradients: tuple, is_grads_batched: bool) -> list:
    """A gradient for each output: the given one, checked, or ones for a scalar."""
    made = []
    for number, (output, gradient) in enumerate(zip(outputs, gradients)):
        if isinstance(gradient, Tensor):
            if gradient.shape != output.shape:
                raise RuntimeError(
                    f"Mismatch in shape: grad_output[{number}] has a shape of {gradient.shape} and output[{number}] has a shape of "
                    f"{output.shape}."
                )
            if output.dtype.is_complex != gradient.dtype.is_complex:
                raise RuntimeError(
                    "For complex Tensors, both grad_output and output are required to have the same dtype. Mismatch in dtype: "
                    f"grad_output[{number}] has a dtype of {gradient.dtype} and output[{number}] has a dtype of {output.dtype}."
                )
            made.append(gradient)
        elif gradient is None:
            if not output._rg:
                made.append(None)
                continue
            if output.numel() != 1:
                raise RuntimeError("grad can be implicitly created only for scalar outputs")
            if not output.dtype.is_floating_point:
                raise RuntimeError(
                    f"grad can be implicitly created only for real scalar outputs but got {output.dtype}"
                )
            made.append(_dispatch.FUNCTIONS["ones_like"](output))
        else:
            raise TypeError(f"gradients can be either Tensors or None, but got {type(gradient).__name__}")
    return made


def _roots(outputs: tuple, gradients: list) -> list:
    roots = []
    for number, (output, gradient) in enumerate(zip(outputs, gradients)):
        if not output._rg:
            raise RuntimeError(f"element {number} of tensors does not require grad and does not have a grad_fn")
        node = output.grad_fn
        if node is None:
            node = accumulator(output)
        roots.append((node, output._output_nr, gradient))
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
        import warnings

        warnings.warn("`grad_variables` is deprecated. Use `grad_tensors` instead.", FutureWarning, stacklevel=2)
        if grad_tensors is not None:
            raise RuntimeError(
                "`grad_tensors` and `grad_variables` (deprecated) arguments both passed to `backward()`. Please only use `grad_tensors`."
            )
        grad_tensors = grad_variables
    if inputs is not None and not isinstance(inputs, Tensor) and len(inputs) == 0:
        raise RuntimeError("`inputs` argument to `backward()` cannot be empty.")
    outputs = _as_tuple(tensors)
    gradients = _as_tuple(grad_tensors) or (None,) * len(outputs)
    if len(gradients) != len(outputs):
        raise RuntimeError("got %d tensors and %d gradients" % (len(outputs), len(gradients)))
    roots = _roots(outputs, _make_grads(outputs, gradients, False))
    leaves = None
    if inputs is not None:
        leaves = set()
        for number, tensor in enumerate(_as_tuple(inputs)):
            if not tensor._rg:
                raise RuntimeError(f"One of the differentiated Tensors given as 'inputs' to backward does not require grad at index {number}")
            if tensor.grad_fn is not None:
                engine_retain(tensor, leaves)
            else:
                leaves.add(accumulator(tensor))
    keep = create_graph if retain_graph is None else retain_graph
    engine.run(roots, keep, create_graph, None, leaves)


def engine_retain(tensor: Tensor, targets: set) -> None:
    """Ask for the gradient of a non-leaf named in `inputs`."""
    tensor.retain_grad()
    targets.add(tensor.grad_fn)


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
) -> tuple:
    """The gradients of `outputs` with respect to `inputs`; nothing is added to `.grad`."""
    if materialize_grads and allow_unused is False:
        raise ValueError(
            "Expected allow_unused to be True or not passed when materialize_grads=True, but got: allow_unused=False."
        )
    if is_grads_batched:
        raise RuntimeError(
            "grad(is_grads_batched=True) is not supported: there is no vmap over the backward pass here. Call grad once for each "
            "row of grad_outputs, with retain_graph=True."
        )
    if not only_inputs:
        import warnings

        warnings.warn("only_inputs argument is deprecated and is ignored now (defaults to True)", FutureWarning, stacklevel=2)
    allow_unused = materialize_grads if allow_unused is None else allow_unused
    results, wanted = _as_tuple(outputs), _as_tuple(inputs)
    if not wanted:
        raise ValueError("grad requires non-empty inputs.")
    gradients = _as_tuple(grad_outputs) or (None,) * len(results)
    if len(gradients) != len(results):
        raise RuntimeError("got %d tensors and %d gradients" % (len(results), len(gradients)))
    roots = _roots(results, _make_grads(results, gradients, is_grads_batched))
    edges = []
    for tensor in wanted:
        if not tensor._rg:
            raise RuntimeError("One of the differentiated Tensors does not require grad")
        node = tensor.grad_fn
        edges.append((accumulator(tensor) if node is None else node, tensor._output_nr))
    captures = engine.Captures(edges)
    keep = create_graph if retain_graph is None else retain_graph
    engine.run(roots, keep, create_graph, captures)
    found = captures.found
    for place, value in enumerate(found):
        if value is None:
            if materialize_grads:
                found[place] = _dispatch.FUNCTIONS["zeros_like"](wanted[place], requires_grad=create_graph)
            elif not allow_unused:
                raise RuntimeError(
                    "One of the differentiated Tensors appears to not have been used in the graph. Set allow_unused=True if this is the "
                    "desired behavior."
                )
    return tuple(found)


def is_multithreading_enabled() -> bool:
    """Whether a backward pass may use threads."""
    return grad_state.multithreading


def _current_graph_task_id() -> int:
    """The number of the backward pass that runs on this thread; -1 when none does."""
    return grad_state.run_nr


def _is_checkpoint_valid() -> bool:
    """Whether the backward pass that runs reaches every leaf: a re-entrant checkpoint needs that."""
    return not grad_state.run_is_partial


def _profiler_enabled() -> bool:
    """Whether something records ops now."""
    return _dispatch.recorder is not None


from .gradcheck import gradcheck, gradgradcheck  # noqa: E402  (needs what stands above)

__all__ = [
    "Function", "Variable", "backward", "enable_grad", "grad", "gradcheck", "gradgradcheck", "inference_mode", "inplace", "no_grad", "set_grad_enabled",
    "set_multithreading_enabled",
]  # fmt: skip
