"""Writing to memory that is read from: what overlaps in part is refused, what is the same or apart is not."""

from __future__ import annotations

from typing import Any

import pytest

import mindtorch_v2 as torch

REFUSED = "some elements of the input tensor and the written-to tensor refer to a single memory location"


def _shifted() -> tuple[Any, Any]:
    memory = torch.arange(6.0)
    return memory[:-1], memory[1:]


@pytest.mark.parametrize(
    "name",
    (
        "add_ mul_ pow_ clamp_min_ clamp_max_ atan2_ fmod_ remainder_ eq_ lt_ hypot_ copysign_ logical_and_ "
        "floor_divide_ xlogy_"
    ).split(),
)
def test_an_operand_that_overlaps_in_part_is_refused(name: str) -> None:
    written, read = _shifted()
    with pytest.raises(RuntimeError, match=REFUSED):
        getattr(written, name)(read)


def test_operands_of_ternary_ops_are_asked_too() -> None:
    for write in (
        lambda a, b: a.clamp_(b, b + 1),
        lambda a, b: a.lerp_(b, 0.5),
        lambda a, b: a.addcmul_(b, b),
        lambda a, b: a.addcdiv_(b, b),
        lambda a, b: a.index_add_(0, torch.arange(5), b),
    ):
        with pytest.raises(RuntimeError, match=REFUSED):
            write(*_shifted())


@pytest.mark.parametrize(
    "write",
    [
        lambda out, x: torch.add(x, x, out=out),
        lambda out, x: torch.exp(x, out=out),
        lambda out, x: torch.clamp(x, 0, 3, out=out),
        lambda out, x: torch.pow(x, 2, out=out),
        lambda out, x: torch.lerp(x, x, 0.5, out=out),
        lambda out, x: torch.where(x > 0, x, x, out=out),
        lambda out, x: torch.cumsum(x, 0, out=out),
    ],
)
def test_out_may_not_overlap_in_part_with_what_is_read(write: Any) -> None:
    out, x = _shifted()
    with pytest.raises(RuntimeError, match=REFUSED):
        write(out, x)


def test_the_same_or_other_elements_may_be_written() -> None:
    x = torch.arange(6.0)
    assert x.add_(x).tolist() == [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]
    assert torch.mul(x, x, out=x).tolist() == [0.0, 4.0, 16.0, 36.0, 64.0, 100.0]
    assert x[:3].fmod_(x[3:]).tolist() == [0.0, 4.0, 16.0]
    assert x[:3].masked_fill_(torch.ones(3, dtype=torch.bool), x[0]).tolist() == [0.0, 0.0, 0.0]


def test_out_asks_for_no_gradients() -> None:
    x = torch.ones(3, requires_grad=True)
    for write in (torch.sum, torch.mean, torch.prod):
        with pytest.raises(RuntimeError, match="don't support automatic differentiation"):
            write(x, 0, out=torch.empty(()))


def test_running_statistics_that_share_memory_are_refused() -> None:
    x, expanded = torch.ones(3, 2, 2), torch.zeros(1).expand(2)
    with pytest.raises(RuntimeError, match="more than one element of the written-to tensor"):
        torch.nn.functional.batch_norm(x, expanded, torch.ones(2), training=True)
