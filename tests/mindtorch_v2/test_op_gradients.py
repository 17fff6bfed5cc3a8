"""Every derivative against finite differences, once and twice; and a row for every op that has one."""

from __future__ import annotations

import sys
import zlib
from pathlib import Path
from typing import Any

import pytest

import mindtorch_v2 as torch
from mindtorch_v2 import _dispatch, nn
from mindtorch_v2.nn import functional as F

sys.path.insert(0, str(Path(__file__).parent / "facts"))
from gradient_rows import ROWS, WITHOUT_ROW

# NumPy speaks of divisions by zero inside the package; outside of tests that is not shown
pytestmark = [
    pytest.mark.filterwarnings("ignore::RuntimeWarning"),
    pytest.mark.filterwarnings("ignore:index_reduce"),
]

D = torch.float64


def _distinct(shape: tuple) -> torch.Tensor:
    """Numbers whose distances are far greater than the steps of the finite differences."""
    count = torch.Size(shape).numel()
    return (torch.randperm(count).to(D) - count / 2 + 0.3).reshape(shape) * 0.3


KINDS: dict[str, Any] = {
    "n": lambda shape: torch.randn(shape, dtype=D),
    "p": lambda shape: torch.rand(shape, dtype=D) + 0.3,
    "u": lambda shape: torch.rand(shape, dtype=D) * 1.8 - 0.9,
    "d": _distinct,
    "a": lambda shape: (torch.rand(shape, dtype=D) + 0.3) * torch.randn(shape).sign().to(D),
    "s": lambda shape: (
        torch.randn(shape * 2, dtype=D) * 0.1 + torch.diag(torch.arange(1.0, shape[0] + 1).to(D))
    ),
    "c": lambda shape: torch.randn(shape, dtype=torch.complex128),
}


def index(shape: tuple, limit: int) -> torch.Tensor:
    """Any places below `limit`."""
    return torch.randint(0, limit, shape, generator=torch.Generator().manual_seed(1))


def places(shape: tuple, limit: int) -> torch.Tensor:
    """Places below `limit`, none twice in a row of the last dimension."""
    rows = torch.Size(shape[:-1]).numel()
    made = [
        torch.randperm(limit, generator=torch.Generator().manual_seed(i))[: shape[-1]] for i in range(rows)
    ]
    return torch.stack(made).reshape(shape)


def put_row(x: torch.Tensor, row: torch.Tensor) -> torch.Tensor:
    """A write through a view."""
    x[1] = row
    x[:, 0] *= 2
    return x


def cell(layer: Any, x: torch.Tensor) -> torch.Tensor:
    """A recurrent layer with its own weights, the same at each call."""
    for number, parameter in enumerate(layer.parameters()):
        values = torch.randn(parameter.shape, generator=torch.Generator().manual_seed(number))
        parameter.data = values.to(D) * 0.5
    return layer.double()(x)[0]


SPACE = {
    "torch": torch, "F": F, "nn": nn, "I": index, "P": places, "put_row": put_row, "cell": cell,
    "op": lambda name: _dispatch.OPS[name].entry,
}  # fmt: skip


def sample(row: tuple) -> tuple[Any, tuple]:
    """The function of a row and its inputs, the same at each call."""
    torch.manual_seed(zlib.crc32(row[0].encode()))
    kinds = [kind for kind in row[1:] if kind != "once"]
    inputs = tuple(KINDS[kind[0]](tuple(map(int, kind[1:]))).requires_grad_() for kind in kinds)
    code = compile(f"lambda {', '.join('xyzw'[: len(inputs)])}: {row[0]}", row[0], "eval")
    function = eval(code, SPACE)

    def seeded(*given: Any) -> Any:
        torch.manual_seed(0)
        return function(*given)

    return seeded, inputs


@pytest.mark.parametrize("row", ROWS, ids=[f"{number} {row[0]}" for number, row in enumerate(ROWS)])
def test_the_derivative_is_what_differences_give(row: tuple) -> None:
    function, inputs = sample(row)
    assert torch.autograd.gradcheck(function, inputs, fast_mode=True)
    if "once" not in row:
        torch.manual_seed(1)
        assert torch.autograd.gradgradcheck(function, inputs, fast_mode=True, atol=1e-4)


def _reached(outputs: Any) -> set[str]:
    """The ops whose nodes stand behind these tensors."""
    waiting = [o.grad_fn for o in outputs if o is not None and o.grad_fn is not None]
    seen = set(waiting)
    names = set()
    while waiting:
        node = waiting.pop()
        for inner in (node, getattr(node, "fn", None)):
            if hasattr(type(inner), "op"):
                names.add(type(inner).op.full_name)
        for following, _ in node.next_functions:
            if following is not None and following not in seen:
                seen.add(following)
                waiting.append(following)
    return names


def test_every_op_with_a_derivative_stands_in_a_row() -> None:
    reached: set[str] = set()
    for row in ROWS:
        function, inputs = sample(row)
        outputs = function(*inputs)
        outputs = [
            o for o in (outputs if isinstance(outputs, (tuple, list)) else (outputs,)) if o.requires_grad
        ]
        reached |= _reached(outputs)
        if "once" in row:
            continue
        seeds = [torch.randn_like(o).requires_grad_() for o in outputs]
        reached |= _reached(torch.autograd.grad(outputs, inputs, seeds, create_graph=True, allow_unused=True))
    with_derivative = {
        name
        for name, op in _dispatch.OPS.items()
        if op.inplace_of is None and (op.joint or any(rule is not None for rule in op.rules.values()))
    }
    assert sorted(with_derivative - reached - set(WITHOUT_ROW)) == []
    assert sorted(set(WITHOUT_ROW) - with_derivative) == [], (
        "listed as exceptions, but they have no derivative"
    )
