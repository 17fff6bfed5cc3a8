"""Commands that read traces, on a hand-made file whose numbers are known: groups, trees, health, exports."""

from __future__ import annotations

import csv
import gzip
import io
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from mindtorch_prof import cli
from mindtorch_prof.analysis.call_tree import call_tree
from mindtorch_prof.analysis.categories import category
from mindtorch_prof.analysis.doctor import doctor
from mindtorch_prof.analysis.folded_stacks import folded
from mindtorch_prof.analysis.groups import GroupError, groups
from mindtorch_prof.analysis.steps_table import steps_table
from mindtorch_prof.analysis.summary import summary, summary_text
from mindtorch_prof.analysis.tables import TABLES
from mindtorch_prof.load import load
from mindtorch_prof.torch_api.event_columns import list_columns

HOSTILE = "evil\x1b[31m|<img>\n=1+1"


def event(
    name: str, start: float, length: float, cat: str = "cpu_op", tid: int = 7, **args: Any
) -> dict[str, Any]:
    return {
        "ph": "X",
        "cat": cat,
        "name": name,
        "pid": 1,
        "tid": tid,
        "ts": start,
        "dur": length,
        "args": args,
    }


def kernel(name: str, start: float, length: float, correlation: int, stream: int = 0) -> dict[str, Any]:
    made = event(name, start, length, "kernel", stream, device=0, stream=stream, correlation=correlation)
    return {**made, "pid": 0}


def launch(start: float, correlation: int, external: int) -> dict[str, Any]:
    return event(
        "cudaLaunchKernel", start, 2, "cuda_runtime", correlation=correlation, **{"External id": external}
    )


def one_step(number: int, at: float) -> list[dict[str, Any]]:
    """100 us: a module's linear (50 us: t 10, addmm 30) and a copy (10 us), with a kernel of 20 us each."""
    ids = [number * 10 + i for i in range(1, 5)]
    return [
        event(f"ProfilerStep#{number}", at, 100, "user_annotation"),
        event(
            "nn.Module: Linear_0",
            at + 5,
            60,
            "python_function",
            **{"Python id": ids[0], "Python module id": 0},
        ),
        event("aten::linear", at + 10, 50, **{"External id": ids[0], "Input Dims": [[2, 4], [4, 4]]}),
        event("aten::t", at + 10, 10, **{"External id": ids[1], "Input Dims": [[4, 4]]}),
        event("aten::addmm", at + 25, 30, **{"External id": ids[2], "Input Dims": [[4], [2, 4], [4, 4]]}),
        launch(at + 30, ids[2], ids[2]),
        event("aten::copy_", at + 80, 10, **{"External id": ids[3]}),
        launch(at + 82, ids[3], ids[3]),
        kernel("ampere_sgemm", at + 40, 20, ids[2]),
        kernel("Memcpy DtoH", at + 85, 10, ids[3]),
    ]


def written(path: Path, events: list[dict[str, Any]], **more: Any) -> Path:
    document = {
        "schemaVersion": 1,
        "deviceProperties": [{"id": 0, "name": "card"}],
        "traceEvents": events,
        **more,
    }
    data = json.dumps(document).encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("reading")
    events = [e for number in (1, 2, 3) for e in one_step(number, 1000.0 + 110 * number)]
    events.append(event(HOSTILE, 5000, 3, tid=8))
    return str(written(folder / "trace.json.gz", events))


@pytest.fixture(scope="module")
def trace(path: str) -> Any:
    return load(path)


def printed(capsys: pytest.CaptureFixture[str], *words: str, code: int = 0) -> str:
    assert cli.main(list(words)) == code
    return capsys.readouterr().out


# ------------------------------------------------------------------------------------ groups


def by(sheet: Any, key: str, value: str) -> dict[Any, Any]:
    return dict(zip(sheet[key].tolist(), sheet[value].tolist()))


def test_rows_by_name_are_those_of_key_averages(trace: Any) -> None:
    sheet = groups(trace)
    averages = {row.key: row for row in trace.key_averages() if row.device_type.name == "CPU"}
    own = by(sheet, "name", "self_cpu_time_total")
    for name, row in averages.items():
        assert own[name] == pytest.approx(row.self_cpu_time_total), name
        assert by(sheet, "name", "cpu_time_total")[name] == pytest.approx(row.cpu_time_total)
        assert by(sheet, "name", "count")[name] == row.count
        assert by(sheet, "name", "self_device_time_total")[name] == pytest.approx(row.self_device_time_total)
    assert own["aten::linear"] == pytest.approx(3 * 10)
    assert by(sheet, "name", "self_device_time_total")["ampere_sgemm"] == pytest.approx(60)


