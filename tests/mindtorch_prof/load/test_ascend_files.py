"""Files beside a trace_view.json: each may be absent or hold other columns, and times are exact."""

from __future__ import annotations

from pathlib import Path

import captures
import pytest
from average_rows import row

from mindtorch_prof import load
from mindtorch_prof.load.ascend_files import Files, nanoseconds


@pytest.mark.parametrize(
    "name",
    ["kernel_details.csv", "memory_record.csv", "operator_memory.csv", "communication.json"],
)
def test_each_file_beside_the_events_may_be_absent(name: str, tmp_path: Path) -> None:
    folder = captures.text_capture(tmp_path / "a_ascend_pt")
    (folder / "ASCEND_PROFILER_OUTPUT" / name).unlink()
    loaded = load(folder, strict=True)
    assert row(loaded, "c10d::allreduce_").self_device_time_total == captures.COMMUNICATION_US


def test_columns_that_a_version_does_not_write_are_empty(tmp_path: Path) -> None:
    output = captures.text_capture(tmp_path / "a_ascend_pt") / "ASCEND_PROFILER_OUTPUT"
    (output / "operator_memory.csv").write_text(
        f"Name,Size(KB),Allocation Time(us)\naten::mm,2,{captures.us(11)}\n"
    )
    allocations = Files(output).allocations()
    assert allocations is not None
    assert (allocations.size.tolist(), allocations.release.tolist()) == ([2048], [-1])


def test_a_file_that_is_no_table_is_empty(tmp_path: Path) -> None:
    output = captures.text_capture(tmp_path / "a_ascend_pt") / "ASCEND_PROFILER_OUTPUT"
    for name in ("kernel_details.csv", "memory_record.csv", "operator_memory.csv", "communication.json"):
        (output / name).write_bytes(b"\xff\x00\n1,2\n")
    files = Files(output)
    assert (files.kernels.rows, files.collectives) == ([], {})
    assert row(load(output), "aclnnMm").self_device_time_total > 0


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1736408883688177.930", 1736408883688177930),
        ("17", 17000),
        ("1.5", 1500),
        ("2.0009", 2000),
        (3, 3000),
    ],
)
def test_times_are_whole_nanoseconds(text: object, expected: int) -> None:
    assert nanoseconds([text]).tolist() == [expected]


@pytest.mark.parametrize("text", [str(10**25), "1e300", "-5", "9" * 40 + ".5"])
@pytest.mark.parametrize("file", ["kernel_details.csv", "operator_memory.csv", "memory_record.csv"])
def test_numbers_beyond_64_bits_in_any_column_are_left_out(tmp_path: Path, file: str, text: str) -> None:
    capture = captures.text_capture(tmp_path / "a_ascend_pt")
    (path,) = capture.rglob(file)
    head, *lines = path.read_text().splitlines()
    path.write_text("\n".join([head, *(",".join([text] * len(head.split(","))) for _ in lines)]))
    assert len(load(capture).trace) == len(load(captures.text_capture(tmp_path / "b_ascend_pt")).trace)
