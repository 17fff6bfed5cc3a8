"""The profiler's low and old doors: spans with inputs, enabling by hand, the old profiler, switches, tracebacks."""

from __future__ import annotations

import importlib
import json
import os
import tempfile
import warnings
from typing import Any


def _at(torch: Any, path: str) -> Any:
    return importlib.import_module(f"{torch.__name__}.{path}")


def _profiled(torch: Any, run: Any, **flags: Any) -> tuple[list[Any], list[Any]]:
    """Events, and the arguments of the same in a trace file."""
    with torch.profiler.profile(record_shapes=True, **flags) as prof:
        run()
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "t.json")
        prof.export_chrome_trace(path)
        with open(path) as file:
            written = json.load(file)["traceEvents"]
    events = [
        [e.name, e.scope, e.input_shapes, e.concrete_inputs, dict(sorted(e.kwinputs.items()))]
        for e in prof.events()
    ]
    return events, written


def quick_spans(torch: Any, show: Any) -> None:
    fast = _at(torch, "_C._profiler")._RecordFunctionFast
    x = torch.ones(2, 3)

    def run() -> None:
        with fast("bare"):
            pass
        with fast("inputs", [x, 3, 2.5, "s", None, [x, x], True]):
            pass
        with fast(
            name="named", input_values=(x,), keyword_values={"stream": 0, "grid": "1,2", "f": 2.5, "b": True}
        ):
            pass

    events, written = _profiled(torch, run)
    for event in events:
        show(event)
    args = next(e["args"] for e in written if e["name"] == "named")
    show(
        {
            name: args[name]
            for name in ("stream", "grid", "f", "b", "Input Dims", "Input type", "Input Strides")
        }
    )
    span = fast("again")

    def twice() -> None:
        for _ in range(2):
            with span as entered:
                show(entered)

    show([event[0] for event in _profiled(torch, twice)[0]])
    show(span.__enter__(), span.__exit__(None, None, None))


def spans_with_arguments(torch: Any, show: Any) -> None:
    enter, leave = (
        torch.autograd._record_function_with_args_enter,
        torch.autograd._record_function_with_args_exit,
    )
    x = torch.ones(2, 3)

    def run() -> None:
        handle = enter("with", x, 3, 2.5, "s", [x], None)
        show(handle)
        leave(handle)
        leave(enter("without"))

    for event in _profiled(torch, run)[0]:
        show(event)
    show(enter("off", 1))
    show.raises(leave, None)
    show.raises(leave, 3)
    show.raises(enter, 3)


def annotations_refuse(torch: Any, show: Any) -> None:
    def enter(*arguments: Any) -> None:
        with torch.profiler.record_function(*arguments):
            pass

    for arguments in ((3,), (None,), ("n", 3), ("n", [1]), (torch.ones(2),)):
        show.raises(enter, *arguments)
    show.raises(torch.profiler.record_function)
    show([event[0] for event in _profiled(torch, lambda: enter(b"bytes"))[0]])

    @torch.profiler.record_function(3)
    def decorated() -> None:
        pass

    show.raises(decorated)


def the_old_profiler(torch: Any, show: Any) -> None:
    legacy = _at(torch, "autograd.profiler_legacy")
    x = torch.ones(2, 3)
    with legacy.profile(record_shapes=True) as prof:
        show(prof, torch.autograd._profiler_enabled(), _at(torch, "autograd.profiler")._is_profiler_enabled)
        y = torch.neg(x)
        with torch.profiler.record_function("span"):
            torch.abs(y).sum()
    show([(e.name, e.input_shapes) for e in prof.function_events if e.name in ("aten::neg", "span")])
    show(sorted({row.key for row in prof.key_averages()} & {"aten::neg", "span", "aten::abs"}))
    show(
        prof.self_cpu_time_total > 0,
        prof.total_average().key,
        "aten::neg" in prof.table(),
        prof.profiler_kind,
    )
    show.raises(prof.__enter__)
    show.raises(legacy.profile().key_averages)
    show.raises(legacy.profile().table)
    show(legacy.profile(), legacy.profile(enabled=False).__enter__(), legacy.__all__)

    def nested() -> None:
        with torch.profiler.profile(), legacy.profile():
            pass

    show.raises(nested)
    show(torch.autograd._profiler_enabled())
    config = torch.autograd.ProfilerConfig(
        torch.autograd.ProfilerState.CPU, True, False, False, False, False,
        _at(torch, "_C._profiler")._ExperimentalConfig(),
    )  # fmt: skip
    torch.autograd._enable_profiler_legacy(config)
    torch.neg(x)
    (events,) = torch.autograd._disable_profiler_legacy()
    show([(e.kind(), e.name(), e.shapes(), e.thread_id(), e.scope(), e.has_cuda()) for e in events])
    show(events[1].cpu_elapsed_us(events[2]) > 0, events[1].handle() == events[2].handle())