def test_groups_without_names_count_nothing_twice(trace: Any) -> None:
    steps = groups(trace, "step")
    assert by(steps, "step", "cpu_time_total") == pytest.approx({1: 100, 2: 100, 3: 100, None: 3})
    assert by(steps, "step", "self_cpu_time_total") == pytest.approx({1: 100, 2: 100, 3: 100, None: 3})
    assert by(steps, "step", "self_device_time_total") == pytest.approx({1: 30, 2: 30, 3: 30, None: 0})
    categories = groups(trace, "category")
    assert by(categories, "category", "cpu_time_total")["matmul"] == pytest.approx(
        150
    )  # addmm is inside linear
    assert by(categories, "category", "self_device_time_total")["matmul"] == pytest.approx(60)
    assert sum(categories["self_device_share"].tolist()) == pytest.approx(1)
    assert sum(categories["self_cpu_share"].tolist()) == pytest.approx(1)


def test_groups_by_module_thread_shape_and_stack(trace: Any) -> None:
    modules = groups(trace, "module")
    assert by(modules, "module", "self_cpu_time_total")["Linear_0"] == pytest.approx(150)
    assert by(modules, "module", "self_device_time_total")["Linear_0"] == pytest.approx(60)
    threads = groups(trace, ("thread",))
    assert sorted(threads["cpu_time_total"].tolist()) == pytest.approx([0, 3, 300])  # a stream, two threads
    shapes = groups(trace, ["name", "shape"])
    assert [[4, 4]] in shapes["input_shapes"].tolist()
    assert groups(trace, "name,stack:2").n_rows == groups(trace).n_rows


@pytest.mark.parametrize("key", ["", "colour", "step:2", "stack:0", "stack:x"])
def test_keys_that_nothing_can_be_grouped_by_are_refused(trace: Any, key: str) -> None:
    with pytest.raises(GroupError, match=r"cannot group|no key to group"):
        groups(trace, [key] if key else [])


def test_spreads_are_those_of_the_single_events(tmp_path: Path) -> None:
    lengths = [10, 20, 30, 40, 100]
    events = [event("aten::add", 200.0 * i, length) for i, length in enumerate(lengths)]
    row = groups(load(written(tmp_path / "t.json", events)), stats=True).rows()[0]
    assert [row[key] for key in ("min", "p50", "max", "first")] == pytest.approx([10, 30, 100, 10])
    assert row["p95"] == pytest.approx(88)
    assert row["std"] == pytest.approx(31.622776601)


def test_work_of_the_backward_pass_belongs_to_the_module_of_its_forward_op(tmp_path: Path) -> None:
    events = [
        event("nn.Module: Linear_0", 0, 50, "python_function", **{"Python id": 1, "Python module id": 0}),
        event("aten::addmm", 10, 20, **{"Sequence number": 5, "Fwd thread id": 0}),
        event("AddmmBackward0", 100, 40, **{"Sequence number": 5, "Fwd thread id": 1}),
        event("aten::mm", 110, 20),
    ]
    sheet = groups(load(written(tmp_path / "t.json", events)), "module")
    assert by(sheet, "module", "self_cpu_time_total")["Linear_0"] == pytest.approx(60)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("aten::addmm", "matmul"),
        ("AddmmBackward0", "matmul"),
        ("aten::conv2d", "convolution"),
        ("aten::convert_element", "other"),
        ("aten::clamp_min", "pointwise"),
        ("aten::_log_softmax", "reduction"),
        ("aten::native_layer_norm", "normalization"),
        ("aten::scaled_dot_product_attention", "attention"),
        ("aten::nll_loss_forward", "loss"),
        ("aten::max_pool2d", "pooling"),
        ("aten::embedding", "indexing"),
        ("aten::_to_copy", "copy"),
        ("aten::transpose", "shape"),
        ("aten::empty_strided", "creation"),
        ("aten::uniform_", "random"),
        ("aten::sum", "reduction"),
        ("nccl:all_reduce", "communication"),
        ("Optimizer.step#SGD.step", "optimizer"),
        ("torch::autograd::AccumulateGrad", "autograd"),
        ("ampere_sgemm_128x64_tn", "matmul"),
        ("Memcpy HtoD (Pageable -> Device)", "copy"),
    ],
)
def test_names_tell_categories(name: str, expected: str) -> None:
    assert category(name) == expected


