"""Process-wide hooks: each is seen while it is on, none is left on, and one module sets them all."""

from __future__ import annotations

import ast
import json
import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import mindtorch_v2 as torch
from mindtorch_v2 import _dispatch, _storage
from mindtorch_v2 import _recording_hooks as _hooks
from mindtorch_v2._C._profiler import _ExperimentalConfig
from mindtorch_v2.profiler import ExecutionTraceObserver, profile, record_function
from mindtorch_v2.utils.checkpoint import checkpoint
from mindtorch_v2.utils.data import DataLoader, Dataset

X = torch.ones(2)
needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


def full_profile(**further: Any) -> profile:
    """A profile that switches on every kind of hook that one thread's recording has."""
    return profile(
        record_shapes=True,
        profile_memory=True,
        with_stack=True,
        experimental_config=_ExperimentalConfig(record_python_gc_info=True, **further),
    )


def ops(prof: profile) -> list[str]:
    """The outermost ops of a recording."""
    names = {e.name for e in prof.events() if e.name.startswith(("aten::", "test_hooks_"))}
    return [
        e.name for e in prof.events() if e.name in names and getattr(e.cpu_parent, "name", "") not in names
    ]


def tree(prof: profile) -> list[Any]:
    """All events of a recording's event tree."""
    events = prof.profiler.kineto_results.experimental_event_tree()
    for event in events:
        events += event.children
    return events


class Passing:
    """An observer that counts ops and passes them on."""

    def __init__(self) -> None:
        self.count = 0

    def wrap(self, recorder: Any, ranges: Any) -> tuple[Any, Any]:
        def see(op: Any, *arguments: Any) -> Any:
            self.count += 1
            return op.run(*arguments) if recorder is None else recorder[op.uid](*arguments)

        return _dispatch.Hook(see), ranges


# -------------------------------------------------------------------------------- what is on is seen


@contextmanager
def muted() -> Iterator[None]:
    _hooks.set_muted(True)
    try:
        yield
    finally:
        _hooks.set_muted(False)


@contextmanager
def routed() -> Iterator[None]:
    _hooks.route_through_run(1)
    try:
        yield
    finally:
        _hooks.route_through_run(-1)


OF_FULL_PROFILE = "calls profile_function collector_callbacks on_allocate register"


@pytest.mark.parametrize(
    ("switched_on", "expected"),
    [
        (profile, "recordings recorder ranges"),
        (lambda: profile(profile_memory=True), "recordings recorder ranges on_allocate"),
        (
            full_profile,
            f"recordings recorder ranges {OF_FULL_PROFILE}",
        ),
        (
            lambda: full_profile(profile_all_threads=True),
            f"recordings recorder ranges profile_function_of_new_threads {OF_FULL_PROFILE}",
        ),
        (lambda: _hooks.observed_by(Passing()), "observers recorder"),
        (muted, "muted"),
        (routed, "routed recorder"),
    ],
    ids=["profile", "memory", "everything", "all threads", "observer", "muted", "routed"],
)
def test_every_hook_that_is_on_is_told_and_goes_off(switched_on: Callable[[], Any], expected: str) -> None:
    with switched_on():
        names = set(_hooks.active_hooks())
    assert names == set(expected.split())
    assert _hooks.active_hooks() == {}


def test_an_execution_trace_is_told_while_it_runs(tmp_path: Path) -> None:
    observer = ExecutionTraceObserver().register_callback(str(tmp_path / "t.json"))
    observer.start()
    names = set(_hooks.active_hooks())
    observer.unregister_callback()
    assert names == {"observers", "recorder", "ranges"}


def test_a_slot_that_is_set_past_the_owner_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        for slot in ("recorder", "ranges", "calls"):
            patch.setattr(_dispatch, slot, object())
        for slot in ("on_allocate", "register"):
            patch.setattr(_storage, slot, object())
        names = set(_hooks.active_hooks())
    assert names == {"recorder", "ranges", "calls", "on_allocate", "register"}