def by_hand(torch: Any, show: Any) -> None:
    autograd, low = torch.autograd, _at(torch, "_C._profiler")
    autograd_c = _at(torch, "_C._autograd") if torch.__name__ != "torch" else torch._C._autograd
    x = torch.ones(2, 3)
    show(
        autograd._profiler_enabled(),
        autograd_c._profiler_type(),
        autograd.kineto_available(),
        autograd._supported_activities(),
    )
    config = autograd.ProfilerConfig(
        autograd.ProfilerState.KINETO, True, False, False, False, False, low._ExperimentalConfig()
    )
    autograd._prepare_profiler(config, {autograd.ProfilerActivity.CPU})
    autograd._enable_profiler(config, {autograd.ProfilerActivity.CPU})
    show(autograd._profiler_enabled(), autograd_c._profiler_type())
    torch.neg(x)
    result = autograd._disable_profiler()
    show([(e.name(), e.shapes(), e.dtypes(), e.scope(), e.is_user_annotation()) for e in result.events()])
    show(autograd._profiler_enabled(), autograd._is_kineto_stopped(), autograd._kineto_step())
    with torch.profiler.profile() as prof:
        torch.neg(x)
        autograd._enable_record_function(False)
        torch.abs(x)
        autograd._enable_record_function(True)
        torch.sin(x)
    show([e.name for e in prof.events()])


def steps_of_everybody(torch: Any, show: Any) -> None:
    tracker = _at(torch, "autograd.profiler").KinetoStepTracker
    start = tracker.current_step()
    show(
        tracker.increment_step("a") - start,
        tracker.increment_step("a") - start,
        tracker.increment_step("b") - start,
    )
    tracker.init_step_count("c")
    show(tracker.increment_step("c") - start, tracker.erase_step_count("c"), tracker.erase_step_count("c"))
    show(tracker.erase_step_count("a"), tracker.erase_step_count("b"), tracker.current_step() - start)


def figures_of_a_session(torch: Any, show: Any) -> None:
    with torch.profiler.profile() as prof:
        torch.ones(2)
    stats = prof._stats()
    show(
        type(stats).__name__,
        sorted(vars(stats)),
        stats.profiling_window_duration_sec > 0,
        stats.profiler_enable_call_duration_us >= 0,
    )
    show(type(torch.profiler.profile()._stats()).__name__)


def switches(torch: Any, show: Any) -> None:
    low = _at(torch, "_C._profiler")
    x = torch.ones(2, 3, requires_grad=True)
    for on in (False, True):
        low._set_fwd_bwd_enabled_val(on)
        written = _profiled(torch, lambda: torch.neg(x).sum().backward())[1]
        show(on, sum(e.get("cat") == "fwdbwd" for e in written) > 0)
    for on in (False, True):
        low._set_record_concrete_inputs_enabled_val(on)
        show(
            on,
            [
                event[3]
                for event in _profiled(torch, lambda: x.detach().view(3, 2))[0]
                if event[0] == "aten::view"
            ],
        )
    low._set_cuda_sync_enabled_val(False)


def tracebacks(torch: Any, show: Any) -> None:
    low, utils = _at(torch, "_C._profiler"), _at(torch, "utils._traceback")

    def gathered() -> Any:
        return low.gather_traceback(True, True, False)

    captured = gathered()
    frames = low.symbolize_tracebacks([captured, captured])
    show(
        type(captured).__name__,
        len(frames),
        [sorted(frame) for frame in frames[0][:1]],
        [f["name"] for f in frames[0][:2]],
    )
    show(low.symbolize_tracebacks([low.gather_traceback(False, False, False)]))

    def extracted(skip: int) -> Any:
        return utils.CapturedTraceback.extract(skip=skip)

    show(
        [f.name for f in extracted(0).summary()][-2:],
        [f.name for f in extracted(1).summary()][-1:],
        extracted(1).skip,
    )
    kept = extracted(0)
    show(len(utils.CapturedTraceback.format_all([kept, kept])), kept.format()[-1].splitlines()[-1].strip())
    kept.cleanup()
    show(kept.tb, kept.summary(), kept.format(), utils.CapturedTraceback(None).format())
    show(utils.shorten_filename("/a/b/c.py", base="/a"), utils.shorten_filename("/x/y.py", base="/a"))
    show.raises(lambda: utils.CapturedTraceback.extract(cpp=True, skip=1))


def data_pipes(torch: Any, show: Any) -> None:
    data = _at(torch, "utils.data")

    class Source(data.IterDataPipe):
        def __iter__(self) -> Any:
            return iter([1, 2])

    class Kept(data.IterDataPipe):
        def __init__(self, source: Any, n: int = 3, name: str = "x", *, fn: Any = _at) -> None:
            self.source, self.n, self.name, self.fn, self.other = source, n, name, fn, 5

        def __iter__(self) -> Any:
            for item in self.source:
                yield item + self.n

    class Own(data.IterDataPipe):
        def __init__(self, left: int) -> None:
            self.left = left

        def __iter__(self) -> Any:
            return self

        def __next__(self) -> int:
            if not self.left:
                raise StopIteration
            self.left -= 1
            return self.left

    found: list[Any] = []
    events = _profiled(
        torch, lambda: found.extend([list(Kept(Source())), list(Own(2)), next(iter(Source()))])
    )[0]
    show(found, [event[:2] for event in events])
    show(list(Kept(Source())), [i for i, _ in zip(Kept(Source()), range(1))])


def observers_of_ones_own(torch: Any, show: Any) -> None:
    class Told:
        def start(self) -> None:
            show("start")

        def stop(self) -> None:
            show("stop")

        def cleanup(self) -> None:
            show("cleanup")

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with torch.profiler.profile(
            execution_trace_observer=Told(),
            schedule=torch.profiler.schedule(wait=1, warmup=1, active=1, repeat=1),
        ) as prof:
            for _ in range(4):
                prof.step()
