"""Gradient checks: compares the gradients of a function with finite differences; raises GradcheckError if
they differ.

A Jacobian here has a row per element of the input and a column per element of the output. Outputs are real
while they are checked: of a complex one, the real and the imaginary part are checked separately.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import mindtorch_v2 as torch

__all__ = [
    "gradcheck", "gradgradcheck", "GradcheckError", "get_numerical_jacobian", "get_analytical_jacobian",
    "get_numerical_jacobian_wrt_specific_input",
]  # fmt: skip


class GradcheckError(RuntimeError):
    """Raised by `gradcheck` and `gradgradcheck` when a derivative is wrong."""


_REENTRANT = """Backward is not reentrant, i.e., running backward with same input and grad_output multiple times gives different values, \
although analytical gradient matches numerical gradient.The tolerance for nondeterminism was {}.

NOTE: If your op relies on non-deterministic operations i.e., it is listed here:
https://pytorch.org/docs/stable/generated/torch.use_deterministic_algorithms.html
this failure might be expected.

If you are adding a new operator, please file an issue and then use one of the
workarounds. The workaround depends on how your test invokes gradcheck/gradgradcheck.
If the test
- manually invokes gradcheck/gradgradcheck, then call gradcheck/gradgradcheck
  with `nondet_tol=<tol>` as a keyword argument.
- is OpInfo-based (e.g., in test_ops_gradients.py), then modify the OpInfo for the test
  to have `gradcheck_nondet_tol=<tol>`.
- is a Module test (e.g., in common_nn.py), then modify the corresponding
  module_test entry to have `gradcheck_nondet_tol=<tol>`
"""

_SLOW_TOO = """
The above quantities relating the numerical and analytical jacobians are computed \n\
in fast mode. See: https://github.com/pytorch/pytorch/issues/53876 for more background \n\
about fast mode. Below, we recompute numerical and analytical jacobians in slow mode:

Numerical:
 {}
Analytical:
{}