# ------------------------------------------------------------------------------------ steps, tree, stacks


def test_the_table_of_steps_says_how_busy_cpu_and_device_were(trace: Any) -> None:
    sheet = steps_table(trace)
    assert sheet["step"].tolist() == [1, 2, 3]
    assert sheet["duration_us"].tolist() == pytest.approx([100, 100, 100])
    assert sheet["busy_us"].tolist() == pytest.approx([60, 60, 60])
    assert sheet["device_busy_us"].tolist() == pytest.approx([30, 30, 30])
    assert sheet["device_events"].tolist() == [2, 2, 2]


def test_the_tree_merges_equal_paths_and_shows_modules(trace: Any) -> None:
    rows = [
        (row["depth"], row["name"], row["count"], row["cpu_time_total"]) for row in call_tree(trace).rows()
    ]
    inner = [row for row in rows if row[1] != HOSTILE][:5]
    assert inner[0][0] == 0  # the thread
    assert inner[1] == (1, "ProfilerStep*", 3, pytest.approx(300))
    assert inner[2] == (2, "nn.Module: Linear_0", 3, pytest.approx(180))
    assert inner[3] == (3, "aten::linear", 3, pytest.approx(150))
    assert inner[4] == (4, "aten::addmm", 3, pytest.approx(90))
    assert all(depth < 2 for depth, *_ in [(r["depth"],) for r in call_tree(trace, depth=2).rows()])
    assert "nn.Module: Linear_0" not in call_tree(trace, calls="none")["name"].tolist()
    assert call_tree(trace, min_share=0.5).n_rows < call_tree(trace).n_rows


def test_folded_stacks_add_up_to_the_own_times(trace: Any) -> None:
    lines = folded(trace, by="ops")
    assert dict(lines)["ProfilerStep*;aten::linear;aten::addmm;cudaLaunchKernel"] == 6
    assert sum(value for _, value in lines) == 303
    assert sum(value for _, value in folded(trace, by="ops", device=True)) == 90
    with pytest.raises(ValueError, match="cannot fold by 'x'"):
        folded(trace, by="x")


# ------------------------------------------------------------------------------------ health


def codes(path: Path, events: list[dict[str, Any]]) -> set[str]:
    return {finding.code for finding in doctor(load(written(path, events)))}


def test_a_sound_trace_has_no_findings(trace: Any) -> None:
    assert [finding for finding in doctor(trace) if finding.severity != "info"] == []


def test_missing_steps_and_steps_without_device_events_are_found(tmp_path: Path) -> None:
    events = [
        *one_step(1, 1000.0),
        *one_step(3, 2000.0),
        event("ProfilerStep#4", 2200, 10, "user_annotation"),
    ]
    found = {finding.code: finding for finding in doctor(load(written(tmp_path / "t.json", events)))}
    assert found["missing_steps"].where == "2"
    assert found["steps_without_device_events"].where == "4"
    assert found["steps_without_events"].count == 1


def test_lost_launches_and_overlapping_kernels_are_found(tmp_path: Path) -> None:
    events = [event("aten::mm", 0, 50), kernel("a", 10, 20, 77), kernel("b", 15, 20, 78)]
    assert {"device_alone", "device_overlap"} <= codes(tmp_path / "t.json", events)


def test_overlaps_duplicates_and_empty_traces_are_found(tmp_path: Path) -> None:
    overlapping = [
        event("aten::a", 0, 50),
        event("aten::b", 25, 50),
        event("aten::c", 200, 9),
        event("aten::c", 200, 9),
    ]
    found = codes(tmp_path / "t.json", overlapping)
    assert "overlap" in found
    assert codes(tmp_path / "e.json", []) == {"empty"}


