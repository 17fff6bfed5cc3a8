"""The rows of all row files as calls: each gives text that describes its results to the last bit, gradients and errors included.

Tests call them with and without a profiler; what they give must be the same.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import expression_rows
import gradient_rows
import nn_rows
import numpy as np
import optim_runs
import profile_snippets
import random_rows
import registry_calls

import mindtorch_v2 as torch

EXPRESSIONS = (
    "views", "indexing", "join", "elementwise", "reduction", "linear_algebra", "nn_op", "padding", "resampling", "grid", "folding",
    "special", "ctc", "top_level",
)  # fmt: skip
LAYERS = (
    "F.embedding_bag(i, x, o, mode='sum', padding_idx=1)",
    "F.embedding_bag(i, x, o, mode='mean')",
    "F.embedding_bag(i, x, o, mode='max')",
    "torch.cdist(x, x * 2, p=3.0)",
    "torch.cdist(x.repeat(6, 1), x * 2)",
    "F.pdist(x)",
    "F.multi_margin_loss(x, i[:5] % 4, p=2)",
    "F.multilabel_margin_loss(x, torch.tensor([[0, 2, -1, 1]] * 5))",
    "F.soft_margin_loss(x, x.detach().sign())",
    "F.binary_cross_entropy_with_logits(x, x.detach().sigmoid(), reduction='none')",
    "F.scaled_dot_product_attention(x[None], x[None], x[None], is_causal=True)",
    "F.bilinear(x, x * 2, torch.ones(2, 4, 4))",
    "torch._weight_norm(x, torch.ones(5, 1), 0)",
)
UNINITIALISED = re.compile(r"(torch\.empty_like|x\.new_empty)\(")


def calls() -> dict[str, Callable[[], str]]:
    """By group and text of the row, a function that runs it."""
    found: dict[str, Callable[[], str]] = {}

    def add(name: str, run: Callable[..., Any], *arguments: Any) -> None:
        while name in found:
            name += "'"
        found[name] = partial(_text, run, *arguments)

    for name in EXPRESSIONS:
        for setup, line in expression_rows.rows(name):
            add(f"{name}: {line}", expression_rows.run, torch, setup, line)
    for name in profile_snippets.FILES:
        for setup, code in profile_snippets.rows(name):
            add(f"{name}: {setup} ;; {code}", _snippet, setup, code)
    for line in LAYERS:
        add(f"layer: {line}", _layer, line)
    for row in gradient_rows.ROWS:
        add(f"gradient: {' | '.join(row)}", _gradients, row)
    for line in nn_rows.LAYERS:
        add(f"module: {line}", nn_rows.run_layer, torch, line, registry_calls.described)
    for line in nn_rows.FUNCTIONS:
        add(f"function: {line}", nn_rows.run_function, torch, line, registry_calls.described)
    for expression, row in optim_runs.OPTIMIZERS.items():
        add(f"optimizer: {expression}", optim_runs.trajectory, torch, expression, row)
    for row in random_rows.rows():
        add(f"random: {row}", random_rows.evaluate, row, torch)
    return found


def _text(run: Callable[..., Any], *arguments: Any) -> str:
    """What a row gives, or its error; its warnings; and the next random number, which tells how many were drawn."""
    torch.manual_seed(0)
    with warnings.catch_warnings(record=True) as caught, np.errstate(all="warn"):
        warnings.simplefilter("always")
        try:
            result = repr(run(*arguments))
        except Exception as error:
            result = f"{type(error).__name__}: {error}"
        finally:
            torch.set_grad_enabled(True)
            torch.set_default_dtype(torch.float32)
    shown = [f"{each.category.__name__}: {each.message}" for each in caught]
    return f"{result} {shown} {torch.rand((), dtype=torch.float64).item()!r}"


def _described(value: Any, numbers: bool = True) -> Any:
    """A result as `expression_rows` describes it; a sparse tensor by its parts; `numbers`: with its values."""
    if isinstance(value, torch.Tensor):
        if value.is_sparse:
            return [_described(value._indices()), _described(value._values())]
        if value.device.type == "meta" or not numbers:
            return [list(value.shape), list(value.stride()), str(value.dtype)]
    if isinstance(value, (tuple, list)):
        return [_described(part) for part in value]
    return expression_rows.described(torch, value) if isinstance(value, torch.Tensor) else None


def _snippet(setup: str, code: str) -> list[Any]:
    """What the statements of a snippet give, what it leaves in variables, and the gradients of leaves."""

    def T(*shape: int, rg: bool = False, seed: int = 0, low: float = -1.0, high: float = 1.0) -> Any:
        values = np.random.default_rng(seed).uniform(low, high, shape)  # matrices are far from singular
        return torch.tensor(values.astype(np.float32), requires_grad=rg)

    space = {**profile_snippets.names(torch), "T": T}
    exec(setup, space)
    found = []
    for statement in map(str.strip, code.replace("\\n", "\n").split(";")):
        try:
            expression = compile(statement, "snippet", "eval")
        except SyntaxError:
            exec(statement, space)
        else:
            found.append(_described(eval(expression, space), numbers=not UNINITIALISED.match(statement)))
    for _, value in sorted(space.items()):
        for tensor in value.parameters() if isinstance(value, torch.nn.Module) else [value]:
            if isinstance(tensor, torch.Tensor):
                found += [_described(tensor), _described(tensor.grad if tensor.is_leaf else None)]
    return found


def _layer(line: str) -> Any:
    """What an expression of float32 tensors gives, and the gradient of x."""
    x = (torch.arange(20.0).reshape(5, 4).sin() * 2).requires_grad_()
    indices, offsets = torch.tensor([0, 3, 1, 4, 2, 2]), torch.tensor([0, 2, 5])
    result = eval(line, {**profile_snippets.names(torch), "x": x, "i": indices, "o": offsets})
    (result * torch.arange(1.0, result.numel() + 1).reshape(result.shape)).sum().backward()
    return _described([result, x.grad])


def _gradients(row: tuple[str, ...]) -> list[Any]:
    """What the op of a row gives, its derivatives and, if it has some, second derivatives."""
    function, inputs = gradient_rows.sample(row)
    result = function(*inputs)
    outputs = [y for y in (result if isinstance(result, (tuple, list)) else [result]) if y.requires_grad]
    weights = [torch.randn_like(y).requires_grad_() for y in outputs]
    twice = "once" not in row
    first = torch.autograd.grad(outputs, inputs, weights, create_graph=twice, allow_unused=True)
    found = [_described(result), _described(first)]
    sources = [g for g in first if g is not None and g.requires_grad]
    if sources and twice:
        variables = [*inputs, *weights]
        second = torch.autograd.grad(
            sources, variables, [torch.randn_like(g) for g in sources], allow_unused=True
        )
        found.append(_described(second))
    return found
