"""Derivatives of functions: Jacobians, Hessians and their products with vectors, at a point.

Products from the right (`jvp`, `hvp`) come from differentiating a backward pass with respect to the gradient
put into it.
"""

from __future__ import annotations

import itertools
from typing import Any

import mindtorch_v2 as torch

__all__ = ["vjp", "jvp", "jacobian", "hessian", "hvp", "vhp"]

_STRICT = " This is not allowed in strict mode"
_STRATEGIES = ("forward-mode", "reverse-mode")


# ---------------------------------------------------------------------------------------------------- arguments and results


def _tensors(value: Any, what: str, caller: str) -> tuple[bool, tuple]:
    """Whether a tuple was passed, and the tensors as a tuple."""
    given = value if isinstance(value, tuple) else (value,)
    for place, item in enumerate(given):
        if not isinstance(item, torch.Tensor):
            where = f"the value at index {place}" if isinstance(value, tuple) else f"the given {what}"
            raise TypeError(
                f"The {what} given to {caller} must be either a Tensor or a tuple of Tensors but {where} has type {type(item)}."
            )
    return isinstance(value, tuple), given


def _as_tuple(inp: Any, arg_name: str | None = None, fn_name: str | None = None) -> Any:
    """The tensors as a tuple, checked if the argument and the function are named, as torch's helper does it."""
    if arg_name is None and fn_name is None:
        return inp if isinstance(inp, tuple) else (inp,)
    return _tensors(inp, arg_name or "", fn_name or "")


def _construct_standard_basis_for(tensors: tuple, tensor_numels: tuple[int, ...]) -> tuple:
    """The rows of an identity matrix with a row for each element of all tensors, cut into the columns of each tensor."""
    starts = itertools.accumulate(tensor_numels, initial=0)
    total = sum(tensor_numels)
    identity = torch.eye(total)
    return tuple(
        identity[:, start : start + count].to(tensor.dtype)
        for tensor, count, start in zip(tensors, tensor_numels, starts)
    )


def _grad_preprocess(inputs: tuple, create_graph: bool) -> tuple:
    """Inputs to differentiate at: detached from the user's graph unless it is to be kept."""
    return tuple(
        x.view_as(x) if create_graph and x.requires_grad else x.detach().requires_grad_(True) for x in inputs
    )


def _grad_postprocess(values: Any, create_graph: bool) -> Any:
    if isinstance(values, tuple):
        return tuple(_grad_postprocess(v, create_graph) for v in values)
    return values if create_graph else values.detach()


def _tuple_postprocess(values: tuple, as_tuple: bool) -> Any:
    return values if as_tuple else values[0]


def _call_preprocessed(
    func: Any, inputs: Any, caller: str, create_graph: bool
) -> tuple[bool, tuple, bool, tuple]:
    """The prepared inputs and the function's outputs, each with whether it is a tuple."""
    is_tuple, input_tensors = _tensors(inputs, "inputs", caller)
    prepared = _grad_preprocess(input_tensors, create_graph)
    outputs_is_tuple, outputs = _tensors(func(*prepared), "outputs of the user-provided function", caller)
    return is_tuple, prepared, outputs_is_tuple, outputs


def _vector(v: Any, tensors: tuple, is_tuple: bool, caller: str, source: str, create_graph: bool) -> tuple:
    """The vector of a product, checked against the tensors it belongs to; 1 if that is the only possible
    shape.
    """
    if v is None:
        if len(tensors) != 1 or tensors[0].numel() != 1:
            raise RuntimeError(
                f"The vector v can only be None if {source} a single Tensor with a single element."
            )
        return (torch.ones_like(tensors[0]),)
    _, vectors = _tensors(v, "v", caller)
    vectors = tuple(x.view_as(x) if create_graph and x.requires_grad else x.detach() for x in vectors)
    if len(tensors) != len(vectors):
        if is_tuple:
            raise RuntimeError(
                f"v is a tuple of invalid length: should be {len(tensors)} but got {len(vectors)}."
            )
        raise RuntimeError("The given v should contain a single Tensor.")
    for index, (vector, tensor) in enumerate(zip(vectors, tensors)):
        if vector.size() != tensor.size():
            prefix = f"Entry {index} in " if is_tuple else ""
            raise RuntimeError(
                f"{prefix}v has invalid size: should be {tensor.size()} but got {vector.size()}."
            )
    return vectors


def _single(outputs: tuple, outputs_is_tuple: bool, caller: str) -> None:
    if outputs_is_tuple or not isinstance(outputs[0], torch.Tensor):
        raise RuntimeError(f"The function given to {caller} should return a single Tensor")
    if outputs[0].numel() != 1:
        raise RuntimeError(
            f"The Tensor returned by the function given to {caller} should contain a single element"
        )


# ---------------------------------------------------------------------------------------------------- strictness


