"""Transforms of functions: a function of tensors in, a function that computes its derivatives (reverse mode)
out.

Inside a transform the arguments are new tensors that require grad. A result that depends only on such tensors
is returned without history; one that depends on others keeps its graph, so transforms nest. Where gradients are
disabled around a transform, its results have no history at all.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import mindtorch_v2 as torch

from ..utils._pytree import tree_flatten, tree_map, tree_unflatten

_NOT_TENSORS = "expected f(*primals) to return only tensors, got unsupported type"


class _Levels(threading.local):
    """The number of transforms running in this thread."""

    depth = 0


_levels = _Levels()


class _Level(NamedTuple):
    """One running transform: how many enclose it, itself included, and whether gradients are enabled around it."""

    depth: int
    grad_enabled_around: bool


@contextmanager
def _level() -> Iterator[_Level]:
    _levels.depth += 1
    try:
        level = _Level(_levels.depth, torch.is_grad_enabled())
        with torch.enable_grad():
            yield level
    finally:
        _levels.depth -= 1


def _differentiable_argument(value: Any, level: _Level) -> Any:
    """An argument in the form that the transformed function gets: a tensor that requires grad."""
    if not isinstance(value, torch.Tensor):
        raise ValueError(f"Thing passed to transform API must be Tensor, got {type(value)}")
    if not (value.is_floating_point() or value.is_complex()):
        raise RuntimeError("only Tensors of floating point dtype can require gradients")
    if value.requires_grad:
        return value.view_as(value)
    argument = value.detach().requires_grad_()
    argument._func_level = level.depth
    return argument


def _comes_from_outside(tensor: torch.Tensor, level: _Level) -> bool:
    """Whether a tensor's history reaches a leaf that neither this transform nor an inner one created."""
    if tensor.grad_fn is None:
        return tensor._func_level < level.depth
    visited = {tensor.grad_fn}
    stack = [tensor.grad_fn]
    while stack:
        node = stack.pop()
        variable = getattr(node, "variable", None)
        if variable is not None and variable._func_level < level.depth:
            return True
        for next_node, _ in node.next_functions:
            if next_node is not None and next_node not in visited:
                visited.add(next_node)
                stack.append(next_node)
    return False


def _detached_results(tree: Any, level: _Level) -> Any:
    """The results in the form that the caller gets: detached where they depend on this transform's arguments
    only.
    """

    def leave(value: Any) -> Any:
        if not isinstance(value, torch.Tensor) or not value.requires_grad:
            return value
        keeps_history = level.grad_enabled_around and _comes_from_outside(value, level)
        return value if keeps_history else value.detach()

    return tree_map(leave, tree)


def _check_tensors(values: list[Any], text: str) -> None:
    for value in values:
        if not isinstance(value, torch.Tensor):
            raise RuntimeError(f"{text} {type(value)}")


def _argument_indices(argnums: Any, count: int) -> tuple[int, ...]:
    """The positions in `argnums`, as non-negative integers."""
    if not isinstance(argnums, (int, tuple)):
        raise RuntimeError(f"argnums must be int or Tuple[int, ...], got: {type(argnums)}")
    if isinstance(argnums, tuple):
        if not argnums:
            raise RuntimeError("argnums must be non-empty")
        if not all(isinstance(argnum, int) for argnum in argnums):
            raise RuntimeError(f"argnums must be int or Tuple[int, ...], got: {argnums}")
    numbers = argnums if isinstance(argnums, tuple) else (argnums,)
    for argnum in numbers:
        if not -count <= argnum < count:
            raise RuntimeError(f"Got argnum={argnum}, but only {count} positional inputs")
    indices = tuple(argnum % count for argnum in numbers)
    if len(set(indices)) != len(indices):
        raise RuntimeError(f"argnums elements must be unique, got {argnums}")
    return indices


