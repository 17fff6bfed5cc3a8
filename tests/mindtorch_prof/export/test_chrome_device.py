"""Device rows of Chrome traces: written and read again, they are the same."""

from __future__ import annotations

import json
from pathlib import Path

import captures
import kineto_documents as documents
import pytest
from average_rows import rows
from kineto_documents import load_document

from mindtorch_prof import load


@pytest.mark.parametrize("style", ["cuda", "2021", "rocm", "xpu"])
def test_a_loaded_trace_of_a_device_is_the_same_after_it_was_written_again(
    style: str, tmp_path: Path
) -> None:
    first = load_document(documents.gpu(style))
    first.export_chrome_trace(tmp_path / "again.json")
    again = load(tmp_path / "again.json")
    assert rows(again.key_averages()) == rows(first.key_averages())
    assert [d.to_dict() for d in again.device_breakdown()] == [d.to_dict() for d in first.device_breakdown()]
    assert [dict(d) for d in again.trace.device.extra_table] == [
        dict(d) for d in first.trace.device.extra_table
    ]


def test_tasks_inside_a_collective_are_on_tracks_of_their_own_and_one_arrow_leads_to_it(
    tmp_path: Path,
) -> None:
    task = {"stream id": 4, "src rank": 0, "dst rank": 1}
    place = {"pid": captures.HCCL, "tid": 1}
    overlapping = {"ph": "X", "name": "Memcpy", **place, "ts": captures.us(150.0), "dur": 10.0, "args": task}
    folder = captures.text_capture(tmp_path / "a_ascend_pt", [*captures.text_events(), overlapping])
    load(folder).export_chrome_trace(str(tmp_path / "trace.json"))
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    tracks = [e["tid"] for e in events if e.get("cat") == "collective_task"]
    assert sorted(tracks) == [1_000_004, 2_000_004]
    (collective,) = [e for e in events if e["name"] == captures.COLLECTIVE[0]]
    assert collective["tid"] == 4
    ends = [e for e in events if e["ph"] == "f" and e["id"] == collective["args"]["correlation"]]
    assert [e["tid"] for e in ends] == [4]
    assert set(load(tmp_path / "trace.json").trace.device.stream.tolist()) == {2, 4}


def test_a_task_on_a_stream_with_the_largest_number_is_written(tmp_path: Path) -> None:
    stream = 2**63 - 2
    task = {"ph": "X", "cat": "collective_task", "name": "Memcpy", "pid": 0, "tid": 1, "ts": 5.0, "dur": 2.0}
    first = load_document([{**task, "args": {"device": 0, "stream": stream}}])
    first.export_chrome_trace(tmp_path / "again.json")
    assert load(tmp_path / "again.json").trace.device.stream.tolist() == [stream]
