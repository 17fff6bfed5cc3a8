"""What test suites look at: numbers of events, keyword values in files, a daemon's steps, low functions."""

import json
import os
import subprocess
import sys

import pytest

import mindtorch_v2 as torch
from mindtorch_v2.autograd.profiler import KinetoStepTracker
from mindtorch_v2.autograd.profiler_util import EventList, FunctionEvent
from mindtorch_v2.profiler import ProfilerActivity, profile, schedule


def _written(prof, path):
    prof.export_chrome_trace(str(path))
    return json.loads(path.read_text())["traceEvents"]


def test_no_two_recordings_of_a_process_share_a_number_of_an_event(tmp_path):
    seen: set[int] = set()
    for _ in range(3):
        with profile() as prof:
            torch.ones(2).sin()
        numbers = [event.correlation_id() for event in prof.profiler.kineto_results.events()]
        assert numbers == [event.id for event in prof.events()]
        written = [e for e in _written(prof, tmp_path / "t.json") if e.get("cat") == "cpu_op"]
        assert [e["args"]["External id"] for e in written] == numbers
        assert [e["args"]["Ev Idx"] for e in written] == list(range(len(numbers)))
        roots = prof.profiler.kineto_results.experimental_event_tree()
        assert {root.correlation_id for root in roots} <= set(numbers)
        assert not seen & set(numbers)
        seen |= set(numbers)


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ({"a": 1, "b": 2.5, "c": True, "d": "x"}, {"a": 1, "b": 2.5, "c": True, "d": "x"}),
        ({"names": ["x", "y"]}, {"names": ["x", "y"]}),
        ({"quoted": 'say "hi"'}, {"quoted": "None"}),
        ({"stream": 3}, {"stream": 3}),
        ({"stream": "three", "grid": [1, 2]}, {}),
        ({"nothing": None, "many": {"k": 1}, "pairs": (1, 2)}, {}),
    ],
)
def test_a_file_shows_the_keyword_values_that_torch_shows(given, shown, tmp_path):
    x = torch.ones(2)
    with profile(record_shapes=True) as prof:
        with torch._C._profiler._RecordFunctionFast("fast", [x], given):
            x.sin()
    (event,) = [e for e in _written(prof, tmp_path / "t.json") if e["name"] == "fast"]
    assert {name: value for name, value in event["args"].items() if name in given} == shown


def test_the_recorded_window_ends_after_what_it_shows_in_floating_point_too(tmp_path):
    for _ in range(5):
        with profile() as prof:
            torch.ones(2).sin()
        events = _written(prof, tmp_path / "t.json")
        whole = next(e for e in events if e["name"] == "PyTorch Profiler (0)")
        assert whole["ts"] + whole["dur"] <= events[-1]["ts"]


def test_steps_are_counted_while_a_daemon_is_asked_for(monkeypatch):
    monkeypatch.setenv("KINETO_USE_DAEMON", "1")
    before = KinetoStepTracker.current_step()
    with profile(schedule=schedule(wait=0, warmup=1, active=1, repeat=1)) as prof:
        for _ in range(4):
            prof.step()
    assert KinetoStepTracker.current_step() == before + 4
    monkeypatch.delenv("KINETO_USE_DAEMON")
    with profile(schedule=schedule(wait=0, warmup=1, active=1, repeat=1)) as prof:
        for _ in range(4):
            prof.step()
    assert KinetoStepTracker.current_step() == before + 4


def test_optimizers_count_steps_in_a_process_that_a_daemon_profiles():
    program = (
        "import mindtorch_v2 as torch\n"
        "from mindtorch_v2.autograd.profiler import KinetoStepTracker as K\n"
        "o = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=0.1)\n"
        "o.step(); o.step(); print(K.current_step(), dict(K._step_dict))"
    )
    environment = {**os.environ, "KINETO_USE_DAEMON": "1"}
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False
    )
    assert done.stdout.strip() == "2 {'Optimizer': 2}", done.stderr


def test_events_are_made_when_they_are_asked_for_and_counted_then():
    with profile() as prof:
        torch.ones(2).sin()
    stats = prof._stats()
    assert (stats.number_of_events, stats.function_events_build_tree_call_duration_us) == (0, 0)
    assert len(prof.events()) == stats.number_of_events > 0
    assert stats.function_events_build_tree_call_duration_us > 0


