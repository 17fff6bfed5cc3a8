"""Acceleration of real torch's profiler: the same objects and texts, undone exactly, refused if unchecked."""

from __future__ import annotations

import importlib.util
import sys
import warnings
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from mindtorch_prof import accelerate, from_torch
from mindtorch_prof.live.acceleration import CHECKED_VERSIONS, AccelerationError


def stand_in(version: str) -> Any:
    class profile:
        def _ensure_function_events(self) -> None: ...

    autograd = SimpleNamespace(profiler=SimpleNamespace(profile=profile))
    return SimpleNamespace(__version__=version, _C=object(), autograd=autograd)


def test_a_version_that_was_not_checked_is_refused_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", stand_in("2.99.0"))
    with pytest.raises(AccelerationError, match=r"torch 2\.99\.0 was not checked.*2\.13.*from_torch"):
        accelerate()
    monkeypatch.setitem(sys.modules, "torch", stand_in("2.4.1"))
    with pytest.raises(AccelerationError, match="when a profile stops"):
        accelerate()


def test_torch_must_be_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)  # type: ignore[arg-type]
    with pytest.raises(AccelerationError, match="not imported"):
        accelerate()


def test_leaving_puts_torch_s_own_method_back(monkeypatch: pytest.MonkeyPatch) -> None:
    torch = stand_in(f"{CHECKED_VERSIONS[-1]}.0+cpu")
    monkeypatch.setitem(sys.modules, "torch", torch)
    before = dict(vars(torch.autograd.profiler.profile))
    with accelerate():
        assert vars(torch.autograd.profiler.profile) != before
        with pytest.raises(AccelerationError, match="already"):
            accelerate()
    assert dict(vars(torch.autograd.profiler.profile)) == before
    on = accelerate()
    on.undo()
    on.undo()
    assert dict(vars(torch.autograd.profiler.profile)) == before


# ------------------------------------------------------------------------------------------------ real torch


def recorded(torch: Any, **settings: Any) -> Any:
    model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        config = torch._C._profiler._ExperimentalConfig(verbose=True)
        with torch.profiler.profile(experimental_config=config, **settings) as prof:
            model(torch.ones(2, 8)).sum().backward()
    return prof


@pytest.mark.parametrize(
    "settings",
    [{}, {"record_shapes": True, "profile_memory": True}, {"with_stack": True, "with_flops": True}],
)
def test_answers_are_torch_s_own(
    torch_reference: ModuleType, settings: dict[str, Any], tmp_path: Path
) -> None:
    torch: Any = torch_reference
    if ".".join(torch.__version__.split(".")[:2]) not in CHECKED_VERSIONS:
        pytest.skip(f"torch {torch.__version__} is not among the checked versions")
    prof = recorded(torch, **settings)
    inner = prof.profiler

    def answers() -> list[Any]:
        events = prof.events()
        if settings.get("with_stack"):
            prof.export_stacks(str(tmp_path / "stacks.txt"))
        stacks = (tmp_path / "stacks.txt").read_text() if settings.get("with_stack") else ""
        return [
            [repr(event) for event in events],
            prof.key_averages().table(sort_by="cpu_time_total"),
            prof.key_averages(group_by_input_shape=True, group_by_stack_n=2).table(),
            [repr(row) for row in prof.key_averages()],
            repr(events.total_average()),
            stacks,
            type(events).__module__,
        ]

    theirs = answers()
    inner._function_events = None
    with accelerate():
        events = prof.events()
        assert isinstance(events, torch.autograd.profiler_util.EventList)
        assert isinstance(events[0], torch.autograd.profiler_util.FunctionEvent)
        assert answers() == theirs


# programs of shared/parity beside the checkout, each with `build(torch)` and `run(torch, state)`
PROGRAMS = (
    "adamw_schedule annotations cnn cross_entropy_adam dataloader_steps elementwise indexing mlp_sgd "
    "products recurrent reductions threads threads_all transformer_block"
).split()


@pytest.fixture(scope="session")
def parity() -> Path:
    for parent in Path(__file__).resolve().parents:
        folder = parent / "shared" / "parity"
        if folder.is_dir():
            return folder
    pytest.skip("NOT CHECKED: there is no folder shared/parity beside the checkout")


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_of_others_give_torch_s_tables(
    torch_reference: ModuleType, parity: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch: Any = torch_reference
    if ".".join(torch.__version__.split(".")[:2]) not in CHECKED_VERSIONS:
        pytest.skip(f"torch {torch.__version__} is not among the checked versions")
    for folder in (parity, parity / "cases"):
        monkeypatch.syspath_prepend(str(folder))
    spec = importlib.util.spec_from_file_location("parity_case", parity / "cases" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    case: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(case)
    compared: list[str] = []

    def compare(prof: Any) -> None:
        ways = ({}, {"group_by_input_shape": True})
        theirs = [prof.key_averages(**how).table(row_limit=-1) for how in ways]
        live = from_torch(prof)
        assert [live.key_averages(**how).table(row_limit=-1) for how in ways] == theirs
        prof.profiler._function_events = None
        with accelerate():
            assert [prof.key_averages(**how).table(row_limit=-1) for how in ways] == theirs
        compared.extend(theirs)

    config = {}
    if getattr(case, "PROFILE_ALL_THREADS", False):
        config["experimental_config"] = torch._C._profiler._ExperimentalConfig(profile_all_threads=True)
    settings = {"record_shapes": True, "profile_memory": True, "with_flops": True, **config}
    plan = getattr(case, "SCHEDULE", None)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        state = case.build(torch)
        if plan is not None:
            settings |= {"schedule": torch.profiler.schedule(**plan), "on_trace_ready": compare}
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], **settings) as prof:
            case.run(torch, state, prof) if plan is not None else case.run(torch, state)
        if plan is None:
            compare(prof)
    assert compared
    assert all("Self CPU time total: " in table for table in compared)
