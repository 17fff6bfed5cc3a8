"""A call of every op of the registry: an op in, arguments that it accepts out, chosen by the types in its schema.

Rows of text cannot keep up with a registry of a thousand ops. Here each op is tried with a few sets of arguments, and the first that it
accepts is its call. Its results, what it writes, its `out=` form and its gradients are described to the last bit.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

import mindtorch_v2 as torch
from mindtorch_v2 import _dispatch

# tensors to try for the first tensor argument; further ones are like it
_TENSORS: dict[str, Callable[[int], Any]] = {
    "matrix": lambda seed: _uniform((3, 4), seed),
    "square": lambda seed: _uniform((4, 4), seed) + 4 * torch.eye(4),
    "integers": lambda seed: torch.tensor(np.random.default_rng(seed).integers(1, 4, (3, 4))),
    "truths": lambda seed: _uniform((3, 4), seed) > 0.5,
    "vector": lambda seed: _uniform((4,), seed),
    "batch": lambda seed: _uniform((2, 3, 4), seed),
    "complex": lambda seed: torch.complex(_uniform((3, 4), seed), _uniform((3, 4), seed + 50)),
    "images": lambda seed: _uniform((2, 3, 4, 5), seed),
    "volumes": lambda seed: _uniform((2, 3, 4, 4, 4), seed),
    "bytes": lambda seed: torch.tensor(np.random.default_rng(seed).integers(1, 4, (3, 4)).astype(np.uint8)),
    "few": lambda seed: torch.tensor([2, 0, 1]),
    "scalar": lambda seed: torch.tensor(0.5),
    "sparse": lambda seed: _uniform((3, 4), seed).to_sparse(),
}

# ops whose arguments have to fit together in a way that their types do not tell
ROWS = (
    "torch._amp_update_scale_(torch.tensor(2.0), torch.tensor(0, dtype=torch.int32), torch.tensor(0.0), 2.0, 0.5, 3)",
    "x.t().new_ones(3, 3).addbmm_(x.reshape(1, 3, 4), x.reshape(1, 4, 3))",
    "torch.ones(3).addmv_(x, torch.ones(4))",
    "torch.ones(1, 3, 3).baddbmm_(x.reshape(1, 3, 4), x.reshape(1, 4, 3))",
    "torch.arctan2(x, 2.0)",
    "torch._convolution(x[None], torch.ones(2, 3, 2), None, (1,), (0,), (1,), False, (0,), 1, False, False, True, True)",
    "torch._grouped_mm(x, torch.ones(2, 4, 2), torch.tensor([1, 3], dtype=torch.int32))",
    "x.arctan2_(2.0)",
    "torch.ops.aten._pin_memory(x)",
    "x.clip_(0.2, 0.4)",
    "torch.nn.functional.celu_(x)",
    "torch.lu_solve(torch.ones(4, 1), *torch.linalg.lu_factor(torch.ones(4, 4) + torch.eye(4)))",
    "x.scatter_(1, torch.tensor([[0, 1], [2, 0]]), torch.ones(2, 2), reduce='add')",
    "x.scatter_(1, torch.tensor([[0, 1], [2, 0]]), 2.0, reduce='multiply')",
    "torch.nn.RNN(4, 3, nonlinearity='relu')(torch.nn.utils.rnn.pack_sequence([x, x[:2]]))[0].data",
    "torch.ops.aten._batch_norm_with_update(x, None, None, torch.zeros(4), torch.ones(4), 0.1, 1e-5)",
    "torch.sparse.sum(x.to_sparse().requires_grad_()).backward()",
    "torch.sparse.sum(x.to_sparse(), 0)",
    "x.to_sparse().requires_grad_().to_dense().sum().backward()",
    "(x.to_sparse().sparse_dim(), x.to_sparse().dense_dim())",
    "torch.nn.EmbeddingBag(5, 3, sparse=True)(torch.tensor([[1, 2], [0, 4]])).sum().backward()",
    "[_one_step(torch.optim.Adam, lr=torch.tensor(0.1), fused=True), _one_step(torch.optim.AdamW, lr=torch.tensor(0.1), fused=True)]",
    "_one_step(torch.optim.Adagrad, lr=torch.tensor(0.1), fused=True)",
)


def described_row(code: str) -> list[Any]:
    """What a row of `ROWS` gives, and x afterwards."""
    torch.manual_seed(0)
    x = _uniform((3, 4), 1)
    result = eval(code, {"torch": torch, "x": x, "_one_step": _one_step})
    return [described(result), described(x)]


def _one_step(kind: Any, **options: Any) -> Any:
    parameter = torch.nn.Parameter(_uniform((3, 4), 2))
    parameter.grad = _uniform((3, 4), 3)
    kind([parameter], **options).step()
    return parameter


_NUMBERS: dict[str, tuple[Any, ...]] = {
    "Scalar": (0.5, 2),
    "float": (0.5,),
    "int": (1, 0, 2),
    "SymInt": (1, 2),
    "bool": (False, True),
    "str": ("mean", "sum"),
}
_TRIES = 400  # sets of arguments of one op


def _uniform(shape: tuple[int, ...], seed: int) -> Any:
    values = np.random.default_rng(seed).uniform(0.1, 0.9, shape)
    return torch.tensor(values.astype(np.float32))


def _values(argument: Any, tensor: Callable[[int], Any], position: int) -> list[Callable[[], Any]]:
    """Functions that make values of one argument, the likeliest first."""
    kind = argument.type.rstrip("?")
    if not argument.required:
        return [lambda: argument.default]
    if argument.kind in ("Tensor", "Tensor?"):
        return [lambda: tensor(position), lambda: torch.tensor([2, 0, 1]), lambda: _uniform((4, 3), position)]
    if argument.kind in ("Tensor[]", "Tensor?[]"):
        return [lambda: [tensor(position), tensor(position + 9)]]
    if argument.kind == "ints":
        length = argument.length or 1
        return [lambda n=n: (n,) * length for n in (1, 0, 2)] + [lambda: (3, 4), lambda: (0, 1)]
    if kind.startswith("Scalar["):
        return [lambda: [0.5, 2.0]]
    if kind.startswith("ScalarType"):
        return [lambda: torch.float64]
    return [lambda value=value: value for value in _NUMBERS.get(kind, (None,))]


def _argument_sets(op: Any) -> Iterator[Callable[[], list[Any]]]:
    arguments = [a for a in op.schema.arguments if not (a.written and a.name.startswith("out"))]
    for tensor in _TENSORS.values():
        makers = [_values(a, tensor, position) for position, a in enumerate(arguments)]
        for chosen in itertools.islice(itertools.product(*makers), _TRIES // len(_TENSORS)):
            yield lambda chosen=chosen: [make() for make in chosen]


def refused_arguments(op: Any, count: int) -> list[Callable[[], list[Any]]]:
    """Some functions that make arguments which the op refuses."""
    refused: list[Callable[[], list[Any]]] = []
    for make in _argument_sets(op):
        if len(refused) == count:
            break
        if not _is_accepted(op, make):
            refused.append(make)
    return refused


def _is_accepted(op: Any, make: Callable[[], list[Any]]) -> bool:
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            torch.manual_seed(0)
            _dispatch.call(op, tuple(make()))
    except Exception:
        return False
    return True


def accepted_arguments(op: Any) -> Callable[[], list[Any]] | None:
    """A function that makes arguments which the op accepts; None: none of those tried."""
    return next((make for make in _argument_sets(op) if _is_accepted(op, make)), None)


def described_refusal(op: Any, make: Callable[[], list[Any]]) -> Any:
    """The error of a call, which `profiled_rows` describes, and the arguments afterwards."""
    arguments = make()
    tensors = [(x, x.numel()) for value in arguments for x in _tensors(value)]
    try:
        return described(_dispatch.call(op, tuple(arguments)))
    except Exception as error:
        # An op may make its `out` larger and refuse it then, as in torch: the new elements are not initialised, nobody knows their values.
        for x, count in tensors:
            if x.numel() > count and x.device.type != "meta":
                x.detach()._array.reshape(-1)[count:] = 0
        return [type(error).__name__, str(error), described(arguments)]


def _tensors(value: Any) -> list[Any]:
    return [x for x in (value if isinstance(value, list) else [value]) if isinstance(x, torch.Tensor)]


def described_layout(op: Any, make: Callable[[], list[Any]]) -> Any:
    """What a call of an op gives that leaves memory as it finds it: all but the values."""
    return described(_dispatch.call(op, tuple(make())).to("meta"))


def described_call(op: Any, make: Callable[[], list[Any]]) -> list[Any]:
    """What a call of an op gives, and its arguments afterwards; the same of its out= form; and its first and second derivatives."""
    torch.manual_seed(0)
    arguments = make()
    result = _dispatch.call(op, tuple(arguments))
    calls = [described(result), described(arguments)]
    if op.has_out and isinstance(result, torch.Tensor):
        torch.manual_seed(0)
        out = torch.empty(0, dtype=result.dtype)
        _dispatch.call_out(op, out, tuple(make()))
        calls.append(described(out))
    return [*calls, _gradients(op, make)]


def _gradients(op: Any, make: Callable[[], list[Any]]) -> Any:
    """The gradients of all floating-point arguments and those of the sum of their squares, or the error of asking for them."""
    torch.manual_seed(0)
    arguments = [_with_gradients(value) for value in make()]
    leaves = [leaf for value in arguments for leaf in (value if isinstance(value, list) else [value])]
    if op.inplace_of is not None and isinstance(arguments[0], torch.Tensor):
        arguments[0] = arguments[0].clone()  # a leaf must not be written to
    try:
        result = _dispatch.call(op, tuple(arguments))
        outputs = [
            y for y in (result if isinstance(result, (tuple, list)) else [result]) if _differentiable(y)
        ]
        if not outputs:
            return None
        tensors = [x for x in leaves if isinstance(x, torch.Tensor) and x.requires_grad]
        grad = partial(torch.autograd.grad, allow_unused=True)
        first = grad(outputs, tensors, [torch.ones_like(y) for y in outputs], create_graph=True)
        squares = [
            (g * g.conj()).real.sum() if g.is_complex() else g.pow(2).sum()
            for g in first
            if _differentiable(g)
        ]
        second = grad(squares, tensors) if squares else ()
    except (RuntimeError, NotImplementedError, ValueError, TypeError) as error:
        return f"{type(error).__name__}: {error}"
    return described([*first, *second])


def _with_gradients(value: Any) -> Any:
    if isinstance(value, list):
        return [_with_gradients(item) for item in value]
    differentiable = isinstance(value, torch.Tensor) and (value.is_floating_point() or value.is_complex())
    return value.requires_grad_() if differentiable else value


def _differentiable(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.requires_grad and value.grad_fn is not None


def described(value: Any) -> Any:
    """A result to the last bit: shape, strides, offset, dtype, version, node and bytes of tensors; other values as text."""
    if isinstance(value, torch.Tensor):
        node = value.grad_fn.name() if value.grad_fn is not None else value.requires_grad
        if value.is_sparse:
            return ["sparse", described(value._indices()), described(value._values()), value._version, node]
        layout = [list(value.shape), list(value.stride()), str(value.dtype), value._version, node]
        if value.device.type == "meta":
            return layout
        return [*layout, value.storage_offset(), value._is_view(), value.detach()._array.tobytes()]
    if isinstance(value, (tuple, list)):
        return [described(item) for item in value]
    return repr(value)
