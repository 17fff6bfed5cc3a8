"""Calls with factors before tensors, as torch still takes them: the numbers and torch's warning."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import mindtorch_v2 as torch
from mindtorch_v2 import _deprecated_signatures

A = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
B = torch.tensor([[5.0, 6.0], [7.0, 8.0]])
V = torch.tensor([1.0, 2.0])
BATCH = B[None]

PRODUCTS: dict[str, tuple[torch.Tensor, torch.Tensor, torch.Tensor]] = {
    "addmm": (A, B, B),
    "addmv": (V, B, V),
    "addr": (A, V, V),
    "addbmm": (A, BATCH, BATCH),
    "baddbmm": (A[None], BATCH, BATCH),
}


@pytest.fixture(autouse=True)
def _warned() -> Iterator[None]:
    """Every test is the first call of a process."""
    before, _deprecated_signatures._State.warned = _deprecated_signatures._State.warned, False
    yield
    _deprecated_signatures._State.warned = before


def _warning(call: Callable[[], Any]) -> tuple[Any, str]:
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        result = call()
    assert [w.category for w in seen] == [UserWarning]
    assert seen[0].filename == __file__
    return result, str(seen[0].message)


@pytest.mark.parametrize("name", PRODUCTS)
@pytest.mark.parametrize("factors", [{"beta": 2}, {"beta": 2, "alpha": 3}], ids=["beta", "beta and alpha"])
def test_a_product_takes_its_factors_first(name: str, factors: dict[str, int]) -> None:
    x, left, right = PRODUCTS[name]
    numbers = list(factors.values())
    expected = getattr(torch, name)(x, left, right, **factors)
    for call in (
        lambda: getattr(torch, name)(numbers[0], x, *numbers[1:], left, right),
        lambda: getattr(torch, name)(numbers[0], x, *numbers[1:], left, right, out=torch.empty(0)),
        lambda: getattr(x, name)(*numbers, left, right),
        lambda: getattr(x.clone(), name + "_")(*numbers, left, right),
    ):
        _deprecated_signatures._State.warned = False
        assert torch.equal(_warning(call)[0], expected)


@pytest.mark.parametrize(
    ("name", "factor", "tensors"),
    [
        ("add", "alpha", (B,)),
        ("sub", "alpha", (B,)),
        ("addcmul", "value", (B, B)),
        ("addcdiv", "value", (B, B)),
    ],
)
def test_an_elementwise_op_takes_its_factor_second(name: str, factor: str, tensors: tuple) -> None:
    expected = getattr(torch, name)(A, *tensors, **{factor: 2})
    for call in (
        lambda: getattr(torch, name)(A, 2, *tensors),
        lambda: getattr(torch, name)(A, torch.tensor(2.0), *tensors),
        lambda: getattr(torch, name)(A, 2, *tensors, out=torch.empty(0)),
        lambda: getattr(A, name)(2, *tensors),
        lambda: getattr(A.clone(), name + "_")(2, *tensors),
    ):
        _deprecated_signatures._State.warned = False
        assert torch.equal(_warning(call)[0], expected)


def test_gradients_reach_the_tensors_of_such_a_call() -> None:
    x, y = A.clone().requires_grad_(), B.clone().requires_grad_()
    _warning(lambda: x.add(3, y))[0].sum().backward()
    assert (x.grad.tolist(), y.grad.tolist()) == ([[1.0, 1.0], [1.0, 1.0]], [[3.0, 3.0], [3.0, 3.0]])


def test_the_warning_is_torchs() -> None:
    factors = "Number beta = 1, Number alpha = 1"
    texts: list[tuple[Callable[[], Any], str, list[str]]] = [
        (
            lambda: A.clone().add_(2, B),
            "add_(Number alpha, Tensor other)",
            ["add_(Tensor other, *, Number alpha = 1)"],
        ),
        (
            lambda: torch.addcmul(A, 2, B, B),
            "addcmul(Tensor input, Number value, Tensor tensor1, Tensor tensor2, *, Tensor out = None)",
            ["addcmul(Tensor input, Tensor tensor1, Tensor tensor2, *, Number value = 1, Tensor out = None)"],
        ),
        (
            lambda: A.addr(2, 3, V, V),
            "addr(Number beta, Number alpha, Tensor vec1, Tensor vec2)",
            ["addr(Tensor vec1, Tensor vec2, *, Number beta = 1, Number alpha = 1)"],
        ),
        (
            lambda: torch.addmm(2, A, 3, B, B),
            "addmm(Number beta, Tensor input, Number alpha, Tensor mat1, Tensor mat2, *, Tensor out = None)",
            [
                f"addmm(Tensor input, Tensor mat1, Tensor mat2, {dtype}*, {factors}, Tensor out = None)"
                for dtype in ("", "torch.dtype out_dtype, ")
            ],
        ),
    ]
    for call, old, new in texts:
        name = old.partition("(")[0]
        lines = [f"This overload of {name} is deprecated:", f"\t{old}"]
        lines += ["Consider using one of the following signatures instead:", *[f"\t{line}" for line in new]]
        _deprecated_signatures._State.warned = False
        assert _warning(call)[1] == "\n".join(lines)


def test_the_warning_comes_once_unless_warnings_are_always_wanted() -> None:
    _warning(lambda: A.add(2, B))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        A.add(2, B)
    torch.set_warn_always(True)
    try:
        _warning(lambda: A.add(2, B))
    finally:
        torch.set_warn_always(False)


@pytest.mark.parametrize(
    "call", [lambda: torch.add(A, B, 2), lambda: A.add_(B, 2), lambda: torch.addmm(A, B, B, 2)]
)
def test_factors_behind_tensors_are_refused(call: Callable[[], Any]) -> None:
    with pytest.raises(TypeError, match="positional arguments"):
        call()
