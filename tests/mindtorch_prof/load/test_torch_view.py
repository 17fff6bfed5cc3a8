"""Tests of mindtorch_prof.load.torch_view: ops that torch shows inside others."""

from __future__ import annotations

from trace_builder import make_trace

from mindtorch_prof.load.torch_view import with_children
from mindtorch_prof.synthetic_rows import SyntheticOp

CHILD = SyntheticOp("aten::empty", "", 1, None, False, False)


def shown(*events: tuple[str, int, int]) -> list[str]:
    trace = make_trace(*events)
    contents = {(number, -1): [CHILD] for number, name in enumerate(trace.names) if name == "aten::detach"}
    view = with_children(trace, contents)
    return [view.names[n] for n in view.name]


def test_children_stand_after_their_op() -> None:
    assert shown(("aten::detach", 0, 10), ("aten::mul", 20, 30)) == [
        "aten::detach",
        "aten::empty",
        "aten::mul",
    ]


def test_a_detach_inside_an_op_of_a_library_contains_nothing() -> None:
    assert shown(("library::op", 0, 10), ("aten::detach", 2, 3)) == ["library::op", "aten::detach"]


def test_a_trace_without_events_stays_as_it_is() -> None:
    assert shown() == []
