"""Patterns: what torch matches in programs with costly habits, ours matches too, in torch's words."""

from __future__ import annotations

import functools
import importlib
import json
from pathlib import Path
from types import ModuleType
from typing import Any

import fact_files
import pattern_programs as programs
import pytest

import mindtorch_v2 as torch
from mindtorch_v2.profiler import _pattern_matcher as patterns
from mindtorch_v2.profiler import profile


@functools.cache
def recorded() -> dict[str, Any]:
    return fact_files.read("patterns.json")


@pytest.mark.parametrize("name", list(programs.PROGRAMS))
def test_each_pattern_matches_as_often_as_in_torch(name: str) -> None:
    prof = programs.run(torch, programs.PROGRAMS[name])
    found = {kind: len(getattr(patterns, kind)(prof).matched_events()) for kind in programs.PATTERNS}
    found["select"] = len(patterns.NamePattern(prof, "aten::select").matched_events())
    assert found == recorded()["counts"][name]


def test_patterns_speak_torchs_words() -> None:
    prof = programs.run(torch, "pass")
    for kind, (name, description, url, summary) in recorded()["words"].items():
        pattern = getattr(patterns, kind)(prof)
        assert (pattern.name, pattern.description, pattern.url) == (name, description, url)
        assert pattern.summary([1, 2]) == summary


@pytest.mark.parametrize("name", list(programs.REPORTS))
def test_the_report_and_its_file_are_torchs(name: str) -> None:
    made = programs.report(torch, patterns, name)
    assert json.loads(json.dumps(made)) == recorded()["report"][name]


def test_torch_itself_still_matches_what_was_recorded(torch_reference: ModuleType) -> None:
    theirs = importlib.import_module("torch.profiler._pattern_matcher")
    prof = programs.run(torch_reference, programs.PROGRAMS["everything"])
    found = {kind: len(getattr(theirs, kind)(prof).matched_events()) for kind in programs.PATTERNS}
    found["select"] = len(theirs.NamePattern(prof, "aten::select").matched_events())
    assert found == recorded()["counts"]["everything"]


def test_a_report_of_nothing_is_short(capsys: pytest.CaptureFixture[str]) -> None:
    patterns.report_all_anti_patterns(programs.run(torch, "x.add(x)"))
    rule = "-" * 40 + "TorchTidy Report" + "-" * 40
    assert capsys.readouterr().out == f"{rule}\nMatched Events:\nSummary:\n{rule}\n"
    patterns.report_all_anti_patterns(programs.run(torch, "step(adam)"), print_enable=False)
    assert capsys.readouterr().out == ""


def test_a_file_keeps_what_was_reported_before(tmp_path: Path) -> None:
    (tmp_path / "torchtidy_report.json").write_text('{"other.py": []}')
    patterns.report_all_anti_patterns(
        programs.run(torch, "step(adam, False)"), print_enable=False, json_report_dir=str(tmp_path)
    )
    found = json.loads((tmp_path / "torchtidy_report.json").read_text())
    assert found.pop("other.py") == []
    (rows,) = found.values()
    assert [set(row) for row in rows] == [{"line_number", "name", "url", "message"}] * len(rows)


def test_the_place_named_is_outside_the_library() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(2, 2))
    with profile(with_stack=True) as prof:
        model(torch.ones(1, 2))
    (linear,) = patterns.NamePattern(prof, "aten::linear").matched_events()
    file, line = patterns.source_code_location(linear).rsplit(":", 1)
    assert file.endswith("test_profiler_pattern_matcher.py")
    assert line.isdigit()
    assert patterns.source_code_location(None) == "No source code location found"


def test_one_finds_the_way_around_a_tree() -> None:
    with profile(record_shapes=True) as prof:
        a = torch.ones(2, 3)
        torch.nn.functional.linear(a, a).relu()
    pattern = patterns.NamePattern(prof, "aten::linear")
    (linear,) = pattern.matched_events()
    assert pattern.next_of(linear).name == "aten::relu"
    assert pattern.prev_of(linear).name == "aten::ones"
    assert [[e.name for e in side] for side in pattern.siblings_of(linear)] == [
        ["aten::ones"],
        ["aten::relu"],
    ]
    inner = linear.children[0].children[0]
    assert pattern.root_of(inner) is linear
    assert pattern.go_up_until(inner, lambda e: e.name == "aten::t").name == "aten::t"
    assert pattern.go_up_until(inner, lambda e: False) is linear
    assert patterns.input_shapes(linear) == ((2, 3), (2, 3), ())
    assert patterns.input_dtypes(linear) == (torch.float32, torch.float32, None)


def test_patterns_that_need_shapes_or_stacks_are_skipped_without_them() -> None:
    prof = programs.run(torch, "t.mm(t.ones(3, 3, dtype=half), t.ones(3, 3, dtype=half))", with_stack=False)
    assert patterns.MatMulDimInFP16Pattern(prof).skip
    assert patterns.MatMulDimInFP16Pattern(prof).matched_events() == []
    bare = programs.run(torch, "biased(images)", record_shapes=False)
    assert patterns.Conv2dBiasFollowedByBatchNorm2dPattern(bare).matched_events() == []
    assert patterns.FP32MatMulPattern(prof).skip  # nothing ran on a device


def test_a_benchmark_says_what_the_better_way_would_save() -> None:
    prof = programs.run(torch, "t.mm(t.ones(9, 9, dtype=half), t.ones(9, 9, dtype=half))")
    pattern = patterns.MatMulDimInFP16Pattern(prof, should_benchmark=True)
    text = pattern.summary(pattern.matched_events())
    assert text.startswith(f"{pattern.name}: 1 events matched. Total Estimated Speedup: ")
    assert text.endswith("X)")
    with pytest.raises(AssertionError, match="Torch not compiled with CUDA enabled"):
        patterns.ExtraCUDACopyPattern(prof).benchmark(pattern.matched_events())
    assert patterns.ExtraCUDACopyPattern(prof).benchmark([]) == {}


def test_a_pattern_of_ones_own_says_what_it_looks_for() -> None:
    class Sums(patterns.Pattern):
        def match(self, event: Any) -> bool:
            return event.name == "aten::sum"

    prof = programs.run(torch, "x.sum()\nx.sum()")
    assert len(Sums(prof).matched_events()) == 2
    with pytest.raises(NotImplementedError):
        patterns.Pattern(prof).matched_events()


def test_a_recording_that_runs_cannot_be_matched() -> None:
    with profile() as prof, pytest.raises(AssertionError, match="has not been stopped"):
        patterns.NamePattern(prof, "x")


def test_a_pattern_of_devices_has_nothing_to_measure_where_it_found_nothing():
    from mindtorch_v2.profiler._pattern_matcher import ExtraCUDACopyPattern, FP32MatMulPattern

    with profile(with_stack=True, record_shapes=True) as prof:
        torch.ones(2, 2) @ torch.ones(2, 2)
    for pattern in (ExtraCUDACopyPattern(prof), FP32MatMulPattern(prof)):
        assert pattern.benchmark(pattern.matched_events()) == {}
