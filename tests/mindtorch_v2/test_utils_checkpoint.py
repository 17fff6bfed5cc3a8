"""torch.utils.checkpoint: what is kept, recomputed, repeated and found out, against torch."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import pytest
import recorded_cases

import mindtorch_v2 as torch
from mindtorch_v2.utils.checkpoint import checkpoint


@pytest.mark.parametrize(("module", "case"), recorded_cases.recorded("checkpoint_cases"))
def test_a_case_shows_what_torch_showed(module: str, case: str) -> None:
    recorded_cases.check(module, case)


@pytest.mark.parametrize("use_reentrant", [True, False])
def test_a_checkpoint_keeps_nothing_of_what_it_computes(use_reentrant: bool) -> None:
    between: list[Any] = []

    def function(x: Any) -> Any:
        y = x.exp()
        between.append(weakref.ref(y))
        return y.sin()

    out = checkpoint(function, torch.ones(4, requires_grad=True), use_reentrant=use_reentrant)
    gc.collect()
    assert [reference() for reference in between] == [None]
    out.sum().backward()
    gc.collect()
    assert [reference() for reference in between] == [None, None]


def test_an_outer_checkpoint_drops_the_inputs_of_an_inner_one() -> None:
    between: list[Any] = []

    def outer(x: Any) -> Any:
        y = x * 2
        between.append(weakref.ref(y))
        return checkpoint(lambda y: y.exp().sin(), y, use_reentrant=False)

    x = torch.ones(4, requires_grad=True)
    out = checkpoint(outer, x, use_reentrant=False)
    gc.collect()
    assert between[0]() is None
    out.sum().backward()
    expected = torch.ones(4, requires_grad=True)
    (expected * 2).exp().sin().sum().backward()
    assert torch.equal(x.grad, expected.grad)


def test_checkpoints_repeat_autocast() -> None:
    seen: list[Any] = []

    def function(x: Any) -> Any:
        y = x @ x
        seen.append(y.dtype)
        return y

    x = torch.ones(2, 2, requires_grad=True)
    with torch.amp.autocast("cpu", dtype=torch.bfloat16):
        out = checkpoint(function, x, use_reentrant=False, early_stop=False)
    out.sum().backward()
    assert seen == [torch.bfloat16, torch.bfloat16]


def test_an_input_changed_in_place_after_a_checkpoint_is_found_out() -> None:
    x = torch.ones(2, requires_grad=True).clone()
    out = checkpoint(lambda x: x.sin().exp(), x, use_reentrant=False)
    x.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        out.sum().backward()


def test_debug_lists_the_ops_of_both_runs() -> None:
    runs: list[int] = []

    def function(x: Any) -> Any:
        runs.append(1)
        return (x.sin() if len(runs) == 1 else x).cos()

    out = checkpoint(function, torch.ones(2, requires_grad=True), use_reentrant=False, debug=True)
    with pytest.raises(RuntimeError, match="different number of tensors") as caught:
        out.sum().backward()
    first, again = str(caught.value).split("Operators that ran in the ")[1:]
    assert first.split() == ["original", "forward:", "aten::sin([2])", "aten::cos([2])"]
    assert again.split() == ["recomputation:", "aten::cos([2])"]