The max per-element difference (slow mode) is: {}.
"""

_UNDEFINED = 'Expected {}. Please look at "Notes about undefined output gradients" in "tools/autograd/derivatives.yaml"'


# ---------------------------------------------------------------------------------------------------- inputs and outputs


def _as_tuple(value: Any) -> tuple:
    if isinstance(value, tuple):
        return value
    return tuple(value) if isinstance(value, list) else (value,)


def _differentiable(outputs: Any) -> tuple:
    return tuple(o for o in _as_tuple(outputs) if o.requires_grad)


def _is_inexact(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value._array.dtype.num not in torch._dtype.INTEGRAL_NUMS


def _checked(inputs: tuple) -> list[tuple[int, Any]]:
    """The inputs whose derivatives are checked, with their indices."""
    return [(i, x) for i, x in enumerate(inputs) if _is_inexact(x) and x.requires_grad]


def _check_inputs(inputs: tuple) -> None:
    any_requires_grad = False
    for number, value in enumerate(inputs):
        if not isinstance(value, torch.Tensor) or not value.requires_grad:
            continue
        any_requires_grad = True
        if value.dtype not in (torch.float64, torch.complex128):
            warnings.warn(
                f"Input #{number} requires gradient and is not a double precision floating point or complex. This check will likely fail "
                "if all the inputs are not of double precision floating point or complex. ", stacklevel=4,
            )  # fmt: skip
        if any(step == 0 and n > 1 for step, n in zip(value.stride(), value.shape)):
            raise RuntimeError(
                f"The {number}th input has a dimension with stride 0. gradcheck only supports inputs that are non-overlapping to be able "
                "to compute the numerical gradients correctly. You should call .contiguous on the input before passing it to gradcheck."
            )
        value.retain_grad()
    if not any_requires_grad:
        raise ValueError(
            "gradcheck expects at least one input tensor to require gradient, but none of them have requires_grad=True."
        )


def _check_outputs(outputs: tuple) -> None:
    if any(output.is_sparse for output in outputs if isinstance(output, torch.Tensor)):
        raise ValueError(
            "Sparse output is not supported at gradcheck yet. Please call to_dense(masked_grad=...) on the output of fn for gradcheck."
        )


# ---------------------------------------------------------------------------------------------------- numerical


def _check_same_outputs(first: list, second: list, index: Any, eps: float) -> None:
    for a, b in zip(first, second):
        where = f"when inputs are perturbed{'' if index is None else f' on index {index}'} by {eps}, but got:"
        if a.shape != b.shape:
            raise AssertionError(
                f"Expected `func` to return outputs with the same shape {where} shapes {torch.Size(a.shape)} and {torch.Size(b.shape)}."
            )
        if a.dtype != b.dtype:
            kinds = [torch._dtype.BY_NUM[x.dtype.num] for x in (a, b)]
            raise AssertionError(
                f"Expected `func` to return outputs with the same dtype {where} dtypes {kinds[0]} and {kinds[1]}."
            )


def _arrays(outputs: Any) -> list[np.ndarray]:
    return [np.array(o._array) for o in _as_tuple(outputs) if isinstance(o, torch.Tensor)]


def _directions(
    fn: Callable[[], Any], array: np.ndarray, where: Any, step: Any, eps: float, index: Any
) -> list[np.ndarray]:
    """(fn(x + step) - fn(x - step)) / 2 eps for each output; x is changed in place and restored."""
    before = np.array(array[where])
    try:
        array[where] = before - step
        low = _arrays(fn())
        array[where] = before + step
        high = _arrays(fn())
    finally:
        array[where] = before
    _check_same_outputs(low, high, index, eps)
    return [(b - a) / (2 * eps) for a, b in zip(low, high)]


def _numerical(fn: Callable[[], Any], tensor: Any, shapes: list, eps: float) -> list[np.ndarray]:
    """The Jacobian of each output with respect to `tensor`, which `fn` uses."""
    array = tensor._array
    rows = [np.zeros((array.size, size), np.promote_types(array.dtype, kind)) for size, kind in shapes]
    for row, index in enumerate(np.ndindex(array.shape)):
        derivatives = _directions(fn, array, index, eps, eps, index)
        if array.dtype.kind in "cW":
            imaginary = _directions(fn, array, index, 1j * eps, eps, index)
            derivatives = [x + 1j * y for x, y in zip(derivatives, imaginary)]
        for matrix, column in zip(rows, derivatives):
            matrix[row] = column.reshape(-1)
    if array.dtype.kind not in "cW":
        rows = [matrix.astype(kind, copy=False) for matrix, (_, kind) in zip(rows, shapes)]
    return rows


def _sizes_and_dtypes(outputs: tuple) -> list:
    return [(o.numel(), o._array.dtype) for o in outputs]


def get_numerical_jacobian_wrt_specific_input(
    fn: Any,
    input_idx: Any,
    inputs: Any,
    outputs: Any,
    eps: Any,
    input: Any = None,
    is_forward_ad: Any = False,
) -> tuple:
    """The Jacobian of each output of `fn(*inputs)` with respect to one input, by finite differences."""
    tensor = inputs[input_idx] if input is None else input
    return tuple(_tensor(m) for m in _numerical(lambda: fn(*inputs), tensor, _sizes_and_dtypes(outputs), eps))


def get_numerical_jacobian(
    fn: Any, inputs: Any, target: Any = None, eps: Any = 1e-3, grad_out: Any = 1.0
) -> Any:
    """Deprecated: the Jacobians of `fn(inputs)` with respect to each input (or to `target`), by finite differences."""
    _warn_private("get_numerical_jacobian", grad_out)
    outputs = _as_tuple(fn(inputs))
    if any(o.is_complex() for o in outputs):
        raise ValueError(
            "Expected output to be non-complex. get_numerical_jacobian no longer supports functions that return complex outputs."
        )
    targets = _as_tuple(inputs if target is None else target)
    return tuple(
        _tensor(_numerical(lambda: fn(inputs), x, _sizes_and_dtypes(outputs), eps)[0])
        for x in targets
        if x.requires_grad
    )


def _warn_private(name: str, grad_out: Any) -> None:
    warnings.warn(
        f"`{name}` was part of PyTorch's private API and not meant to be exposed. We are deprecating it and it will be removed in a "
        "future version of PyTorch. If you have a specific use for this or feature request for this to be a stable API, please file "
        "us an issue at https://github.com/pytorch/pytorch/issues/new", FutureWarning, stacklevel=3,
    )  # fmt: skip
    if grad_out != 1.0:
        raise ValueError(f"Expected grad_out to be 1.0. {name} no longer supports values of grad_out != 1.0.")


def _tensor(array: np.ndarray) -> Any:
    return torch._dispatch.wrap(np.array(array, order="C"))


# ---------------------------------------------------------------------------------------------------- analytical


def _grads(outputs: Any, inputs: list, given: Any) -> tuple:
    return torch.autograd.grad(outputs, inputs, given, retain_graph=True, allow_unused=True)


def _dense(gradient: Any) -> np.ndarray:
    return (gradient.to_dense() if gradient._is_sparse_layout else gradient)._array


def _analytical(output: Any, inputs: list, check_dtypes: bool = False) -> list[np.ndarray]:
    """The Jacobian of one output with respect to each input, one backward pass per element."""
    jacobians = [np.zeros((x.numel(), output.numel()), x._array.dtype) for x in inputs]
    with torch.no_grad():
        seed = torch.zeros_like(output, memory_format=torch.contiguous_format)
    flat = seed._array.reshape(-1)
    for column in range(flat.size):
        flat[column] = 1
        for matrix, x, gradient in zip(jacobians, inputs, _grads(output, inputs, seed.clone())):
            if gradient is None:
                continue
            _check_gradient(gradient, x, check_dtypes)
            matrix[:, column] = _dense(gradient).reshape(-1)
        flat[column] = 0
    return jacobians


def _check_gradient(gradient: Any, tensor: Any, check_dtypes: bool) -> None:
    if gradient.shape != tensor.shape:
        raise GradcheckError("Analytical gradient has incorrect size")
    if check_dtypes and gradient.dtype is not tensor.dtype:
        raise GradcheckError(f"Backward gradient has type {gradient.dtype} but input has type {tensor.dtype}")


def get_analytical_jacobian(inputs: Any, output: Any, nondet_tol: float = 0.0, grad_out: Any = 1.0) -> tuple:
    """Deprecated: Jacobians of `output` by backward, whether two runs agree, and whether sizes and dtypes
    fit.
    """
    _warn_private("get_analytical_jacobian", grad_out)
    if output.is_complex():
        raise ValueError(
            "Expected output to be non-complex. get_analytical_jacobian no longer supports functions that return complex outputs."
        )
    tensors = [x for _, x in _checked(_as_tuple(inputs))]
    first, second = _analytical(output, tensors), _analytical(output, tensors)
    return tuple(_tensor(m) for m in first), _reentrant(first, second, nondet_tol), True, True


def _reentrant(first: list, second: list, tolerance: float) -> bool:
    return all(
        not a.size or np.abs(a - b).max() <= tolerance or np.array_equal(a, b, equal_nan=True)
        for a, b in zip(first, second)
    )


# ---------------------------------------------------------------------------------------------------- comparison


def _close(a: Any, b: Any, rtol: float, atol: float) -> bool:
    return bool(np.allclose(a, b, rtol=rtol, atol=atol))


def _mismatch(numerical: Any, analytical: Any, output: int, number: int, part: str) -> str:
    return f"{part}Jacobian mismatch for output {output} with respect to input {number},\nnumerical:{numerical}\nanalytical:{analytical}\n"


def _slow(func: Any, inputs: tuple, outputs: tuple, part: str, options: dict) -> None:
    checked = _checked(inputs)
    tensors = [x for _, x in checked]
    numerical = [
        _numerical(lambda: func(*inputs), x, _sizes_and_dtypes(outputs), options["eps"]) for x in tensors
    ]
    for output_index, output in enumerate(outputs):
        analytical = _analytical(output, tensors, options["check_grad_dtypes"])
        repeated = _analytical(output, tensors, options["check_grad_dtypes"])
        for number, (name, _) in enumerate(checked):
            a, n = analytical[number], numerical[number][output_index]
            if not _close(a, n, options["rtol"], options["atol"]):
                raise GradcheckError(_mismatch(_tensor(n), _tensor(a), output_index, name, part))
        if not _reentrant(analytical, repeated, options["nondet_tol"]):
            raise GradcheckError(_REENTRANT.format(options["nondet_tol"]))


def _unit(size: int, dtype: Any, generator: Any) -> np.ndarray:
    vector = torch.rand(size, generator=generator)._array.astype(dtype)
    norm = np.linalg.norm(vector)
    return vector / norm if norm else vector


def _real(dtype: Any) -> Any:
    return np.zeros((), dtype).real.dtype


def _fast(func: Any, inputs: tuple, outputs: tuple, part: str, options: dict) -> None:
    """Compare v J u for random u and v only: two calls per input and one backward pass per output."""
    checked = _checked(inputs)
    tensors = [x for _, x in checked]
    generator = torch.Generator()
    input_directions = []
    for x in tensors:
        kind = x._array.dtype
        parts = 2 if kind.kind in "cW" else 1
        input_directions.append([_unit(x.numel(), _real(kind), generator) for _ in range(parts)])
    output_directions = [_unit(o.numel(), o._array.dtype, generator) for o in outputs]
    numerical = [
        _fast_numerical(func, inputs, x, u, options["eps"]) for x, u in zip(tensors, input_directions)
    ]
    for output_index, (output, v) in enumerate(zip(outputs, output_directions)):
        seed = _tensor(v.reshape(output._array.shape))
        results = [_grads(output, tensors, seed.clone()) for _ in range(2)]
        for number, (name, x) in enumerate(checked):
            pair = [
                _fast_analytical(g[number], x, input_directions[number], options["check_grad_dtypes"])
                for g in results
            ]
            if abs(pair[0] - pair[1]) > options["nondet_tol"]:
                raise GradcheckError(_REENTRANT.format(options["nondet_tol"]))
            expected = [
                np.dot(v, column.reshape(-1)) for column in numerical[number]["outputs"][output_index]
            ]
            value = expected[0] + 1j * expected[1] if len(expected) == 2 else expected[0]
            tolerance = (
                options["atol"]
                * sum(float(np.sum(u)) for u in input_directions[number])
                * float(np.sum(v).real)
            )
            if not _close(pair[0], value, options["rtol"], tolerance):
                text = _mismatch(_python_number(value), _python_number(pair[0]), output_index, name, part)
                raise GradcheckError(
                    text + _slow_mode_message(func, inputs, outputs, output_index, x, options)
                )


def _fast_numerical(func: Any, inputs: tuple, x: Any, u: list, eps: float) -> dict:
    def run() -> Any:
        return func(*inputs)

    columns = [_directions(run, x._array, ..., eps * u[0].reshape(x._array.shape), eps, None)]
    if len(u) == 2:
        columns.append(_directions(run, x._array, ..., 1j * eps * u[1].reshape(x._array.shape), eps, None))
    return {"outputs": list(zip(*columns))}


def _fast_analytical(gradient: Any, x: Any, u: list, check_dtypes: bool) -> Any:
    if gradient is None:
        return 0.0
    _check_gradient(gradient, x, check_dtypes)
    flat = _dense(gradient).reshape(-1)
    if len(u) == 2:
        return np.dot(flat.real, u[0]) + 1j * np.dot(flat.imag, u[1])
    return np.dot(flat, u[0])


def _python_number(value: Any) -> Any:
    return value.item() if hasattr(value, "item") else value


def _slow_mode_message(
    func: Any, inputs: tuple, outputs: tuple, output_index: int, x: Any, options: dict
) -> str:
    numerical = _numerical(lambda: func(*inputs), x, _sizes_and_dtypes(outputs), options["eps"])[output_index]
    analytical = _analytical(outputs[output_index], [x])[0]
    text = _SLOW_TOO.format(_tensor(numerical), _tensor(analytical), np.abs(numerical - analytical).max())
    if _close(analytical, numerical, options["rtol"], options["atol"]):
        text += (
            "\nThe slow mode comparison passes: the difference lies within the tolerances of single elements. Raise atol or rtol, or "
            "check without fast_mode.\n"
        )
    return text


def _check_no_outputs(func: Any, inputs: tuple, outputs: tuple, eps: float) -> None:
    """If no output requires grad, no output may depend on the inputs."""
    inexact_outputs = [o for o in outputs if _is_inexact(o)]
    for _, x in _checked(inputs):
        for matrix in _numerical(
            lambda: [o for o in _as_tuple(func(*inputs)) if _is_inexact(o)],
            x,
            _sizes_and_dtypes(tuple(inexact_outputs)),
            eps,
        ):
            if matrix.size and np.abs(matrix).max() > eps:
                raise GradcheckError("Numerical gradient for function expected to be zero")


def _parts(outputs: tuple) -> list[tuple[str, Any]]:
    """The parts of the outputs to check: themselves, or imaginary and real part if some are complex."""
    if not any(o.is_complex() for o in outputs):
        return [("", lambda outs: outs)]

    def imaginary(outs: tuple) -> tuple:
        return tuple(torch.imag(o) for o in outs if o.is_complex())

    def real(outs: tuple) -> tuple:
        return tuple(torch.real(o) if o.is_complex() else o for o in outs)

    text = "While considering the {} part of complex outputs only, "
    return [(text.format("imaginary"), imaginary), (text.format("real"), real)]


# ---------------------------------------------------------------------------------------------------- other properties of backward


def _check_multiplied(outputs: tuple, inputs: tuple) -> None:
    """A zero gradient must give zero gradients."""
    tensors = [x for _, x in _checked(inputs)]
    zeros = [torch.zeros_like(o, memory_format=torch.legacy_contiguous_format) for o in outputs]
    gradients = _grads(outputs, tensors, zeros)
    for gradient, x in zip(gradients, tensors):
        if gradient is None:
            continue
        if np.any(_dense(gradient)):
            raise GradcheckError("backward not multiplied by grad_output")
        if gradient.dtype is not x.dtype:
            raise GradcheckError("grad is incorrect type")
        if gradient.shape != x.shape:
            raise GradcheckError("grad is incorrect size")


def _check_undefined(func: Any, inputs: tuple) -> None:
    """Missing gradients must be treated as zeros."""
    tensors = [x for _, x in _checked(inputs)]
    outputs = _differentiable(func(*inputs))

    def check(checked_outputs: list) -> None:
        zeros = [torch.zeros_like(o, memory_format=torch.legacy_contiguous_format) for o in checked_outputs]
        try:
            gradients = torch.autograd.grad(checked_outputs, tensors, zeros, allow_unused=True)
        except RuntimeError as error:
            raise GradcheckError(
                _UNDEFINED.format("backward function to handle undefined output grads")
            ) from error
        if any(g is not None and np.any(_dense(g)) for g in gradients):
            text = "all input grads to be undefined or zero when all output grads are undefined or zero"
            raise GradcheckError(_UNDEFINED.format(text))

    from ._functions import UndefinedGrad

    check([UndefinedGrad()(o) for o in outputs])
    if len(outputs) > 1:
        for undefined in range(len(outputs)):
            outputs = _differentiable(func(*inputs))
            check([UndefinedGrad()(o) if index == undefined else o for index, o in enumerate(outputs)])


def _check_forward(func: Any, inputs: tuple, outputs: tuple, options: dict) -> None:
    """Compare forward-mode derivatives with finite differences."""
    from .forward_ad import jacobian_columns

    if any(o.is_complex() for o in outputs) or any(x.is_complex() for _, x in _checked(inputs)):
        raise NotImplementedError(
            "gradcheck(check_forward_ad=True) is not supported for complex tensors here"
        )
    for number, x in _checked(inputs):
        numerical = _numerical(
            lambda: _differentiable(func(*inputs)), x, _sizes_and_dtypes(outputs), options["eps"]
        )
        analytical = jacobian_columns(lambda *args: _differentiable(func(*args)), inputs, number)
        for output_index, (a, n) in enumerate(zip(analytical, numerical)):
            if not _close(a, n, options["rtol"], options["atol"]):
                text = _mismatch(_tensor(n), _tensor(a), output_index, number, "")
                raise GradcheckError(
                    text.replace("Jacobian mismatch", "Jacobian computed with forward mode mismatch")
                )


# ---------------------------------------------------------------------------------------------------- the two checks


def gradcheck(
    func: Callable[..., Any],
    inputs: Any,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_batched_forward_grad: bool = False,
    check_forward_ad: bool = False,
    check_backward_ad: bool = True,
    fast_mode: bool = False,
    masked: bool | None = None,
) -> bool:
    """Whether the gradients of `func` at `inputs` agree with finite differences."""
    if not (check_forward_ad or check_backward_ad):
        raise AssertionError("Expected at least one of check_forward_ad or check_backward_ad to be True")
    if check_batched_grad and not check_backward_ad:
        raise AssertionError("Setting check_batched_grad=True requires check_backward_ad to be True")
    if check_batched_forward_grad and not check_forward_ad:
        raise AssertionError("Setting check_batched_forward_grad=True requires check_forward_ad to be True")
    if check_batched_grad or check_batched_forward_grad:
        raise NotImplementedError(
            "gradcheck cannot check batched gradients: there is no vmap over the backward pass here"
        )
    options = {
        "eps": eps,
        "atol": atol,
        "rtol": rtol,
        "nondet_tol": nondet_tol,
        "check_grad_dtypes": check_grad_dtypes,
    }
    try:
        return _gradcheck(
            func,
            _as_tuple(inputs),
            options,
            check_undefined_grad,
            check_forward_ad,
            check_backward_ad,
            fast_mode,
        )
    except GradcheckError:
        if raise_exception:
            raise
        return False


def _gradcheck(
    func: Any, inputs: tuple, options: dict, undefined: bool, forward: bool, backward: bool, fast_mode: bool
) -> bool:
    _check_inputs(inputs)
    returned = _as_tuple(func(*inputs))
    outputs = _differentiable(returned)
    _check_outputs(outputs)
    if not outputs:
        _check_no_outputs(func, inputs, returned, options["eps"])
        return True
    if forward:
        _check_forward(func, inputs, outputs, options)
    if not backward:
        return True
    check = _fast if fast_mode else _slow
    for text, part in _parts(outputs):
        check(
            lambda *args, part=part: part(_differentiable(func(*args))),
            inputs,
            part(outputs),
            text,
            options,
        )
    _check_multiplied(outputs, inputs)
    if undefined:
        _check_undefined(func, inputs)
    return True


def gradgradcheck(
    func: Callable[..., Any],
    inputs: Any,
    grad_outputs: Any = None,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    gen_non_contig_grad_outputs: bool = False,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_fwd_over_rev: bool = False,
    check_rev_over_rev: bool = True,
    fast_mode: bool = False,
    masked: bool = False,
) -> bool:
    """Whether the gradients of the gradients of `func` at `inputs` agree with finite differences."""
    if not (check_fwd_over_rev or check_rev_over_rev):
        raise AssertionError("Expected at least one of check_fwd_over_rev or check_rev_over_rev to be True")
    arguments = _as_tuple(inputs)
    if grad_outputs is None:
        seeds = tuple(_random_grad(o, gen_non_contig_grad_outputs) for o in _differentiable(func(*arguments)))
    else:
        seeds = _as_tuple(grad_outputs)
    count = len(seeds)

    def gradients(*args: Any) -> tuple:
        func_inputs, grads = args[: len(args) - count], args[len(args) - count :]
        outputs = _differentiable(func(*func_inputs))
        differentiated = tuple(x for x in func_inputs if isinstance(x, torch.Tensor) and x.requires_grad)
        input_grads = torch.autograd.grad(
            outputs, differentiated, grads, create_graph=True, allow_unused=True
        )
        return tuple(g for g in input_grads if g is not None)

    return gradcheck(
        gradients, arguments + seeds, eps=eps, atol=atol, rtol=rtol, raise_exception=raise_exception, nondet_tol=nondet_tol,
        check_undefined_grad=check_undefined_grad, check_grad_dtypes=check_grad_dtypes, check_batched_grad=check_batched_grad,
        check_forward_ad=check_fwd_over_rev, check_backward_ad=check_rev_over_rev, fast_mode=fast_mode, masked=masked,
    )  # fmt: skip


def _random_grad(output: Any, scattered: bool) -> Any:
    """A random gradient for `output` that itself requires grad."""
    seed = torch.testing.make_tensor(
        output.shape, dtype=output.dtype, device=output.device, low=-1, high=1, noncontiguous=scattered
    )
    return seed.requires_grad_(True)