def test_doctor_ends_with_1_if_it_found_something(
    path: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "complete and consistent" in printed(capsys, "doctor", path)
    sick = str(written(tmp_path / "sick.json", [*one_step(1, 0.0), *one_step(3, 500.0)]))
    assert "[missing_steps]" in printed(capsys, "doctor", sick, code=1)
    assert json.loads(printed(capsys, "doctor", sick, "--format", "json", code=1))["healthy"] is False


# ------------------------------------------------------------------------------------ summary


def test_the_summary_is_short_and_says_what_took_the_time(
    trace: Any, path: str, capsys: pytest.CaptureFixture[str]
) -> None:
    data = summary(trace)
    assert data["steps"]["p50_us"] == pytest.approx(100)
    assert data["recorded"]["device_events"] == 6
    assert data["kernels"][0]["name"] == "ampere_sgemm"
    assert data["categories"][0]["category"] == "matmul"
    assert any("the device is idle" in text for text in data["looks_wrong"])
    for markdown in (False, True):
        assert len(summary_text(data, markdown=markdown).splitlines()) <= 60
    assert json.loads(printed(capsys, "summary", path, "--format", "json"))["format_version"] == 1


def test_the_summary_tells_of_a_slow_first_step(tmp_path: Path) -> None:
    events = [
        event(f"ProfilerStep#{i}", 1000.0 * i, 500 if i == 0 else 50, "user_annotation") for i in range(4)
    ]
    data = summary(load(written(tmp_path / "t.json", events)))
    assert data["looks_wrong"][0].startswith("step 0 takes 10.0 × the median")


def test_the_summary_of_nothing_is_a_page_too(tmp_path: Path) -> None:
    data = summary(load(written(tmp_path / "t.json", [])))
    assert "the trace has no events" in summary_text(data)


# ------------------------------------------------------------------------------------ printing


def test_every_format_has_the_same_rows(path: str, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["show", path, "--group-by", "category", "--no-name", "--sort-by", "self_cpu"]
    data = json.loads(printed(capsys, *words, "--format", "json"))
    rows = list(csv.DictReader(io.StringIO(printed(capsys, *words, "--format", "csv"))))
    assert [row["category"] for row in rows] == [row["category"] for row in data["rows"]]
    assert [float(row["self_cpu_time_total"]) for row in rows] == [
        row["self_cpu_time_total"] for row in data["rows"]
    ]
    assert list(rows[0]) == list(data["rows"][0])
    assert data["rows_in_all"] == len(rows)
    lines = printed(capsys, *words, "--format", "md").splitlines()
    assert [line.split(" | ")[0][2:] for line in lines[2:]] == [row["category"] for row in rows]
    assert len(printed(capsys, *words).splitlines()) == len(rows) + 2
    assert printed(capsys, *words) == printed(capsys, *words)


def test_top_cuts_rows_and_0_shows_all(path: str, capsys: pytest.CaptureFixture[str]) -> None:
    all_rows = json.loads(printed(capsys, "show", path, "--top", "0", "--format", "json"))["rows"]
    two = json.loads(printed(capsys, "show", path, "--top", "2", "--format", "json"))["rows"]
    assert two == all_rows[:2]


def test_the_plain_table_is_that_of_the_loaded_averages(
    path: str, capsys: pytest.CaptureFixture[str]
) -> None:
    expected = load(path).key_averages().table(sort_by="cpu_time_total", row_limit=4)
    lines = [line for line in expected.splitlines() if "evil" not in line]
    shown = printed(capsys, "show", path, "--sort-by", "cpu_total", "--top", "4").splitlines()
    assert [line for line in shown if "evil" not in line] == lines


@pytest.mark.parametrize("format", ["table", "md", "csv", "json"])
@pytest.mark.parametrize("command", ["show", "tree", "summary"])
def test_hostile_names_reach_the_terminal_as_text(
    path: str, command: str, format: str, capsys: pytest.CaptureFixture[str]
) -> None:
    text = printed(capsys, command, path, "--format", format)
    assert "\x1b" not in text or format == "csv"
    if format == "md":
        assert "<img>" not in text
    if format == "csv":
        assert any(HOSTILE in cell for row in csv.reader(io.StringIO(text)) for cell in row)


def test_conditions_and_columns_choose_what_is_shown(path: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = printed(
        capsys,
        "show",
        path,
        "--where",
        'name ~ "mm$" and count >= 3',
        "--columns",
        "calls,name",
        "--format",
        "csv",
    )
    assert text == "count,name\n3,aten::addmm\n3,ampere_sgemm\n"


@pytest.mark.parametrize(
    "words",
    [
        ["--sort-by", "nothing"],
        ["--where", "nothing > 3"],
        ["--group-by", "nothing"],
        ["--columns", "nothing"],
        ["--columns", "p95"],
    ],
)
def test_wrong_words_end_with_2_and_a_sentence(
    path: str, words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    printed(capsys, "show", path, *words, code=2)
    cli.main(["show", path, *words])
    assert capsys.readouterr().err.startswith("mindtorch-prof: ")


@pytest.mark.parametrize("command", ["show", "tree", "summary", "doctor", "stacks"])
def test_a_file_that_is_no_trace_is_one_sentence_and_code_2(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = tmp_path / "other.json"
    other.write_text("not json at all")
    for name in (other, tmp_path / "missing.json", tmp_path):
        assert cli.main([command, str(name)]) == 2
        out, err = capsys.readouterr()
        assert out == ""
        assert err.count("\n") == 1
        assert str(name) in err


def test_strict_refuses_what_would_have_to_be_repaired(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cut = tmp_path / "cut.json"
    cut.write_bytes(written(tmp_path / "whole.json", one_step(1, 0.0)).read_bytes()[:-40])
    assert cli.main(["show", str(cut)]) == 0
    assert "Incomplete: " in capsys.readouterr().out
    assert cli.main(["show", str(cut), "--strict"]) == 2
    assert cli.main(["doctor", str(cut)]) == 1


# ------------------------------------------------------------------------------------ exports


def test_speedscope_files_open_and_close_frames_in_order(
    path: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out.speedscope.json"
    assert cli.main(["convert", path, "--to", "speedscope", "-o", str(out)]) == 0
    document = json.loads(out.read_text())
    counts: Counter[str] = Counter()
    for profile in document["profiles"]:
        open_: list[int] = []
        before = profile["startValue"]
        for step in profile["events"]:
            assert step["at"] >= before
            before = step["at"]
            if step["type"] == "O":
                open_.append(step["frame"])
                counts[document["shared"]["frames"][step["frame"]]["name"]] += 1
            else:
                assert open_.pop() == step["frame"]
        assert not open_
        assert before <= profile["endValue"]
    assert counts["aten::addmm"] == counts["ampere_sgemm"] == counts["nn.Module: Linear_0"] == 3


def test_csv_files_hold_the_tables(
    path: str, trace: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, make in TABLES.items():
        out = tmp_path / f"{name}.csv.gz"
        assert cli.main(["convert", path, "--to", "csv", "--table", name, "-o", str(out)]) == 0
        with gzip.open(out, "rt", newline="") as file:
            rows = list(csv.DictReader(file))
        assert len(rows) == make(trace).n_rows
    steps = TABLES["events"](trace)["step"].tolist()
    assert Counter(steps) == {1: 7, 2: 7, 3: 7, None: 1}


def test_a_list_of_events_gives_the_same_columns_from_columns_and_from_events(trace: Any) -> None:
    events = trace.events()
    assert events.to_dict() == list_columns(events, None)
    assert {len(column) for column in events.to_dict().values()} == {len(events)}
    some = type(events)(events[:3])
    assert some.to_dict() == {name: column[:3] for name, column in events.to_dict().items()}


def test_a_chrome_trace_written_again_has_the_same_averages(path: str, trace: Any, tmp_path: Path) -> None:
    out = tmp_path / "again.json.gz"
    assert cli.main(["convert", path, "--to", "chrome", "-o", str(out)]) == 0
    again = load(out)
    one, two = groups(trace).sort("name"), groups(again).sort("name")
    assert one["name"].tolist() == two["name"].tolist()
    for key in ("self_cpu_time_total", "count", "self_device_time_total"):
        assert one[key].tolist() == pytest.approx(two[key].tolist(), abs=1e-3)


def test_a_file_is_not_converted_onto_itself(path: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["convert", path, "--to", "chrome", "-o", path]) == 2
    assert "is the input file" in capsys.readouterr().err


def test_explain_says_what_a_column_is_and_is_not(capsys: pytest.CaptureFixture[str]) -> None:
    text = printed(capsys, "explain", "self_cpu")
    assert text.startswith("self_cpu_time_total (Self CPU)\n  unit: microseconds\n")
    assert "notes: Not processor time" in text
    assert cli.main(["explain", "nothing_like_it"]) == 2
    assert len(json.loads(printed(capsys, "explain", "--format", "json"))["rows"]) > 30