def _check_outputs(outputs: tuple, strict: bool) -> None:
    for index, output in enumerate(outputs):
        if strict and not output.requires_grad:
            raise RuntimeError(
                f"Output {index} of the user-provided function does not require gradients. The outputs must be computed in a "
                "differentiable manner from the input when running in strict mode."
            )


def _check_jacobian(jacobian: tuple, strict: bool) -> None:
    for index, part in enumerate(jacobian):
        if strict and not part.requires_grad:
            raise RuntimeError(
                "While computing the hessian, found that the jacobian of the user-provided function with respect to input "
                f"{index} is independent of the input.{_STRICT}. You should ensure that your function is twice differentiable and "
                "that the jacobian depends on the inputs (this would be violated by a linear function for example)."
            )


def _fill_missing(
    grads: tuple, like: tuple, strict: bool, create_graph: bool, missing_text: str, matrix_name: str
) -> tuple:
    """Zeros for missing gradients, or an error if `strict`; `{}` in `missing_text` is its
    index.
    """
    filled = []
    for index, (gradient, other) in enumerate(zip(grads, like)):
        if gradient is None:
            if strict:
                raise RuntimeError(f"{missing_text.format(index)}{_STRICT}.")
            gradient = torch.zeros_like(other)
        elif strict and create_graph and not gradient.requires_grad:
            raise RuntimeError(
                f"The {matrix_name} of the user-provided function is independent of input {index}.{_STRICT} when create_graph=True."
            )
        filled.append(gradient)
    return tuple(filled)


_OUTPUT = "The output of the user-provided function is independent of input {}."
_JACOBIAN = "The jacobian of the user-provided function is independent of input {}."
_TRICK = (
    "The gradient with respect to the input is independent of entry {} in the grad_outputs when using the double backward trick to "
    "compute forward mode gradients."
)
_HESSIAN_TRICK = (
    "The hessian of the user-provided function is independent of entry {} in the grad_jacobian when using the double backward trick "
    "to compute the hessian vector product."
)


def _grad(
    outputs: tuple,
    inputs: tuple,
    seeds: Any = None,
    create_graph: bool = False,
    retain_graph: bool | None = None,
) -> tuple:
    """`autograd.grad` that skips outputs without history."""
    if seeds is None:
        seeds = (None,) * len(outputs)
    pairs = [(o, s) for o, s in zip(outputs, seeds) if o is not None and o.requires_grad]
    if not pairs:
        return (None,) * len(inputs)
    differentiable, used_seeds = zip(*pairs)
    return torch.autograd.grad(
        differentiable,
        inputs,
        used_seeds,
        allow_unused=True,
        create_graph=create_graph,
        retain_graph=retain_graph,
    )


# ---------------------------------------------------------------------------------------------------- products with vectors


def vjp(func: Any, inputs: Any, v: Any = None, create_graph: Any = False, strict: Any = False) -> tuple:
    """The outputs of `func`, and the product of a vector with its Jacobian."""
    with torch.enable_grad():
        is_tuple, prepared, outputs_is_tuple, outputs = _call_preprocessed(func, inputs, "vjp", create_graph)
        _check_outputs(outputs, strict)
        vector = _vector(
            v, outputs, outputs_is_tuple, "vjp", "the user-provided function returns", create_graph
        )
    with torch.set_grad_enabled(create_graph or torch.is_grad_enabled()):
        gradients = _grad(outputs, prepared, vector, create_graph)
        product = _fill_missing(gradients, prepared, strict, create_graph, _OUTPUT, "jacobian")
    return _results(outputs, outputs_is_tuple, product, is_tuple, create_graph)


def jvp(func: Any, inputs: Any, v: Any = None, create_graph: Any = False, strict: Any = False) -> tuple:
    """The outputs of `func`, and the product of its Jacobian with a vector."""
    source = "the input to the user-provided function is"
    with torch.enable_grad():
        is_tuple, input_tensors = _tensors(inputs, "inputs", "jvp")
        prepared = _grad_preprocess(input_tensors, create_graph)
        vector = _vector(v, prepared, is_tuple, "jvp", source, create_graph)
        outputs_is_tuple, outputs = _tensors(func(*prepared), "outputs of the user-provided function", "jvp")
        _check_outputs(outputs, strict)
        seeds = tuple(torch.zeros_like(o, requires_grad=True) for o in outputs)
        gradients = _grad(outputs, prepared, seeds, create_graph=True)
        vjps = _fill_missing(gradients, prepared, strict, False, _OUTPUT, "jacobian")
    with torch.set_grad_enabled(create_graph or torch.is_grad_enabled()):
        jvps = _grad(vjps, seeds, vector, create_graph)
        product = _fill_missing(jvps, outputs, strict, create_graph, _TRICK, "jacobian")
    return _results(outputs, outputs_is_tuple, product, outputs_is_tuple, create_graph)


