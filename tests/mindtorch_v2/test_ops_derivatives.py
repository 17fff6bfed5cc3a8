"""Every derivative against finite differences, once and twice; and a row for every op that has one."""

from __future__ import annotations

from typing import Any

import pytest
from gradient_rows import ROWS, WITHOUT_ROW, sample

import mindtorch_v2 as torch
from mindtorch_v2 import _dispatch

# NumPy speaks of divisions by zero inside the package; outside of tests that is not shown
pytestmark = [
    pytest.mark.filterwarnings("ignore::RuntimeWarning"),
    pytest.mark.filterwarnings("ignore:index_reduce"),
]


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
        if op.inplace_of is None
        and not op.nondifferentiable
        and (op.joint or any(rule is not None for rule in op.rules.values()))
    }
    assert sorted(with_derivative - reached - set(WITHOUT_ROW)) == []
    assert sorted(set(WITHOUT_ROW) - with_derivative) == [], (
        "listed as exceptions, but they have no derivative"
    )


@pytest.mark.parametrize(
    "norm",
    [
        lambda x: torch.nn.functional.layer_norm(x, (4, 3)),
        lambda x: torch.nn.functional.batch_norm(x, None, None, torch.ones(4).double(), None, True),
        lambda x: torch.nn.functional.group_norm(x, 2),
    ],
    ids=["layer", "batch", "group"],
)
def test_third_derivatives_of_norms_pass_through_their_statistics(norm: Any) -> None:
    torch.manual_seed(0)
    x, weight = (torch.randn(2, 4, 3, dtype=torch.float64) for _ in range(2))

    def gradient(x: Any) -> Any:
        return torch.autograd.grad((norm(x) * weight).sum(), x, create_graph=True)[0]

    x.requires_grad_()
    assert torch.autograd.gradcheck(gradient, (x,), fast_mode=True)
    assert torch.autograd.gradgradcheck(gradient, (x,), fast_mode=True)