def test_events_can_be_nested_without_dropping_any():
    events = EventList(
        FunctionEvent(id=i, node_id=0, name="", thread=0, start_us=start, end_us=end)
        for i, (start, end) in enumerate([(0, 2), (1, 2), (1, 3)])
    )
    events._populate_cpu_children()
    assert [[child.id for child in event.cpu_children] for event in events] == [[], [], [1]]


@pytest.mark.parametrize("begin", ["_record_function_enter", "_record_function_enter_new"])
def test_annotations_can_be_begun_and_ended_by_ops(begin):
    with profile() as prof:
        handle = getattr(torch.ops.profiler, begin)("by op", None)
        torch.ones(2).sin()
        torch.ops.profiler._record_function_exit(handle)
    (event,) = [e for e in prof.events() if e.name == "by op"]
    assert event.is_user_annotation
    assert "aten::sin" in [child.name for child in event.cpu_children]
    with pytest.raises(RuntimeError, match="for argument 'name' but instead found type 'int'"):
        getattr(torch.ops.profiler, begin)(3)


def test_low_events_answer_what_only_devices_have():
    config = torch.autograd.ProfilerConfig(
        torch.autograd.ProfilerState.KINETO, True, False, False, False, False,
        torch._C._profiler._ExperimentalConfig(),
    )  # fmt: skip
    torch._C._autograd._enable_profiler(config, {ProfilerActivity.CPU})
    torch.ones(2).sin()
    event = torch._C._autograd._disable_profiler().events()[0]
    assert (event.cuda_elapsed_us(), event.privateuse1_elapsed_us()) == (-1, -1)
    assert (event.extra_meta(), event.is_hidden_event()) == ({}, False)


def test_a_pattern_of_devices_has_nothing_to_measure_where_it_found_nothing():
    from mindtorch_v2.profiler._pattern_matcher import ExtraCUDACopyPattern, FP32MatMulPattern

    with profile(with_stack=True, record_shapes=True) as prof:
        torch.ones(2, 2) @ torch.ones(2, 2)
    for pattern in (ExtraCUDACopyPattern(prof), FP32MatMulPattern(prof)):
        assert pattern.benchmark(pattern.matched_events()) == {}


def test_forked_functions_are_seen():
    def inner(x):
        with torch.profiler.record_function("inner"):
            return x * 2

    with profile() as prof:
        torch.jit._wait(torch.jit._fork(inner, torch.ones(2)))
    assert [e.name for e in prof.events()].count("inner") == 1


@pytest.mark.parametrize(
    ("call", "value", "dtype"),
    [
        (lambda: torch.add(1, 2), 3, torch.int64),
        (lambda: torch.add(1, 2, alpha=3), 7, torch.int64),
        (lambda: torch.sub(1.5, 2), -0.5, torch.float32),
        (lambda: torch.mul(True, 2), 2, torch.int64),
        (lambda: torch.div(1, 2), 0.5, torch.float32),
        (lambda: torch.div(7, 2, rounding_mode="floor"), 3, torch.int64),
        (lambda: torch.floor_divide(1.5, 2), 0, torch.float32),
        (lambda: torch.add(1j, 2), 2 + 1j, torch.complex64),
    ],
)
def test_arithmetic_takes_two_numbers_and_is_seen_as_one_op(call, value, dtype):
    with profile() as prof:
        made = call()
    assert (made.item(), made.dtype, made.shape) == (value, dtype, ())
    assert len(prof.events()) == 1
    with pytest.raises(TypeError):
        torch.remainder(1, 2)


def test_memory_that_cannot_be_had_is_refused_in_torchs_words_and_recording_goes_on():
    with profile(profile_memory=True) as prof:
        with pytest.raises(RuntimeError, match="allocate 281474976710656 bytes"):
            torch.empty(2**46)
        torch.ones(2).sin()
    assert [e.name for e in prof.events() if e.name.startswith("aten::s")] == ["aten::sin"]