def vhp(func: Any, inputs: Any, v: Any = None, create_graph: Any = False, strict: Any = False) -> tuple:
    """The value of a scalar `func`, and the product of a vector with its Hessian."""
    source = "the input to the user-provided function is"
    with torch.enable_grad():
        is_tuple, input_tensors = _tensors(inputs, "inputs", "vhp")
        prepared = _grad_preprocess(input_tensors, create_graph)
        vector = _vector(v, prepared, is_tuple, "vhp", source, create_graph)
        outputs_is_tuple, outputs = _tensors(func(*prepared), "outputs of the user-provided function", "vhp")
        _single(outputs, outputs_is_tuple, "vhp")
        _check_outputs(outputs, strict)
        first = _fill_missing(
            _grad(outputs, prepared, create_graph=True), prepared, strict, False, _OUTPUT, "jacobian"
        )
        _check_jacobian(first, strict)
    with torch.set_grad_enabled(create_graph or torch.is_grad_enabled()):
        second = _grad(first, prepared, vector, create_graph)
        product = _fill_missing(second, prepared, strict, create_graph, _JACOBIAN, "hessian")
    return _results(outputs, outputs_is_tuple, product, is_tuple, create_graph)


def hvp(func: Any, inputs: Any, v: Any = None, create_graph: Any = False, strict: Any = False) -> tuple:
    """The value of a scalar `func`, and the product of its Hessian with a vector."""
    source = "the input to the user-provided function is"
    with torch.enable_grad():
        is_tuple, input_tensors = _tensors(inputs, "inputs", "hvp")
        prepared = _grad_preprocess(input_tensors, create_graph)
        vector = _vector(v, prepared, is_tuple, "hvp", source, create_graph)
        outputs_is_tuple, outputs = _tensors(func(*prepared), "outputs of the user-provided function", "hvp")
        _single(outputs, outputs_is_tuple, "hvp")
        _check_outputs(outputs, strict)
        first = _fill_missing(
            _grad(outputs, prepared, create_graph=True), prepared, strict, False, _OUTPUT, "jacobian"
        )
        _check_jacobian(first, strict)
        seeds = tuple(torch.zeros_like(x, requires_grad=True) for x in prepared)
        second = _grad(first, prepared, seeds, create_graph=True)
        vjps = _fill_missing(second, prepared, strict, False, _JACOBIAN, "hessian")
    with torch.set_grad_enabled(create_graph or torch.is_grad_enabled()):
        jvps = _grad(vjps, seeds, vector, create_graph)
        product = _fill_missing(jvps, prepared, strict, create_graph, _HESSIAN_TRICK, "hessian")
    return _results(outputs, outputs_is_tuple, product, is_tuple, create_graph)


def _results(
    outputs: tuple, outputs_is_tuple: bool, product: tuple, product_tuple: bool, create_graph: bool
) -> tuple:
    return (
        _tuple_postprocess(_grad_postprocess(outputs, create_graph), outputs_is_tuple),
        _tuple_postprocess(_grad_postprocess(product, create_graph), product_tuple),
    )


# ---------------------------------------------------------------------------------------------------- whole matrices


def jacobian(
    func: Any,
    inputs: Any,
    create_graph: Any = False,
    strict: Any = False,
    vectorize: Any = False,
    strategy: Any = "reverse-mode",
) -> Any:
    """The Jacobian of `func`: for each output and input a tensor of the output's shape followed by the input's."""
    if strategy not in _STRATEGIES:
        raise AssertionError(
            'Expected strategy to be either "forward-mode" or "reverse-mode". Hint: If your function has more outputs than inputs, '
            '"forward-mode" tends to be more performant. Otherwise, prefer to use "reverse-mode".'
        )
    if strategy == "forward-mode":
        _check_forward(create_graph, strict, vectorize)
        return _forward_jacobian(func, inputs)
    with torch.enable_grad():
        is_tuple, prepared, outputs_is_tuple, outputs = _call_preprocessed(
            func, inputs, "jacobian", create_graph
        )
        _check_outputs(outputs, strict)
        if vectorize and strict:
            raise RuntimeError(
                "torch.autograd.functional.jacobian: `strict=True` and `vectorized=True` are not supported together. Please either set "
                "`strict=False` or `vectorize=False`."
            )
        rows = tuple(
            _rows(output, index, prepared, create_graph, strict) for index, output in enumerate(outputs)
        )
    rows = _grad_postprocess(rows, create_graph)
    return _tuple_postprocess(tuple(_tuple_postprocess(row, is_tuple) for row in rows), outputs_is_tuple)


