"""Files that no profiler writes: every command gives an answer or one sentence, never a Python exception."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mindtorch_prof.cli import main

COMMANDS = (
    "show",
    "tree --python --depth 0",
    "summary",
    "doctor",
    "device",
    "stacks",
    "slice -o {}/out.json --name aten",
    "slice -o {}/out.json --steps 1",
    "merge -o {}/out.json",
    "convert --to chrome -o {}/out.json",
    "convert --to chrome --keep-metadata -o {}/out.json",
    "report -o {}/out.html",
)


def slice_of(name: str, category: str, start: float, length: float, **args: Any) -> dict[str, Any]:
    place = {"pid": 1, "tid": 1, "ts": start, "dur": length}
    return {"ph": "X", "cat": category, "name": name, **place, "args": args}


EVENTS = [
    slice_of("aten::mm", "cpu_op", 0, 100, **{"External id": 1}),
    slice_of("cudaLaunchKernel", "cuda_runtime", 10, 5, **{"External id": 1, "correlation": 1}),
    slice_of("gemm", "kernel", 50, 20, **{"External id": 1, "correlation": 1, "device": 0, "stream": 7}),
]


def frame(name: str, own: int, parent: int) -> dict[str, Any]:
    return slice_of(name, "python_function", own, 50 - own, **{"Python id": own, "Python parent id": parent})


def nested(levels: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(levels):
        value = [value]
    return value


FILES: dict[str, dict[str, Any]] = {
    "callers in a circle": {"traceEvents": [*EVENTS, frame("a", 1, 2), frame("b", 2, 1), frame("c", 3, 3)]},
    "properties are an object": {"traceEvents": EVENTS, "deviceProperties": {"id": 0}},
    "properties are a number": {"traceEvents": EVENTS, "deviceProperties": 7},
    "properties of other types": {"traceEvents": EVENTS, "deviceProperties": [1, None, "x", [], {"id": "a"}]},
    "huge step numbers": {
        "traceEvents": [
            *EVENTS,
            *(
                slice_of(f"ProfilerStep#{number}", "user_annotation", place * 200, 150)
                for place, number in enumerate(("9" * 30, 2**63, 2**63 - 1, 2**62, "9" * 5000, -1, 1))
            ),
        ]
    },
    "deep metadata": {"traceEvents": EVENTS, "note": nested(900)},
    "deep properties": {"traceEvents": EVENTS, "deviceProperties": nested(900)},
    "phases of other types": {
        "traceEvents": [
            *EVENTS,
            *({**EVENTS[0], "ph": phase} for phase in (1, None, True, [], {}, "", "XX", "E")),
        ]
    },
}


@pytest.mark.parametrize("file", FILES)
def test_a_hostile_file_gets_an_answer_or_one_sentence(
    file: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "trace.json"
    path.write_text(json.dumps(FILES[file]))
    for command in COMMANDS:
        words = command.format(tmp_path).split()
        code = main([words[0], str(path), *words[1:]])
        told = capsys.readouterr().err
        assert code in (0, 1, 2), command
        assert "Traceback" not in told, (command, told)


def test_metadata_that_nests_too_deep_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "trace.json"
    path.write_text(json.dumps(FILES["deep metadata"]))
    main(["doctor", str(path)])
    assert "metadata that nests deeper than 100 levels" in capsys.readouterr().out


def test_a_report_of_a_slice_without_ops_and_launches_is_written(tmp_path: Path) -> None:
    path, rest, page = (tmp_path / name for name in ("trace.json", "rest.json", "page.html"))
    path.write_text(json.dumps({"traceEvents": EVENTS}))
    assert main(["slice", str(path), "-o", str(rest), "--drop", "cpu_op,cuda_runtime,hip_runtime"]) == 0
    assert main(["report", str(rest), "-o", str(page)]) == 0
    assert page.stat().st_size > 0