def test_a_reduction_over_none_is_one_along_dimensions():
    x = torch.ones(2, 3, requires_grad=True)
    for total, node in (
        (x.sum(), "SumBackward0"),
        (x.sum(None), "SumBackward1"),
        (x.mean(dim=None), "MeanBackward1"),
    ):
        assert type(total.grad_fn).__name__ == node
        x.grad = None
        total.backward()
        assert x.grad.sum().item() == (6 if "Sum" in node else pytest.approx(1))


def _allocations(prof):
    from mindtorch_prof.torch_api.basic_evaluation import traverse_dfs

    nodes = traverse_dfs(prof.profiler.kineto_results.experimental_event_tree())
    return [node.extra_fields for node in nodes if node.name == "[memory]"]


def test_the_end_of_memory_that_an_earlier_recording_saw_taken_is_seen():
    with profile(profile_memory=True) as prof:
        x = torch.empty((3, 4))
    (taken,) = _allocations(prof)
    assert taken.alloc_size == 48
    with profile(profile_memory=True) as prof:
        del x
    (given_back,) = _allocations(prof)
    assert (given_back.alloc_size, given_back.ptr) == (-48, taken.ptr)
    assert given_back.total_allocated == taken.total_allocated - 48
    assert [(e.name, e.cpu_memory_usage) for e in prof.events()] == [("[memory]", -48)]


def test_memory_that_ends_between_recordings_is_no_event_of_the_next_one():
    with profile(profile_memory=True) as prof:
        x = torch.empty((3, 4))
    before = _allocations(prof)[0].total_allocated
    del x
    with profile(profile_memory=True) as prof:
        y = torch.empty((3, 4))
    assert [(a.alloc_size, a.total_allocated) for a in _allocations(prof)] == [(48, before)]
    assert y.shape == (3, 4)


def test_memory_that_grows_is_taken_before_the_old_one_ends():
    with profile(profile_memory=True, record_shapes=True) as prof:
        x = torch.rand(4, 3)
        x.resize_(4, 4)
        x.sin()
    sizes = [a.alloc_size for a in _allocations(prof)]
    assert sizes[:3] == [48, 64, -48]
    assert [a.id for a in _allocations(prof)][:3] == [0, 0, 0]


def test_memory_that_was_set_ends_when_the_tensor_outgrows_it():
    with profile(profile_memory=True, record_shapes=True) as prof:
        x = torch.ones(1)
        x.set_(torch.ones(1).untyped_storage())
        x.resize_(2)
        x.resize_(3)
    assert [a.alloc_size for a in _allocations(prof)] == [4, 4, -4, 8, -4, 12, -8]


def test_tensors_and_addresses_are_those_that_the_program_saw_while_recording():
    from mindtorch_prof.torch_api.basic_evaluation import traverse_dfs

    seen = []
    with profile(profile_memory=True, record_shapes=True) as prof:
        for size in (3, 4, 5):
            x = torch.ones(size)
            seen.append((x._cdata, x.untyped_storage().data_ptr()))
            x.sin()
            x.resize_(9)
            seen.append((x._cdata, x.data_ptr()))
            x.sin()
            del x
    nodes = traverse_dfs(prof.profiler.kineto_results.experimental_event_tree())
    met = [node.extra_fields.inputs[0] for node in nodes if node.name == "aten::sin"]
    assert [(tensor.impl_ptr, tensor.storage_data_ptr) for tensor in met] == seen
    assert seen[0][0] == seen[1][0] != seen[2][0]


def test_schemas_are_torchs_and_say_that_a_result_is_written():
    from mindtorch_prof.torch_api.basic_evaluation import traverse_dfs
    from mindtorch_prof.torch_api.memory_profile import SchemaMatcher

    x = torch.ones(2)
    with profile(record_shapes=True, profile_memory=True) as prof:
        torch.sin(x, out=torch.empty_like(x))
        x.mul(x)
        (x.requires_grad_() * 2).sum().backward()
    fields = {}
    for node in traverse_dfs(prof.profiler.kineto_results.experimental_event_tree()):
        if node.name in ("aten::sin", "aten::mul", "detach"):
            fields.setdefault(node.name, node.extra_fields)
    overloads = {
        name: [s.overload_name for s in SchemaMatcher.match_schemas(f)] for name, f in fields.items()
    }
    assert overloads == {"aten::sin": ["out"], "aten::mul": ["Tensor"], "detach": []}
    assert SchemaMatcher.inputs_are_mutable(fields["aten::sin"]) == (False, True)
    assert SchemaMatcher.inputs_are_mutable(fields["detach"]) == (None,)