def _gradients(outputs: list[Any], inputs: list[Any], cotangents: list[Any]) -> list[Any]:
    """Gradients for every input, zeros where it is not used; differentiable themselves."""
    pairs = [(out, v) for out, v in zip(outputs, cotangents) if out.requires_grad]
    if not pairs or not inputs:
        return [torch.zeros_like(x) for x in inputs]
    found = torch.autograd.grad(
        [out for out, _ in pairs], inputs, [v for _, v in pairs], create_graph=True, allow_unused=True
    )
    return [torch.zeros_like(x) if g is None else g for x, g in zip(inputs, found)]


def _differentiable_arguments(
    args: tuple[Any, ...], argnums: Any, level: _Level
) -> tuple[list[Any], list[Any], Any]:
    """All arguments, the tensors among them that require grad, and the structure of their gradients."""
    indices = _argument_indices(argnums, len(args))
    selected = tuple(args[index] for index in indices) if isinstance(argnums, tuple) else args[indices[0]]
    flat, spec = tree_flatten(selected)
    leaves = [_differentiable_argument(value, level) for value in flat]
    rebuilt = tree_unflatten(leaves, spec)
    call_args = list(args)
    for index, value in zip(indices, rebuilt if isinstance(argnums, tuple) else (rebuilt,)):
        call_args[index] = value
    return call_args, leaves, spec


def _split_aux(result: Any, has_aux: bool, text: str) -> tuple[Any, Any]:
    if not has_aux:
        return result, None
    if not (isinstance(result, tuple) and len(result) == 2):
        raise RuntimeError(text)
    _check_tensors(tree_flatten(result[1])[0], "Expected tensors, got unsupported type")
    return result


def grad_and_value(func: Callable[..., Any], argnums: Any = 0, has_aux: bool = False) -> Callable[..., Any]:
    """A function that returns the gradient of `func` and its value."""

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        with _level() as level:
            call_args, leaves, spec = _differentiable_arguments(args, argnums, level)
            output, aux = _split_aux(
                func(*call_args, **kwargs),
                has_aux,
                "grad_and_value(f)(*args): output of function f should be a tuple: (output, aux) "
                "if has_aux is True",
            )
            if not isinstance(output, torch.Tensor):
                raise RuntimeError(
                    f"grad_and_value(f)(*args): Expected f(*args) to return a Tensor, got {type(output)}"
                )
            if output.dim() != 0:
                raise RuntimeError(
                    "grad_and_value(f)(*args): Expected f(*args) to return a scalar Tensor, got tensor with "
                    f"{output.dim()} dims. Maybe you wanted to use the vjp or jacrev APIs instead?"
                )
            grads = tree_unflatten(_gradients([output], leaves, [torch.ones_like(output)]), spec)
            value = (output, aux) if has_aux else output
            return _detached_results((grads, value), level)

    return wrapper


def grad(func: Callable[..., Any], argnums: Any = 0, has_aux: bool = False) -> Callable[..., Any]:
    """A function that returns the gradient of `func`, which returns a scalar tensor."""
    both = grad_and_value(func, argnums, has_aux)

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        grads, value = both(*args, **kwargs)
        return (grads, value[1]) if has_aux else grads

    return wrapper


