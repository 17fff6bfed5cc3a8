"""Classes, objects and modes that answer calls of torch's functions, against what torch shows.

In processes of their own: the first of them puts guards in front of every function, for good.
"""

from __future__ import annotations

import json
import types
from typing import Any

import pytest
import recorded_cases
from fact_files import FACTS

RECORDED = recorded_cases.facts("override_cases")


@pytest.fixture(scope="module")
def shown(run_python: Any) -> dict[str, list[str]]:
    return json.loads(run_python(recorded_cases.program("override_cases"), FACTS))


@pytest.mark.parametrize("case", list(RECORDED))
def test_overrides_show_what_torch_shows(case: str, shown: dict[str, list[str]]) -> None:
    assert shown[case] == RECORDED[case]


def test_the_first_to_answer_in_a_process_is_asked_at_once(run_python: Any) -> None:
    case = "objects_that_are_no_tensors"
    program = recorded_cases.program("override_cases", "mindtorch_v2", case)
    assert json.loads(run_python(program, FACTS)) == {case: RECORDED[case]}


def test_torch_still_shows_what_was_recorded(run_python: Any, torch_reference: types.ModuleType) -> None:
    program = recorded_cases.program("override_cases", torch_reference.__name__)
    assert json.loads(run_python(program, FACTS)) == RECORDED


def test_nothing_is_guarded_before_somebody_answers(run_python: Any) -> None:
    before, same, after = json.loads(
        run_python("""
        import inspect, json
        import mindtorch_v2 as torch
        from mindtorch_v2 import _dispatch
        class Parameter(torch.nn.Parameter):
            pass
        x = torch.ones(2, 3)
        add, relu, plus = torch.add, torch.nn.functional.relu, torch.Tensor.__add__
        signature, size = inspect.signature(relu), torch.Tensor.size
        before = [hasattr(f, "__wrapped__") for f in (add, relu, plus)]
        before.append(type(Parameter(x) + 1) is torch.Tensor)
        class Sub(torch.Tensor):
            pass
        same = [add is torch.add, relu is torch.nn.functional.relu, size is torch.Tensor.size]
        same += [inspect.signature(relu) == signature, relu.__name__ == "relu"]
        y = x.as_subclass(Sub)
        calls = (relu, lambda y: add(y, 1), lambda y: y + 1, lambda y: plus(x, y))
        after = [type(call(y)).__name__ for call in calls]
        print(json.dumps([before, same, after + [_dispatch.recorder is None]]))
    """)
    )
    assert before == [False, False, False, True]
    assert same == [True] * 5
    assert after == ["Sub"] * 4 + [True]


def test_guards_go_once_the_last_mode_and_the_last_tensor_that_asks_are_gone(run_python: Any) -> None:
    seen = json.loads(
        run_python("""
        import gc, json
        import mindtorch_v2 as torch
        from mindtorch_v2 import _dispatch
        from mindtorch_v2.overrides import BaseTorchFunctionMode
        from mindtorch_v2.utils._python_dispatch import BaseTorchDispatchMode
        shape, seen = vars(torch.Tensor)["shape"], []
        with BaseTorchFunctionMode():
            seen.append(vars(torch.Tensor)["shape"] is shape)
        seen.append(vars(torch.Tensor)["shape"] is shape)
        with BaseTorchDispatchMode():
            seen.append(_dispatch.recorder is None)
        seen.append(_dispatch.recorder is None)
        class Asked(torch.Tensor):
            @classmethod
            def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
                return "asked"
        seen.append(_dispatch.recorder is None)
        x = torch.ones(2).as_subclass(Asked)
        seen += [_dispatch.recorder is None, torch.neg(x)]
        del x
        gc.collect()
        print(json.dumps(seen + [_dispatch.recorder is None]))
    """)
    )
    assert seen == [False, True, False, True, True, False, "asked", True]


def test_other_threads_have_modes_of_their_own_and_numbers_stay_the_same(run_python: Any) -> None:
    seen, plain, of_a_class, kinds = json.loads(
        run_python("""
        import json, threading
        import mindtorch_v2 as torch
        from mindtorch_v2.overrides import TorchFunctionMode
        seen = []
        class Log(TorchFunctionMode):
            def __torch_function__(self, func, types, args=(), kwargs=None):
                seen.append((threading.current_thread().name, func.__name__))
                return func(*args, **(kwargs or {}))
        with Log():
            worker = threading.Thread(target=lambda: torch.ones(2), name="worker")
            worker.start()
            worker.join()
            torch.zeros(2)
        class Sub(torch.Tensor):
            pass
        def train(make):
            torch.manual_seed(0)
            model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))
            optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
            x, y = make(torch.randn(16, 4)), make(torch.randn(16, 1))
            for _ in range(5):
                optimizer.zero_grad()
                loss = torch.nn.functional.mse_loss(model(x), y)
                loss.backward()
                optimizer.step()
            return float(loss), type(loss).__name__
        (plain, a), (sub, b) = train(lambda t: t), train(lambda t: t.as_subclass(Sub))
        print(json.dumps([seen, plain, sub, [a, b]]))
    """)
    )
    assert seen == [["MainThread", "zeros"]]
    assert plain == of_a_class
    assert kinds == ["Tensor", "Sub"]


def test_what_asks_overrides_is_no_part_of_a_programs_stack(run_python: Any) -> None:
    assert (
        json.loads(
            run_python("""
        import json
        import mindtorch_v2 as torch
        from mindtorch_v2.overrides import TorchFunctionMode
        from mindtorch_v2.profiler import profile

        class Passing(TorchFunctionMode):
            def __torch_function__(self, func, types, args=(), kwargs=None):
                return func(*args, **(kwargs or {}))

        with Passing():
            torch.ones(2)
        x = torch.ones(3, 3)
        with profile(with_stack=True) as prof:
            x[1, 1]
        frames = [frame for event in prof.events() for frame in event.stack]
        print(json.dumps([frame for frame in frames if "_overrides" in frame]))
        """)
        )
        == []
    )


def test_a_method_that_a_program_added_to_tensor_is_called_as_it_is(run_python: Any) -> None:
    run_python(
        """
        import mindtorch_v2 as torch

        def set_note(self, other):
            self.note = type(other).__name__

        torch.Tensor.set_note = set_note  # as fastai does, before it has a subclass

        class Image(torch.Tensor):
            pass

        class Field(torch.Tensor):
            pass

        image, field = torch.ones(2).as_subclass(Image), torch.ones(2).as_subclass(Field)
        image.set_note(field)  # the classes are no subclasses of each other: handlers would refuse both
        assert image.note == "Field"
        """
    )
