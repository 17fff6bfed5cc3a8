"""The Trace: plain data that nothing can change after it was made, wherever it comes from."""

from __future__ import annotations

import dataclasses
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fact_files import FACTS

import mindtorch_prof
import mindtorch_v2 as torch
from mindtorch_prof.export.chrome import export_chrome_trace
from mindtorch_prof.inputs import Inputs
from mindtorch_prof.settings import Settings
from mindtorch_prof.trace import Trace

ALL = {
    "record_shapes": True,
    "profile_memory": True,
    "with_stack": True,
    "with_flops": True,
    "with_modules": True,
}


def recorded() -> Trace:
    model = torch.nn.Linear(3, 2)
    with torch.profiler.profile(**ALL) as prof:
        model(torch.ones(4, 3)).sum().backward()
    return prof._finished().trace


def loaded() -> Trace:
    return mindtorch_prof.load(FACTS / "torch_trace.json.gz").trace


@pytest.fixture(params=[recorded, loaded], ids=["recorded", "loaded"])
def trace(request: pytest.FixtureRequest) -> Trace:
    return request.param()


def parts(value: Any, path: str = "trace") -> Iterator[tuple[str, Any]]:
    """Everything that a trace is made of, with where it stands."""
    yield path, value
    if dataclasses.is_dataclass(value):
        for field in dataclasses.fields(value):
            yield from parts(getattr(value, field.name), f"{path}.{field.name}")
    elif isinstance(value, (tuple, list)) and not isinstance(value, str):
        for place, item in enumerate(value):
            yield from parts(item, f"{path}[{place}]")
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from parts(item, f"{path}[{key!r}]")


def test_no_column_can_be_written_to(trace: Trace) -> None:
    columns = [(path, value) for path, value in parts(trace) if isinstance(value, np.ndarray) and value.size]
    assert len(columns) > 12
    for path, column in columns:
        with pytest.raises(ValueError, match="read-only"):
            column[...] = 0
        assert not column.flags.writeable, path


def test_no_field_can_be_assigned(trace: Trace) -> None:
    for part in (
        trace,
        trace.memory,
        trace.frames,
        trace.device,
        trace.tensor_ids,
        trace.settings,
        trace.health,
    ):
        for field in dataclasses.fields(part):
            with pytest.raises(dataclasses.FrozenInstanceError):
                setattr(part, field.name, None)


def test_settings_cannot_be_changed_inside(trace: Trace) -> None:
    for change in (
        lambda d: d.__setitem__(1, 2),
        lambda d: d.update({1: 2}),
        lambda d: d.clear(),
        lambda d: d.pop(1, None),
    ):
        with pytest.raises(TypeError, match="cannot be changed"):
            change(trace.settings.threads)


def test_a_trace_holds_data_and_nothing_that_runs(trace: Trace) -> None:
    plain = (str, bytes, int, float, complex, bool, type(None), np.ndarray, tuple, list, dict, Inputs)
    for path, value in parts(trace):
        if dataclasses.is_dataclass(value):
            assert type(value).__module__.startswith("mindtorch_prof."), path
        elif not hasattr(value, "__getitem__"):
            assert isinstance(value, plain), path


def test_a_trace_travels_to_another_process(trace: Trace) -> None:
    copy = pickle.loads(pickle.dumps(trace))
    assert copy.settings == trace.settings
    assert copy.names == trace.names
    np.testing.assert_array_equal(copy.start_ns, trace.start_ns)
    assert [inputs.dims for inputs in copy.input_table] == [inputs.dims for inputs in trace.input_table]
    assert not copy.start_ns.flags.writeable


def test_a_file_gives_the_inputs_that_were_recorded(tmp_path: Path) -> None:
    with torch.profiler.profile(**ALL) as prof:
        x = torch.ones(4, 3)
        torch.cat([x, x]).view(-1, 3).mul_(0.5).index_put_((torch.tensor([0]),), torch.ones(3))
        torch.ones(2, dtype=torch.uint16).clone()
    path = str(tmp_path / "t.json")
    prof.export_chrome_trace(path)
    live, read = prof._finished().trace, mindtorch_prof.load(path).trace
    assert len(live) == len(read)
    for row in range(len(live)):
        ours, theirs = (t.input_table[t.inputs[row]] for t in (live, read))
        for field in ("concrete", "types", "strides", "dims", "shapes", "values"):
            assert getattr(ours, field) == getattr(theirs, field), (live.names[live.name[row]], field)


def test_the_settings_of_a_recording_are_read_back_from_its_file(tmp_path: Path) -> None:
    trace = recorded()
    path = tmp_path / "t.json.gz"
    export_chrome_trace(trace, path)
    read = mindtorch_prof.load(path).trace.settings
    for field in (
        "record_shapes",
        "profile_memory",
        "with_stack",
        "with_flops",
        "with_modules",
        "pid",
        "trace_id",
    ):
        assert getattr(read, field) == getattr(trace.settings, field), field
    assert read.from_file
    assert Settings() == Settings(threads={})