def vjp(func: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """The output of `func` and a function that multiplies a vector by its Jacobian from the left."""
    with _level() as level:
        call_args, leaves, spec = _differentiable_arguments(primals, tuple(range(len(primals))), level)
        output, aux = _split_aux(
            func(*call_args),
            has_aux,
            "vjp(f, *primals): output of function f should be a tuple: (output, aux) if has_aux is True",
        )
        outputs, out_spec = tree_flatten(output)
        _check_tensors(outputs, f"vjp(f, *primals): {_NOT_TENSORS}")

    def vjp_fn(*cotangents: Any) -> Any:
        flat_cotangents, cotangents_spec = tree_flatten(cotangents[0] if len(cotangents) == 1 else cotangents)
        if cotangents_spec != out_spec:
            raise RuntimeError(
                "Expected pytree structure of cotangents to be the same as pytree structure of outputs to "
                "the "
                f"function. cotangents: {cotangents_spec}, primal output: {out_spec}"
            )
        for i, (out, v) in enumerate(zip(outputs, flat_cotangents)):
            if out.shape != v.shape:
                raise RuntimeError(
                    f"Mismatch in shape: grad_output[{i}] has a shape of {v.shape} and output[{i}] has a "
                    "shape of "
                    f"{out.shape}."
                )
        call = level._replace(grad_enabled_around=level.grad_enabled_around and torch.is_grad_enabled())
        with torch.enable_grad():
            grads = _gradients(outputs, leaves, flat_cotangents)
        return _detached_results(tree_unflatten(grads, spec), call)

    result = _detached_results(output, level)
    return (result, vjp_fn, _detached_results(aux, level)) if has_aux else (result, vjp_fn)


def jvp(
    func: Callable[..., Any], primals: Any, tangents: Any, *, strict: bool = False, has_aux: bool = False
) -> Any:
    """The output of `func` and its Jacobian times the tangents."""
    if not isinstance(primals, tuple):
        raise RuntimeError(
            "jvp(f, primals, tangents): Expected primals to be a tuple. E.g. it should be valid to call "
            "f(*primals)."
        )
    flat_tangents, tangents_spec = tree_flatten(tangents)
    _, primals_spec = tree_flatten(primals)
    if tangents_spec != primals_spec:
        raise RuntimeError(
            "jvp(f, primals, tangents): Expected primals and tangents to have the same python structure. For "
            "example, if primals is a tuple of 3 tensors, tangents also must be. Got primals with structure "
            f"{primals_spec} and tangents with structure {tangents_spec}"
        )
    with _level() as level:
        call_args, leaves, _ = _differentiable_arguments(primals, tuple(range(len(primals))), level)
        for x, v in zip(leaves, flat_tangents):
            if x.shape != v.shape:
                raise RuntimeError(
                    "Trying to set a forward gradient that has a different size than that of the original "
                    "Tensor, "
                    f"this is not supported. Tensor is of size {list(x.shape)} while the given forward "
                    "gradient is "
                    f"of size {list(v.shape)}."
                )
        output, aux = _split_aux(
            func(*call_args),
            has_aux,
            "jvp(f, primals, tangents): output of function f should be a tuple: (output, aux) if has_aux "
            "is True",
        )
        outputs, out_spec = tree_flatten(output)
        _check_tensors(outputs, f"jvp(f, primals, tangents): {_NOT_TENSORS}")
        jvp_output = tree_unflatten(_jacobian_times_tangents(outputs, leaves, flat_tangents, level), out_spec)
        results = (output, jvp_output, aux) if has_aux else (output, jvp_output)
        return _detached_results(results, level)


def _jacobian_times_tangents(
    outputs: list[Any], inputs: list[Any], tangents: list[Any], level: _Level
) -> list[Any]:
    """The Jacobian times the tangents: the gradient in u of the product of u with the Jacobian."""
    u = [_differentiable_argument(torch.zeros_like(out).detach(), level) for out in outputs]
    products = _gradients(outputs, inputs, u)
    return _gradients(products, u, tangents)


def linearize(func: Callable[..., Any], *primals: Any) -> tuple[Any, Callable[..., Any]]:
    """The output of `func` and a function that multiplies tangents by its Jacobian, computed once."""
    with _level() as level:
        call_args, leaves, spec = _differentiable_arguments(primals, tuple(range(len(primals))), level)
        output = func(*call_args)
        outputs, out_spec = tree_flatten(output)
        _check_tensors(outputs, f"linearize(f, *primals): {_NOT_TENSORS}")
        u = [_differentiable_argument(torch.zeros_like(out).detach(), level) for out in outputs]
        products = _gradients(outputs, leaves, u)

    def jvp_fn(*tangents: Any) -> Any:
        flat_tangents, tangents_spec = tree_flatten(tangents)
        if tangents_spec != spec:
            raise RuntimeError(
                f"Expected the tangents {tangents_spec} to have the same argspec as the primals {spec}"
            )
        for i, (x, v) in enumerate(zip(leaves, flat_tangents)):
            if x.shape != v.shape:
                raise RuntimeError(
                    f"Expected the argument {i} of tangents to have the same shape as the primal, got "
                    f"{v.shape} "
                    f"and {x.shape}"
                )
        call = level._replace(grad_enabled_around=level.grad_enabled_around and torch.is_grad_enabled())
        with torch.enable_grad():
            return _detached_results(tree_unflatten(_gradients(products, u, flat_tangents), out_spec), call)

    return _detached_results(output, level), jvp_fn


def _jacobian(
    name: str, func: Callable[..., Any], argnums: Any, has_aux: bool, args: tuple, kwargs: dict
) -> Any:
    with _level() as level:
        call_args, leaves, spec = _differentiable_arguments(args, argnums, level)
        output, aux = _split_aux(
            func(*call_args, **kwargs),
            has_aux,
            f"{name}(f)(*args): output of function f should be a tuple: (output, aux) if has_aux is True",
        )
        outputs, out_spec = tree_flatten(output)
        _check_tensors(outputs, f"{name}: {_NOT_TENSORS}")
        rows = [tree_unflatten(_rows(out, leaves), spec) for out in outputs]
        matrix = tree_unflatten(rows, out_spec)
        return _detached_results((matrix, aux) if has_aux else matrix, level)


def _rows(output: torch.Tensor, inputs: list[torch.Tensor]) -> list[torch.Tensor]:
    """The Jacobian of one output, for each input: shaped like the output, then like the input."""
    basis = torch.eye(output.numel(), dtype=output.dtype).reshape(-1, *output.shape)
    found = [_gradients([output], inputs, [v]) for v in basis]
    return [
        torch.stack([grads[i] for grads in found]).reshape(*output.shape, *x.shape)
        if found
        else x.new_zeros((*output.shape, *x.shape))
        for i, x in enumerate(inputs)
    ]


def jacrev(
    func: Callable[..., Any],
    argnums: Any = 0,
    *,
    has_aux: bool = False,
    chunk_size: int | None = None,
    _preallocate_and_copy: bool = False,
) -> Callable[..., Any]:
    """A function that returns the Jacobian of `func`, row by row."""
    if not (chunk_size is None or chunk_size > 0):
        raise ValueError("jacrev: `chunk_size` should be greater than 0.")

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return _jacobian("vjp(f, *primals)", func, argnums, has_aux, args, kwargs)

    return wrapper


def jacfwd(
    func: Callable[..., Any], argnums: Any = 0, has_aux: bool = False, *, randomness: str = "error"
) -> Callable[..., Any]:
    """A function that returns the Jacobian of `func`; the same as `jacrev`, because there is no forward mode
    here.
    """

    @functools.wraps(func)
    def wrapper(*args: Any) -> Any:
        return _jacobian("jacfwd", func, argnums, has_aux, args, {})

    return wrapper


def hessian(func: Callable[..., Any], argnums: Any = 0) -> Callable[..., Any]:
    """A function that returns the Hessian of `func`."""
    return jacfwd(jacrev(func, argnums), argnums)


def functionalize(func: Callable[..., Any], *, remove: str = "mutations") -> Callable[..., Any]:
    """Return the function itself: nothing here records a graph from which mutations would have to be removed."""
    if remove not in ("mutations", "mutations_and_views"):
        raise RuntimeError(
            f"functionalize(f, remove='mutations'): received invalid argument for remove={remove}. Valid "
            "options are:\n"
            "     remove='mutations': all inplace and out= operators will be removed from the program, and "
            "replaced "
            "with their out-of-place equivalents.\n"
            "     remove='mutations_and_views': In addition to the above, all aliasing operators {view} "
            "will be "
            "replaced with their non-aliasing counterparts, {view}_copy.\n"
        )

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return func(*args, **kwargs)

    return wrapper


def debug_unwrap(tensor: torch.Tensor, *, recurse: bool = True) -> torch.Tensor:
    """Return the tensor itself: there are no wrappers here."""
    return tensor