def test_what_records_takes_metadata_from_anywhere(tmp_path):
    torch.autograd._add_metadata_json("nobody", "1")  # nothing records: it is lost
    with profile() as prof:
        torch.autograd._add_metadata_json("run", '{"a": [1]}')
    path = tmp_path / "t.json"
    prof.export_chrome_trace(str(path))
    document = json.loads(path.read_text())
    assert document["run"] == {"a": [1]}
    assert "nobody" not in document


def test_helpers_of_tables_are_torchs():
    from mindtorch_v2.autograd import profiler_util

    assert [profiler_util._filter_name(n) for n in ("[memory]", "aten::is_leaf", "aten::mm")] == [
        True,
        True,
        False,
    ]
    assert profiler_util._filter_stack_entry("a.py(3): backward")
    assert not profiler_util._filter_stack_entry("torch/autograd/__init__.py(5): backward")
    assert profiler_util._rewrite_name("ProfilerStep#3", with_wildcard=True) == "ProfilerStep*"
    assert profiler_util._rewrite_name("ProfilerStep#3") == "ProfilerStep#3"
    shown = type("Timed", (), {"x": 1500.0, "x_str": profiler_util._attr_formatter("x")})
    assert shown().x_str == "1.500ms"
    with profile() as prof:
        torch.ones(1)
    assert profiler_util._build_table(prof.events(), row_limit=2) == prof.events().table(row_limit=2)
    assert int(torch.profiler.RecordScope.USER_SCOPE) == 7


def test_hooks_of_saved_tensors_can_be_pushed_and_popped_by_hand():
    seen = []
    torch.autograd._push_saved_tensors_default_hooks(lambda t: seen.append(t.shape) or t, lambda t: t)
    x = torch.ones(3, requires_grad=True)
    y = x * x
    torch.autograd._pop_saved_tensors_default_hooks()
    (x * x).sum()
    assert len(seen) == 2
    y.sum().backward()
    assert x.grad.tolist() == [2, 2, 2]


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


def test_evaluations_take_events_that_are_made_by_hand():
    from types import SimpleNamespace
    from unittest.mock import Mock

    from mindtorch_prof.torch_api.basic_evaluation import BasicEvaluation
    from mindtorch_v2.profiler import DeviceType

    def on_device(name, start_us, number, device):
        return SimpleNamespace(
            name=name, start_ns=lambda: start_us * 1000, duration_ns=lambda: 100_000,
            linked_correlation_id=lambda: number, device_type=lambda: device,
        )  # fmt: skip

    class Op:
        def __init__(self, name, number, start, children=()):
            self.name, self.id, self.start_time_ns, self.duration_time_ns = name, number, start, 100_000
            self.end_time_ns = start + 100_000
            self.children, self.parent, self.correlation_id = list(children), None, 0

    made = Mock()
    made.kineto_results.events = Mock(
        return_value=[
            on_device("cudaLaunchKernel", 100, 1, DeviceType.CPU),
            on_device("cudaLaunchKernel", 200, 2, DeviceType.CPU),
            on_device("kernel", 400, 1, DeviceType.CUDA),
            on_device("kernel", 500, 2, DeviceType.CUDA),
        ]
    )
    ops = [Op(f"op{i}", i, i * 100_000) for i in range(5)]
    made.kineto_results.experimental_event_tree = Mock(return_value=ops)
    evaluation = BasicEvaluation(made)
    assert [depth.queue_depth for depth in evaluation.queue_depth_list] == [1, 2, 1, 0]
    assert [evaluation.metrics[key].queue_depth for key in evaluation.event_keys] == [0, 1, 2, 2, 1]


def test_metadata_of_events_is_shown_where_it_is_asked_for():
    config = torch._C._profiler._ExperimentalConfig(expose_kineto_event_metadata=True)
    with profile(experimental_config=config) as prof:
        torch.add(1, 5)
    (event,) = prof.events()
    with pytest.warns(FutureWarning, match="event_metadata"):
        assert event.metadata_json == '"Ev Idx": 0'
