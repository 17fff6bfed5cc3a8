"""Tests of mindtorch_prof.load.spill: recordings read back from segments that were written by hand."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mindtorch_prof
from mindtorch_prof.inputs import Inputs, TensorInput
from mindtorch_prof.native_file import packed, packed_inputs
from mindtorch_prof.sealing.raw import RANGES, VARIANTS
from mindtorch_prof.settings import Settings
from mindtorch_prof.spill_file import VERSION, SpillFolder
from mindtorch_prof.trace import ANNOTATION, OP

COLUMNS = ["key", "start", "end", "sequence", "inputs"]


def inputs(shape: int) -> Any:
    return packed_inputs(Inputs([TensorInput((shape,), None, "float")], [1]))


def first_header(**facts: Any) -> dict[str, Any]:
    known = {
        "version": VERSION,
        "period_s": 0.25,
        "settings": packed(Settings(record_shapes=True, pid=5, thread=7)),
        "columns": COLUMNS,
        "main_thread": 7,
        "origin_ns": 1000,
        "begun_ns": 1,
    }
    return {"natives": [[7, 70]], "facts": {**known, **facts}}


def written(tmp_path: Path, *chunks: tuple[dict[str, Any], list[list[int]]]) -> Path:
    folder = SpillFolder(tmp_path)
    for header, rows in chunks:
        folder.write(header, [(("rows", 7), np.array(rows, np.int64).reshape(-1))] if rows else [])
    folder.close()
    return Path(folder.path)


ADD = [0, "aten::add", "Tensor", OP, 0, 0, True]


def test_tables_that_come_in_parts_explain_the_rows(tmp_path: Path) -> None:
    second = {
        "keys": [[RANGES, "outer", "", ANNOTATION, 7, 0, True]],
        "inputs": [inputs(3)],
        "depends": [False],
    }
    folder = written(
        tmp_path,
        ({**first_header(), "keys": [ADD], "inputs": [inputs(2)], "depends": [False]}, [[0, 10, 20, -1, 0]]),
        (second, [[0, 30, 40, -1, 1], [RANGES, 5, 50, -1, -1]]),
        ({"facts": {"ended": "finished", "ended_ns": 60}}, []),
    )
    for path in (tmp_path, folder):
        loaded = mindtorch_prof.load(path)
        trace = loaded.trace
        assert [trace.names[n] for n in trace.name] == ["outer", "aten::add", "aten::add"]
        assert [trace.input_table[n].dims for n in trace.inputs[1:]] == [[[2]], [[3]]]
        assert (trace.window_ns, trace.settings.pid, loaded.health.line()) == ((1, 60), 5, "")
    assert trace.settings.source == str(folder)


def test_calls_by_torch_show_the_inputs_and_children_that_were_noted(tmp_path: Path) -> None:
    child = ["aten::empty", "", 1, inputs(9), False, False]
    header = {
        **first_header(ended="finished", ended_ns=60),
        "keys": [ADD, [1, "aten::outer", "", OP, 0, 0, True]],
        "inputs": [inputs(2), inputs(4)],
        "depends": [True, False],
        "variants": [inputs(8)],
        "callers": [[0, "aten::outer", 1, VARIANTS]],
        "children": [["aten::add", "Tensor", VARIANTS, [child]]],
    }
    rows = [[0, 10, 20, -1, 0], [1, 5, 30, -1, 1], [0, 40, 50, -1, 0]]
    trace = mindtorch_prof.load(written(tmp_path, (header, rows))).trace
    shown = [(trace.names[n], trace.input_table[i].dims) for n, i in zip(trace.name, trace.inputs)]
    assert shown == [
        ("aten::outer", [[4]]),
        ("aten::add", [[8]]),
        ("aten::empty", [[9]]),
        ("aten::add", [[2]]),
    ]
    assert trace.n_synthetic == 1


def test_ranges_that_were_open_end_with_the_last_event(tmp_path: Path) -> None:
    header = {
        **first_header(),
        "keys": [ADD, [RANGES, "outer", "", ANNOTATION, 7, 0, True]],
        "inputs": [inputs(2)],
        "depends": [False],
        "open": [[7, [RANGES, 5, 0, -1, -1]]],
    }
    loaded = mindtorch_prof.load(written(tmp_path, (header, [[0, 10, 20, -1, 0]])))
    assert loaded.trace.end_ns.tolist() == [20, 20]
    assert loaded.health.unfinished == 1
    assert "was killed, crashed or called os._exit" in loaded.health.line()
    with pytest.raises(mindtorch_prof.BrokenTraceError, match="was killed"):
        mindtorch_prof.load(tmp_path, strict=True)


@pytest.mark.parametrize(
    ("facts", "line"),
    [
        ({"ended": "signal SIGTERM"}, "the recording ended early: signal SIGTERM"),
        (
            {"ended": "finished", "unwritten": 12, "write_error": "No space left on device"},
            "12 dropped; 12 events could not be written: No space left on device",
        ),
    ],
)
def test_the_health_says_how_it_ended(tmp_path: Path, facts: dict[str, Any], line: str) -> None:
    header = {**first_header(**facts), "keys": [ADD], "inputs": [inputs(2)], "depends": [False]}
    assert mindtorch_prof.load(written(tmp_path, (header, [[0, 1, 2, -1, 0]]))).health.line() == line


def test_what_is_no_recording_is_one_sentence(tmp_path: Path) -> None:
    folder = written(tmp_path, (first_header(version=VERSION + 1), []))
    with pytest.raises(mindtorch_prof.NotATraceError, match="install a later one"):
        mindtorch_prof.load(folder)
    (folder / "000001.segment").write_bytes(b"")
    with pytest.raises(mindtorch_prof.NotATraceError, match="without a whole chunk"):
        mindtorch_prof.load(folder)
    broken = written(tmp_path / "b", ({"facts": {"version": 1}}, []))
    with pytest.raises(mindtorch_prof.BrokenTraceError, match="damaged"):
        mindtorch_prof.load(broken)


def test_a_recording_is_read_without_the_library_that_made_it(tmp_path: Path) -> None:
    header = {**first_header(), "keys": [ADD], "inputs": [inputs(2)], "depends": [False]}
    folder = written(tmp_path, (header, [[0, 1, 2, -1, 0]]))
    code = "import sys, mindtorch_prof; trace = mindtorch_prof.load(sys.argv[1]).trace"
    code += "; print(len(trace), 'mindtorch_v2' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code, folder], capture_output=True, text=True, check=True)
    assert done.stdout == "1 False\n"
