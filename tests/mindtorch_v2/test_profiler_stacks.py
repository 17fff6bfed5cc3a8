"""Python stacks of ops: which calls they show, what is left behind, and the folded files made from them."""

from __future__ import annotations

import sys
import threading
import weakref
from pathlib import Path
from typing import Any

import pytest

import mindtorch_v2 as torch
from mindtorch_v2.profiler import _ExperimentalConfig, profile, record_function

HERE = "test_profiler_stacks.py"


def inner(x: Any) -> Any:
    return x + x


def outer(x: Any) -> Any:
    inner(x)
    return inner(x)


def line_of(function: Any) -> str:
    return f"{HERE}({function.__code__.co_firstlineno}): {function.__code__.co_name}"


def stacks_of(prof: Any, name: str) -> list[list[str]]:
    """The part of each op's stack that is in this file, without the test itself."""
    return [
        [frame.rsplit("/", 1)[-1] for frame in event.stack if HERE in frame][:-1]
        for event in prof.events()
        if event.name == name
    ]


def calls(prof: Any) -> list[str]:
    frames = prof._finished("").trace.frames
    return [frames.names[n] for n in frames.name.tolist()]


def test_each_op_shows_the_calls_it_was_made_in_innermost_first() -> None:
    x = torch.ones(2)
    with profile(with_stack=True) as prof:
        outer(x)
    assert stacks_of(prof, "aten::add") == [[line_of(inner), line_of(outer)]] * 2


def test_two_calls_of_one_function_are_two_calls() -> None:
    x = torch.ones(2)
    with profile(with_stack=True) as prof:
        outer(x)
        inner(x)
    names = [name.rsplit("/", 1)[-1] for name in calls(prof)]
    assert names.count(line_of(inner)) == 3
    assert names.count(line_of(outer)) == 1


def test_ops_inside_ops_and_nodes_have_the_stack_of_who_called_them() -> None:
    model = torch.nn.Linear(2, 3)
    with profile(with_stack=True) as prof:
        model(torch.ones(1, 2)).sum().backward()
    addmm = next(event for event in prof.events() if event.name == "aten::addmm")
    assert addmm.stack[0].endswith(": forward")
    assert addmm.stack[1] == "nn.Module: Linear_0"
    node = next(event for event in prof.events() if event.name == "AddmmBackward0")
    assert node.stack[1].endswith(": backward")
    assert not any(
        "_dispatch" in frame or "recorder" in frame for event in prof.events() for frame in event.stack
    )


def test_modules_are_numbered_by_class_in_the_order_they_are_met() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU(), torch.nn.Linear(2, 2))
    with profile(with_stack=True) as prof:
        model(torch.ones(1, 2))
        model(torch.ones(1, 2))
    met = [name for name in calls(prof) if name.startswith("nn.Module: ")]
    once = ["nn.Module: Sequential_0", "nn.Module: Linear_0", "nn.Module: ReLU_0", "nn.Module: Linear_1"]
    assert met == once * 2


def test_with_modules_alone_shows_modules_in_the_trace_and_no_stacks() -> None:
    model = torch.nn.Linear(2, 2)
    with profile(with_modules=True) as prof:
        model(torch.ones(1, 2))
    assert calls(prof) == ["nn.Module: Linear_0"]
    assert all(event.stack == [] for event in prof.events())


def test_nothing_is_traced_without_with_stack() -> None:
    with profile() as prof:
        torch.ones(2) + 1
        assert sys.getprofile() is None
    assert calls(prof) == []
    assert all(event.stack == [] for event in prof.events())


def test_stacks_keep_no_tensor_alive() -> None:
    died: list[int] = []

    def local() -> None:
        y = torch.ones(3) * 2
        weakref.finalize(y, died.append, 1)
        y + y

    with profile(with_stack=True, record_shapes=True, profile_memory=True):
        local()
        assert died == [1]


def test_a_generator_has_the_stack_of_whoever_resumes_it() -> None:
    def numbers(x: Any) -> Any:
        while True:
            yield x + x

    def first(g: Any) -> None:
        next(g)

    def second(g: Any) -> None:
        next(g)

    running = numbers(torch.ones(2))
    with profile(with_stack=True) as prof:
        first(running)
        second(running)
    assert stacks_of(prof, "aten::add") == [
        [line_of(numbers), line_of(first)],
        [line_of(numbers), line_of(second)],
    ]