def test_profile_functions_and_collector_callbacks_of_others_are_not_told_and_stay(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    callbacks: list[Any] = [lambda phase, information: None]
    monkeypatch.setattr("gc.callbacks", callbacks)
    theirs = lambda frame, event, argument: None
    threading.setprofile(theirs)
    try:
        with profile(with_stack=True, experimental_config=_ExperimentalConfig(record_python_gc_info=True)):
            names = set(_hooks.active_hooks())
        assert "profile_function_of_new_threads" not in names
        assert _hooks.active_hooks() == {}
        assert threading.getprofile() is theirs
    finally:
        threading.setprofile(None)  # type: ignore[arg-type]
    assert len(callbacks) == 1


def test_memory_is_watched_beyond_the_recording_that_saw_its_allocation() -> None:
    with profile(profile_memory=True):
        kept = X + X
    assert _hooks.active_hooks() == {}
    with profile(profile_memory=True) as later:
        del kept
    freed = [e.nbytes() for e in later.profiler.kineto_results.events() if e.name() == "[memory]"]
    assert freed == [-8]


def test_removing_everything_switches_all_of_it_off() -> None:
    prof, observer = full_profile(profile_all_threads=True), Passing()
    prof.start()
    _hooks.add_observer(observer)
    _hooks.remove_all()
    assert _hooks.active_hooks() == {}
    X + X
    assert observer.count == 0
    prof.stop()


def test_removing_everything_keeps_muting_and_routing() -> None:
    with muted(), routed():
        _hooks.remove_all()
        assert set(_hooks.active_hooks()) == {"muted", "routed", "recorder"}


# -------------------------------------------------------------------------------- starting, stopping, nesting


STEPS = [
    "set_tensor_register",
    "begin_recording",
    "begin_memory",
    "add_collector_callback",
    "set_profiler",
    "begin_calls",
]


def fail(*arguments: Any, **named: Any) -> None:
    raise KeyError("while starting")


@pytest.mark.parametrize("step", STEPS)
def test_a_recording_that_fails_to_start_leaves_nothing_on(
    step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_hooks, step, fail)
    with pytest.raises(KeyError, match="while starting"):
        full_profile().start()
    assert _hooks.active_hooks() == {}
    assert sys.getprofile() is None


@pytest.mark.parametrize("step", STEPS)
def test_a_recording_that_fails_to_start_leaves_the_outer_one_at_work(
    step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with full_profile() as outer:
        before = _hooks.active_hooks()
        inner = full_profile()
        # the outer recording installs its call tracer again when the inner one is off
        arguments: list[Any] = []
        real = getattr(_hooks, step)

        def fail_once(*given: Any, **named: Any) -> Any:
            arguments.append(given)
            return fail() if len(arguments) == 1 else real(*given, **named)

        monkeypatch.setattr(_hooks, step, fail_once)
        with pytest.raises(KeyError, match="while starting"):
            inner.start()
        assert _hooks.active_hooks() == before
        X + X
    assert ops(outer) == ["aten::add"]


def test_an_exception_inside_a_recording_leaves_nothing_on() -> None:
    with pytest.raises(KeyError), full_profile(), record_function("outer"):
        raise KeyError
    assert _hooks.active_hooks() == {}


def test_python_calls_are_traced_again_after_an_inner_recording() -> None:
    def called_before_an_op() -> None: ...

    def called_after_an_op() -> None: ...

    with profile(with_stack=True) as outer:
        X + X
        with profile():
            X * X
        called_before_an_op()
        X - X
        called_after_an_op()
    for name in ("called_before_an_op", "called_after_an_op"):
        assert sum(event.name.endswith(name) for event in tree(outer)) == 1


def test_the_outer_recording_has_its_hooks_again_after_an_inner_one() -> None:
    with full_profile():
        before = _hooks.active_hooks()
        with full_profile() as inner:
            recordings = _hooks.active_hooks()["recordings"]
            assert recordings[0] is before["recordings"][0]
            assert recordings[1] is inner.profiler._recorder
        after = _hooks.active_hooks()
    assert after == before


def test_a_recording_hears_of_frees_while_it_waits_for_another() -> None:
    with profile(profile_memory=True) as outer:
        kept = X + X
        with profile(profile_memory=True):
            del kept
    freed = [e.nbytes() for e in outer.profiler.kineto_results.events() if e.name() == "[memory]"]
    assert freed == [-8]


def test_recordings_may_end_in_any_order() -> None:
    first, second, third = full_profile(), full_profile(), full_profile()
    for prof in (first, second, third):
        prof.start()
    second.stop()
    X + X
    third.stop()
    X - X
    first.stop()
    assert _hooks.active_hooks() == {}
    assert (ops(first), ops(second), ops(third)) == (["aten::sub"], [], ["aten::add"])


def test_a_recording_that_ends_on_another_thread_leaves_nothing_on() -> None:
    prof = full_profile()
    prof.start()
    thread = threading.Thread(target=prof.stop)
    thread.start()
    thread.join()
    assert _hooks.active_hooks() == {}


# -------------------------------------------------------------------------------- pausing, muting, declaring


def test_a_paused_recording_is_under_way_and_sees_nothing() -> None:
    with full_profile() as prof:
        before = _hooks.active_hooks()
        prof.pause()
        names = set(_hooks.active_hooks())
        X + X
        prof.resume()
        after = _hooks.active_hooks()
        X - X
    assert names == {"recordings", "collector_callbacks", "on_allocate", "register"}
    assert after == before
    assert ops(prof) == ["aten::sub"]


def test_muting_hides_ops_from_recordings_and_observers_until_it_ends() -> None:
    observer = Passing()
    with profile() as prof, _hooks.observed_by(observer):
        with muted():
            X + X
            assert _dispatch.recorder is None
        X - X
    assert ops(prof) == ["aten::sub"]
    assert observer.count == 1


def test_routed_ops_pass_through_run() -> None:
    with routed():
        assert (X + X).tolist() == [2, 2]
        with profile() as prof:
            X - X
        assert set(_hooks.active_hooks()) == {"routed", "recorder"}
    assert ops(prof) == ["aten::sub"]


@contextmanager
def paused(prof: profile) -> Iterator[None]:
    prof.pause()
    yield
    prof.resume()


@pytest.mark.parametrize(
    ("name", "meanwhile"),
    [
        ("seen", lambda prof: profile()),
        ("paused", paused),
        ("observed", lambda prof: _hooks.observed_by(Passing())),
        ("muted", lambda prof: muted()),
    ],
)
def test_an_op_that_is_declared_meanwhile_is_recorded_afterwards(name: str, meanwhile: Any) -> None:
    library = torch.library.Library("test_hooks_" + name, "DEF")
    with profile() as prof:
        with meanwhile(prof):
            library.define("late(Tensor x) -> Tensor")
            library.impl("late", lambda x: x + 1, "CPU")
        getattr(torch.ops, "test_hooks_" + name).late(X)
    assert ops(prof) == [f"test_hooks_{name}::late"]


# -------------------------------------------------------------------------------- child processes


def in_child(function: Callable[[], Any]) -> Any:
    """What a function gives in a forked process."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(writing, json.dumps(function()).encode())
        finally:
            os._exit(0)
    os.close(writing)
    with open(reading, "rb") as answer:
        text = answer.read()
    os.waitpid(child, 0)
    return json.loads(text)


@needs_fork
@pytest.mark.parametrize("all_threads", [False, True])
def test_a_forked_child_starts_with_nothing_on(all_threads: bool) -> None:
    with full_profile(), full_profile(profile_all_threads=all_threads), _hooks.observed_by(Passing()):
        before = _hooks.active_hooks()
        in_the_child = in_child(lambda: list(_hooks.active_hooks()))
        assert _hooks.active_hooks() == before
    assert in_the_child == []


@needs_fork
def test_a_recording_that_is_stopped_in_a_child_has_recorded_nothing_there() -> None:
    prof = full_profile()

    def stop() -> Any:
        X - X
        prof.stop()
        return ops(prof), list(_hooks.active_hooks())

    prof.start()
    X + X
    in_the_child = in_child(stop)
    X * X
    prof.stop()
    assert in_the_child == [[], []]
    assert ops(prof) == ["aten::add", "aten::mul"]


@needs_fork
def test_a_child_forgets_the_memory_that_it_frees() -> None:
    kept = []
    with profile(profile_memory=True):
        kept.append(torch.empty(1 << 20))

    def total() -> int:
        with profile(profile_memory=True) as prof:
            X + X
        fields = [event.extra_fields for event in tree(prof)]
        return max(each.total_allocated for each in fields if hasattr(each, "total_allocated"))

    before = total()
    _, after = in_child(lambda: [kept.clear(), total()])
    assert before - after == 4 << 20


class HooksOfWorker(Dataset):
    """Gives how many hooks are on where an item is fetched."""

    def __len__(self) -> int:
        return 2

    def __getitem__(self, index: int) -> int:
        return len(_hooks.active_hooks())


@needs_fork
def test_workers_of_a_loader_start_with_nothing_on() -> None:
    with full_profile(), _hooks.observed_by(Passing()):
        counts = [int(batch) for batch in DataLoader(HooksOfWorker(), num_workers=2)]
    assert counts == [0, 0]


# -------------------------------------------------------------------------------- checkpoints, views


def checkpointed(function: Callable[[Any], Any]) -> None:
    leaf = torch.ones(2, requires_grad=True)
    checkpoint(function, leaf, use_reentrant=False, debug=True).sum().backward()


def test_a_checkpoint_inside_a_recording_restores_its_hooks() -> None:
    with full_profile() as prof:
        before = _hooks.active_hooks()
        checkpointed(lambda t: t.sin() * 2)
        assert _hooks.active_hooks() == before
    assert sum(e.name == "aten::sin" for e in prof.events()) == 2  # the forward pass and its recomputation


def test_a_recording_that_ends_inside_a_checkpoint_stays_off() -> None:
    prof = profile()
    prof.start()

    def stops(t: Any) -> Any:
        if prof.profiler._results is None:
            prof.stop()
        return t.sin()

    checkpointed(stops)
    assert _hooks.active_hooks() == {}


def test_a_recording_that_starts_inside_a_checkpoint_goes_on_after_it() -> None:
    prof = profile()

    def starts(t: Any) -> Any:
        if prof.profiler is None:
            prof.start()
        return t.sin()

    checkpointed(starts)
    X - X
    prof.stop()
    assert ops(prof)[-1] == "aten::sub"


def test_a_checkpoint_that_fails_leaves_nothing_on() -> None:
    with pytest.raises(KeyError):
        checkpointed(fail)
    assert _hooks.active_hooks() == {}


def test_the_new_history_of_a_view_is_not_a_recorded_op() -> None:
    leaf = torch.ones(4, requires_grad=True)
    base = leaf * 1
    view = base.as_strided((2,), (1,), 0)
    base.mul_(3)
    with profile() as prof:
        assert view.grad_fn.name() == "AsStridedBackward0"
        view.sum().backward()
    rows = {e.name: e for e in prof.events()}
    assert ops(prof)[0] == "aten::sum"
    assert rows["AsStridedBackward0"].fwd_thread == rows["SumBackward0"].fwd_thread


# -------------------------------------------------------------------------------- one owner


PACKAGE = Path(torch.__file__).parent
SLOTS = {
    "_dispatch": {"recorder", "ranges", "calls"},
    "_storage": {"on_allocate", "register"},
}


def writes_to_slots(source: str, module: str = "") -> list[str]:
    """The places in a module's text that set a slot, or a list of callbacks of the interpreter's."""
    tree = ast.parse(source)
    modules = {
        (alias.asname or alias.name): alias.name
        for node in ast.walk(tree)
        if isinstance(node, (ast.Import, ast.ImportFrom))
        for alias in node.names
    }
    writes = []
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(value=ast.Name(id=owner), attr=name, ctx=ast.Store() | ast.Del()):
                written = name in SLOTS.get(modules.get(owner, ""), ())
            case ast.Call(func=ast.Name(id="setattr" | "delattr"), args=[ast.Name(id=owner), *_]):
                written = modules.get(owner) in SLOTS
            case ast.Subscript(slice=ast.Constant(value=str(name)), ctx=ast.Store() | ast.Del()):
                written = "globals" in ast.unparse(node.value).lower() and name in SLOTS["_dispatch"]
            case ast.Global(names=names):
                written = bool(SLOTS.get(module, set()) & set(names))
            case ast.Attribute(value=ast.Name(id="gc"), attr="callbacks"):
                written = True
            case _:
                written = False
        if written:
            writes.append(ast.unparse(node))
    return writes


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("", "from . import _dispatch\n_dispatch.recorder = None"),
        ("", "from .. import _dispatch as d\nbefore, d.ranges = d.ranges, None"),
        ("", "from . import _storage\n_storage.on_allocate: object = None"),
        ("", "from . import _storage\ndel _storage.register"),
        ("", "from . import _dispatch\nsetattr(_dispatch, 'calls', None)"),
        ("", "from . import _dispatch\n_dispatch._GLOBALS['recorder'] = None"),
        ("_dispatch", "def f():\n    global calls\n    calls = None"),
        ("", "import gc\ngc.callbacks.append(print)"),
    ],
)
def test_a_write_to_a_slot_is_noticed(module: str, source: str) -> None:
    assert len(writes_to_slots(source, module)) == 1


def test_no_module_but_the_owner_sets_a_slot() -> None:
    elsewhere = {
        str(path.relative_to(PACKAGE)): writes
        for path in PACKAGE.rglob("*.py")
        if path.name != "_recording_hooks.py"
        and (writes := writes_to_slots(path.read_text("utf-8"), path.stem))
    }
    assert elsewhere == {}
    assert len(writes_to_slots((PACKAGE / "_recording_hooks.py").read_text("utf-8"))) > len(SLOTS)


def reads_of_slots(source: str) -> list[str]:
    """The places in a module that look at a slot of the dispatcher, to tell whether something records."""
    tree = ast.parse(source)
    slots, aliases, reads = SLOTS["_dispatch"], set(), []
    for node in ast.walk(tree):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            aliases |= {a.asname or a.name for a in node.names if a.name == "_dispatch"}
            if isinstance(node, ast.ImportFrom) and (node.module or "").endswith("_dispatch"):
                reads += [a.name for a in node.names if a.name in slots]
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(value=ast.Name(id=owner), attr=name) if owner in aliases and name in slots:
                reads.append(ast.unparse(node))
            case ast.Call(
                func=ast.Name(id="getattr"), args=[ast.Name(id=owner), ast.Constant(value=name), *_]
            ):
                reads += [ast.unparse(node)] if owner in aliases and name in slots else []
    return reads


@pytest.mark.parametrize(
    "source",
    [
        "from . import _dispatch\nif _dispatch.recorder is None: pass",
        "from .. import _dispatch as d\nlistener = d.ranges",
        "from .._dispatch import calls",
        "from . import _dispatch\ngetattr(_dispatch, 'ranges', None)",
    ],
)
def test_a_look_at_a_slot_is_noticed(source: str) -> None:
    assert len(reads_of_slots(source)) == 1


def test_only_the_dispatcher_and_the_profiler_ask_whether_something_records() -> None:
    allowed = {"_dispatch.py", "_codegen.py", "_recording_hooks.py"}
    elsewhere = {
        str(path.relative_to(PACKAGE)): reads
        for path in PACKAGE.rglob("*.py")
        if path.name not in allowed
        and "profiler" not in path.relative_to(PACKAGE).parts
        and (reads := reads_of_slots(path.read_text("utf-8")))
    }
    assert elsewhere == {}