def _rows(output: Any, output_index: int, inputs: tuple, create_graph: bool, strict: bool) -> tuple:
    """The part of a Jacobian that belongs to one output: one backward pass per element."""
    parts: list[list] = [[] for _ in inputs]
    for element in range(output.numel()):
        gradients = _grad(
            (output.reshape(-1)[element],), inputs, create_graph=create_graph, retain_graph=True
        )
        for column, (part, gradient, x) in enumerate(zip(parts, gradients, inputs)):
            if gradient is not None:
                if strict and create_graph and not gradient.requires_grad:
                    raise RuntimeError(  # as in torch, the index is that of the output
                        f"The jacobian of the user-provided function is independent of input {output_index}.{_STRICT} when "
                        "create_graph=True."
                    )
                part.append(gradient)
                continue
            if strict:
                raise RuntimeError(
                    f"Output {output_index} of the user-provided function is independent of input {column}.{_STRICT}."
                )
            part.append(torch.zeros_like(x))
    return tuple(_stacked(part, output, x) for part, x in zip(parts, inputs))


def _stacked(rows: list, output: Any, x: Any) -> Any:
    if not rows:
        return x.new_zeros(output.size() + x.size())
    return torch.stack(rows, dim=0).view(output.size() + x.size())


def _check_forward(create_graph: bool, strict: bool, vectorize: bool) -> None:
    name = "torch.autograd.functional.jacobian"
    if create_graph:
        raise NotImplementedError(
            f'{name}: `create_graph=True` and `strategy="forward-mode"` are not supported together (yet). Please either set '
            '`create_graph=False` or `strategy="reverse-mode"`.'
        )
    if strict:
        raise RuntimeError(
            f'{name}: `strict=True` and `strategy="forward-mode"` are not supported together (yet). Please either set `strict=False` '
            'or `strategy="reverse-mode"`.'
        )
    if not vectorize:
        raise NotImplementedError(
            "Computing Jacobian using forward-AD or forward-over-reverse Hessian isonly implemented for `vectorize=True`."
        )


def _forward_jacobian(func: Any, inputs: Any) -> Any:
    """A Jacobian by columns: one product with a unit vector for each element of the inputs."""
    is_tuple, input_tensors = _tensors(inputs, "inputs", "jacobian")
    with torch.enable_grad():
        prepared = tuple(x.detach().requires_grad_(True) for x in input_tensors)
        outputs_is_tuple, outputs = _tensors(
            func(*prepared), "outputs of the user-provided function", "jacobian"
        )
        seeds = tuple(torch.zeros_like(o, requires_grad=True) for o in outputs)
        vjps = _grad(outputs, prepared, seeds, create_graph=True)
    parts: list[list] = [[] for _ in outputs]
    for x, vjp in zip(prepared, vjps):
        columns: list[list] = [[] for _ in outputs]
        unit = torch.zeros_like(x, memory_format=torch.contiguous_format).detach()
        flat = unit.view(-1)
        for number in range(x.numel()):
            flat[number] = 1
            jvps = _grad((vjp,), seeds, (unit.clone(),), retain_graph=True)
            flat[number] = 0
            for column, jvp_part, output in zip(columns, jvps, outputs):
                column.append(torch.zeros_like(output) if jvp_part is None else jvp_part)
        for part, column, output in zip(parts, columns, outputs):
            matrix = torch.stack(column, -1) if column else output.new_zeros(*output.shape, 0)
            part.append(matrix.reshape(output.size() + x.size()).detach())
    rows = [part if is_tuple else part[0] for part in parts]
    return rows if outputs_is_tuple else rows[0]


def hessian(
    func: Any,
    inputs: Any,
    create_graph: Any = False,
    strict: Any = False,
    vectorize: Any = False,
    outer_jacobian_strategy: Any = "reverse-mode",
) -> Any:
    """The Hessian of a scalar `func`: for each pair of inputs a tensor with the first one's shape, then the
    second's.
    """
    is_tuple, input_tensors = _tensors(inputs, "inputs", "hessian")
    if outer_jacobian_strategy not in _STRATEGIES:
        raise AssertionError('Expected strategy to be either "forward-mode" or "reverse-mode".')

    def scalar(*point: Any) -> Any:
        outputs_is_tuple, outputs = _tensors(func(*point), "outputs of the user-provided function", "hessian")
        _single(outputs, outputs_is_tuple, "hessian")
        _check_outputs(outputs, strict)
        return outputs[0].squeeze()

    def gradient(*point: Any) -> Any:
        if outer_jacobian_strategy == "forward-mode":
            point = tuple(x.requires_grad_(True) for x in point)
        rows = jacobian(scalar, point, create_graph=True)
        _check_jacobian(rows, strict)
        return rows

    result = jacobian(
        gradient,
        input_tensors,
        create_graph=create_graph,
        strict=strict,
        vectorize=vectorize,
        strategy=outer_jacobian_strategy,
    )
    return result if is_tuple else result[0][0]