def test_a_trace_function_set_while_recording_is_not_disturbed() -> None:
    seen = []

    def trace(frame: Any, event: str, arg: Any) -> Any:
        seen.append(event)
        return trace

    before = sys.gettrace()
    x = torch.ones(2)
    with profile(with_stack=True) as prof:
        inner(x)
        sys.settrace(trace)
        try:
            inner(x)
        finally:
            sys.settrace(before)
        inner(x)
    assert stacks_of(prof, "aten::add")[0] == [line_of(inner)]
    assert len(stacks_of(prof, "aten::add")) == 3
    assert "call" in seen


def test_an_exception_leaves_the_stacks_of_later_ops_right() -> None:
    def fails(x: Any) -> None:
        inner(x)
        raise KeyError("x")

    x = torch.ones(2)
    with profile(with_stack=True) as prof:
        with pytest.raises(KeyError):
            fails(x)
        inner(x)
    assert stacks_of(prof, "aten::add") == [[line_of(inner), line_of(fails)], [line_of(inner)]]


def test_other_threads_have_their_own_stacks_when_all_are_recorded() -> None:
    x = torch.ones(2)
    with profile(with_stack=True, experimental_config=_ExperimentalConfig(profile_all_threads=True)) as prof:
        thread = threading.Thread(target=outer, args=(x,))
        thread.start()
        thread.join()
    ops = [event for event in prof.events() if event.name == "aten::add"]
    assert len(ops) == 2
    assert all(line_of(inner) in event.stack[0] and line_of(outer) in event.stack[1] for event in ops)


def test_averages_are_grouped_by_the_first_frames() -> None:
    x = torch.ones(2)
    with profile(with_stack=True) as prof:
        outer(x)
        x + x
    rows = [row for row in prof.key_averages(group_by_stack_n=1) if row.key == "aten::add"]
    assert sorted(row.count for row in rows) == [1, 2]
    assert all(len(row.stack) == 1 for row in rows)
    two = next(row for row in rows if row.count == 2)
    assert two.stack[0].endswith(line_of(inner))


def test_the_line_of_a_call_under_way_is_the_one_it_is_at() -> None:
    x = torch.ones(2)
    line = sys._getframe().f_lineno + 1
    with profile(with_stack=True) as prof:
        x + x
    add = next(event for event in prof.events() if event.name == "aten::add")
    assert f"{HERE}({line}): test_the_line_of_a_call_under_way_is_the_one_it_is_at" in add.stack[0]


# ---------------------------------------------------------------- folded files


def test_a_profile_writes_the_lines_of_its_events(tmp_path: Path) -> None:
    x = torch.ones(200, 200)
    with profile(with_stack=True) as prof:
        with record_function("span"):
            for _ in range(5):
                x @ x
        outer(x)
    prof.export_stacks(str(tmp_path / "a.txt"))
    prof.events().export_stacks(str(tmp_path / "b.txt"), "self_cpu_time_total")
    text = (tmp_path / "a.txt").read_text()
    assert text == (tmp_path / "b.txt").read_text()
    assert all(int(line.rpartition(" ")[2]) > 0 for line in text.splitlines())
    assert any("_outer;" in line and "_inner " in line for line in text.splitlines())


def test_a_profile_without_stacks_says_so(tmp_path: Path) -> None:
    with profile() as prof:
        torch.ones(2)
    with pytest.raises(AssertionError, match=r"export_stacks\(\) requires with_stack=True"):
        prof.export_stacks(str(tmp_path / "s.txt"))


def test_a_recording_with_stacks_keeps_nothing_of_its_callers_alive():
    import weakref

    class Sentinel:
        pass

    def outer():
        sentinel = Sentinel()

        def inner():
            return sentinel

        with profile(with_stack=True):
            inner()
        return weakref.ref(sentinel)

    for _ in range(3):
        assert outer()() is None


class _Doubled(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x * 2

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        return gradients[0].log2()


def _in_tensor_hook(gradient: Any) -> None:
    gradient.log10()


def _unpacked(x: Any) -> Any:
    x.log1p()
    return x


@pytest.mark.parametrize("saved_hooks", [False, True])
def test_ops_of_the_users_functions_in_a_backward_pass_have_their_stacks(saved_hooks: bool) -> None:
    x = torch.ones(3, requires_grad=True)
    y = _Doubled.apply(x)
    y.register_hook(_in_tensor_hook)
    if saved_hooks:
        with torch.autograd.graph.saved_tensors_hooks(lambda t: t, _unpacked):
            y = y.exp()
    with profile(with_stack=True) as prof:
        (y.sin() * y).sum().backward()
    assert stacks_of(prof, "aten::log2") == [[line_of(_Doubled.backward)]]
    assert stacks_of(prof, "aten::log10") == [[line_of(_in_tensor_hook)]]
    assert stacks_of(prof, "aten::cos") == [[]]
    assert stacks_of(prof, "aten::log1p") == [[line_of(_unpacked)]] * saved_hooks
