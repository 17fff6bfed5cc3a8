"""The HTML report, without a browser: what is put into the page agrees with the recording."""

from __future__ import annotations

import base64
import hashlib
import html
import itertools
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mindtorch_v2 as torch
from mindtorch_prof import cli
from mindtorch_prof.export.html import calls, export_html, flame, timeline
from mindtorch_prof.export.html.overview import union
from mindtorch_prof.export.html.pack import Block
from mindtorch_prof.load import load
from mindtorch_prof.torch_api.results import Results
from mindtorch_prof.trace import ANNOTATION, Health
from mindtorch_v2 import nn
from mindtorch_v2.profiler import profile, record_function, schedule

sys.path.insert(0, str(Path(__file__).parent / "pages"))
from hand_made import made, on_a_device
from report_page import blocks, unpacked

WEB = Path(__file__).parents[2] / "web"
BUILT = Path(calls.__file__).parent
HOSTILE = [
    "</script><script>document.title='bad'</script>",
    "<img src=x onerror=alert(1)>",
    "\"'`${alert(1)}--><!--",
    "\x1b[31mred\x1b[0m\x00",
    "\u202eright to left\u2066",
    "half a pair \ud800",
    "n" * 10_000,
]


@pytest.fixture(scope="module")
def recorded() -> Results:
    """Three steps of a small network, everything on."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with profile(
        schedule=schedule(wait=0, warmup=1, active=3, repeat=1),
        record_shapes=True,
        profile_memory=True,
        with_stack=True,
        with_flops=True,
        with_modules=True,
    ) as prof:
        for _ in range(4):
            with record_function("forward"):
                loss = model(torch.ones(16, 4)).sum()
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            prof.step()
    assert prof.profiler is not None
    return prof.profiler._results


@pytest.fixture(scope="module")
def page(recorded: Results, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("report") / "r.html"
    recorded.export_html(path)
    return path


# ------------------------------------------------------------------------------------ numbers


def test_operators_are_the_rows_of_key_averages(recorded: Results, page: Path) -> None:
    values, columns = blocks(page)["summary-0"]
    names = values["groups"]["name"]["names"]
    rows = recorded.key_averages()
    assert [names[i] for i in columns["name.name"]] == [row.key for row in rows]
    assert columns["name.count"].tolist() == [row.count for row in rows]
    assert (columns["name.self_ns"] / 1000).tolist() == [row.self_cpu_time_total for row in rows]
    assert (columns["name.total_ns"] / 1000).tolist() == [row.cpu_time_total for row in rows]
    assert columns["name.self_memory"].tolist() == [row.self_cpu_memory_usage for row in rows]
    assert columns["name.flops"].tolist() == [row.flops for row in rows]


@pytest.mark.parametrize(("group", "how"), [("shapes", {"by_shape": True}), ("stack", {"by_stack": 5})])
def test_groupings_are_those_of_key_averages(
    recorded: Results, page: Path, group: str, how: dict[str, Any]
) -> None:
    values, columns = blocks(page)["operators-0"]
    rows = recorded.key_averages(**how)
    assert columns[f"{group}.count"].tolist() == [row.count for row in rows]
    assert (columns[f"{group}.self_ns"] / 1000).tolist() == [row.self_cpu_time_total for row in rows]
    details = [values["groups"][group]["details"][i] for i in columns[f"{group}.detail"]]
    wanted = [str(r.input_shapes) if r.input_shapes else "" for r in rows]
    assert [d or "" for d in details] == (wanted if group == "shapes" else [r.stack or "" for r in rows])


def test_steps_and_modules_divide_the_calls_without_losing_any(recorded: Results, page: Path) -> None:
    values, columns = blocks(page)["operators-0"]
    steps = [f"ProfilerStep#{i}" for i in (1, 2, 3)]
    assert values["groups"]["step"]["details"] == steps
    first, _ = blocks(page)["summary-0"]
    assert [step[0] for step in first["steps"]] == steps
    linear = [i for i, n in enumerate(values["groups"]["module"]["names"]) if n == "aten::addmm"]
    rows = np.isin(columns["module.name"], linear)
    paths = [values["groups"]["module"]["details"][i] for i in columns["module.detail"][rows]]
    assert sorted(paths) == ["Sequential_0 / Linear_0", "Sequential_0 / Linear_1"]
    assert columns["module.count"][rows].tolist() == [3, 3]


def test_shares_add_up_to_the_wall_time(recorded: Results, page: Path) -> None:
    values, _ = blocks(page)["summary-0"]
    (cpu,) = values["shares"]
    assert sum(part for _, part in cpu["parts"]) == values["wall_ns"]
    shares = dict(cpu["parts"])
    rows = {row.key: row for row in recorded.key_averages()}
    steps = (
        rows["Optimizer.step#SGD.step"].cpu_time_total
        + rows["Optimizer.zero_grad#SGD.zero_grad"].cpu_time_total
    )
    assert shares["Optimizer"] == round(steps * 1000)


def test_the_flame_graph_holds_every_call_once(recorded: Results, page: Path) -> None:
    values, columns = blocks(page)["flame-0"]
    names = values["trees"]["calls"]["names"]
    rows = recorded.key_averages()
    for row in rows:
        if row.key == "[memory]":
            continue
        nodes = np.array([names[i] == row.key for i in columns["calls.name"]])
        assert int(columns["calls.calls"][nodes].sum()) == row.count, row.key
        assert columns["calls.total_ns"][nodes].sum() / 1000 == pytest.approx(row.cpu_time_total), row.key
    parents = columns["calls.parent"].astype(int)
    assert (parents <= np.arange(len(parents))).all()
    of_children = np.bincount(parents, weights=columns["calls.total_ns"], minlength=len(parents) + 1)[1:]
    assert (of_children <= columns["calls.total_ns"] + 0.5).all()


def test_modules_of_one_class_merge_where_that_is_asked_for(page: Path) -> None:
    values, columns = blocks(page)["flame-0"]
    names = values["trees"]["classes"]["names"]
    calls_of = dict(zip((names[i] for i in columns["classes.name"]), columns["classes.calls"].tolist()))
    assert calls_of["Linear"] == 6
    assert columns["classes.calls"].sum() == columns["calls.calls"].sum()


def test_modules_have_their_forward_and_backward_time(page: Path) -> None:
    values, columns = blocks(page)["modules-0"]
    assert values["names"] == ["Sequential_0", "Linear_0", "ReLU_0", "Linear_1"]
    assert columns["parent"].tolist() == [0, 1, 1, 1]
    assert columns["calls"].tolist() == [3, 3, 3, 3]
    total = columns["total_ns"].astype(float)
    assert total[0] == columns["self_ns"][0] + total[1:].sum()
    assert (columns["backward_ns"] > 0).all()
    assert columns["backward_ns"][0] == columns["backward_ns"][1:].sum()


def test_the_memory_curve_is_the_recorded_one(recorded: Results, page: Path) -> None:
    values, columns = blocks(page)["memory-0"]
    (about,) = values["devices"]
    curve = np.sum([columns[name] for name in columns if ".category." in name], axis=0)
    held = sum(nbytes for _, nbytes, _ in recorded.trace.memory.of_modules)
    assert about["peak"] == curve.max() == recorded.trace.memory.total.max() + held
    assert sum(about["at_peak"]) == about["peak"]
    assert about["allocations"] == int((recorded.trace.memory.nbytes > 0).sum())
    assert sum(row[2] for row in about["biggest"]) == about["taken"]


# ------------------------------------------------------------------------------------ the timeline


def test_the_timeline_has_every_shown_event_and_lanes_do_not_overlap(recorded: Results, page: Path) -> None:
    values, columns = blocks(page)["timeline-0"]
    start, first = columns["start_ns"], columns["lane.first"].astype(int)
    end = start + columns["duration_ns"]
    for low, high in itertools.pairwise(first):
        assert (np.diff(start[low:high]) >= 0).all()
        assert (end[low : high - 1] <= start[low + 1 : high]).all()
    shown = np.flatnonzero(recorded.shown)
    assert values["spans"] == values["of"] == len(shown) + len(recorded.trace.frames)
    names = [values["names"][i] for i in columns["name"]]
    at = names.index("ProfilerStep#2")
    row = next(i for i in shown if recorded.trace.names[recorded.trace.name[i]] == "ProfilerStep#2")
    assert values["begin_ns"] + start[at] == recorded.trace.start_ns[row]


def test_arrows_lead_from_a_forward_op_to_its_node(page: Path) -> None:
    values, columns = blocks(page)["timeline-0"]
    names = [values["names"][i] for i in columns["name"]]
    pairs = {
        (names[int(a)], names[int(b)])
        for a, b, kind in zip(columns["arrow.from"], columns["arrow.to"], columns["arrow.kind"])
        if kind == 0
    }
    assert ("aten::relu", "ReluBackward0") in pairs
    assert ("aten::addmm", "AddmmBackward0") in pairs or ("aten::linear", "AddmmBackward0") in pairs


def test_a_launch_leads_to_its_kernel(tmp_path: Path) -> None:
    export_html(Results(on_a_device()), tmp_path / "r.html")
    found = blocks(tmp_path / "r.html")
    values, columns = found["timeline-0"]
    names = [values["names"][i] for i in columns["name"]]
    assert [(names[int(a)], names[int(b)]) for a, b in zip(columns["arrow.from"], columns["arrow.to"])] == [
        ("cudaLaunchKernel", "gemm")
    ]
    assert [track["label"] for track in values["tracks"]] == ["thread 1", "GPU 0 stream 7"]
    shares = found["summary-0"][0]["shares"]
    assert shares[1] == {"label": "GPU 0", "parts": [["Kernels", 250], ["Copies", 0], ["Idle", 250]]}


def test_beyond_a_number_of_events_the_longest_stay_and_the_page_says_so() -> None:
    events = [("outer", 0, 10_000, 1), *[(f"e{i}", 100 * i, 100 * i + i + 1, 1) for i in range(90)]]
    values = timeline.timeline_block(Results(made(*events)), 40).values
    assert (values["of"], values["spans"]) == (91, 40)
    assert "outer" in values["names"]
    assert values["least_ns"] == 52
    assert "e89" in values["names"]
    assert "e0" not in values["names"]


def test_events_of_equal_length_are_thinned_as_well() -> None:
    values = timeline.timeline_block(
        Results(made(*[("e", 10 * i, 10 * i + 5, 1) for i in range(20)])), 8
    ).values
    assert (values["of"], values["spans"]) == (20, 8)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 30), st.integers(0, 2)), max_size=30))
def test_any_spans_find_lanes_without_overlap(spans: list[tuple[int, int, int]]) -> None:
    start = np.array([s for s, _, _ in spans], np.int64)
    end = start + np.array([d for _, d, _ in spans], np.int64)
    track = np.array([t for _, _, t in spans], np.int64)
    lane = timeline.apart(track, np.zeros(len(spans), np.int64), start, end)
    for key in set(zip(track.tolist(), lane.tolist())):
        rows = np.flatnonzero((track == key[0]) & (lane == key[1]))
        rows = rows[np.lexsort((-end[rows], start[rows]))]
        assert (end[rows][:-1] <= start[rows][1:]).all()


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 60), st.integers(0, 20)), max_size=20))
def test_the_union_of_spans_is_as_long_as_what_they_cover(spans: list[tuple[int, int]]) -> None:
    array = np.array([(s, s + d) for s, d in spans], np.int64).reshape(-1, 2)
    united = union(array)
    covered = {t for s, d in spans for t in range(s, s + d)}
    assert int((united[:, 1] - united[:, 0]).sum()) == len(covered)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(-(2**52), 2**52), max_size=40), st.booleans())
def test_a_column_comes_back_as_it_went_in(numbers: list[int], rising: bool) -> None:
    block = Block({"x": 1})
    numbers = sorted(numbers) if rising else numbers
    block.add("c", np.array(numbers, np.int64), rising=rising)
    values, columns = unpacked(block.text())
    assert values == {"x": 1}
    assert columns["c"].astype(np.int64).tolist() == numbers


def test_merged_calls_do_not_need_containment() -> None:
    trace = made(("a", 0, 10, 1), ("b", 2, 8, 1), ("a", 20, 30, 1), ("b", 22, 29, 1), ("b", 40, 41, 2))
    results = Results(trace)
    tree = flame.merged(results, calls.calls(results, python=False))
    assert [tree.names[i] for i in tree.name] == ["a", "b", "b"]
    assert tree.parent.tolist() == [-1, -1, 0]
    assert tree.total_ns.tolist() == [20, 1, 13]
    assert tree.self_ns.tolist() == [7, 1, 13]
    assert tree.calls.tolist() == [2, 1, 2]


# ------------------------------------------------------------------------------------ the page


def test_the_policy_allows_the_one_script_and_the_one_style_alone(page: Path) -> None:
    text = page.read_text()
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', text)[1]  # type: ignore[index]
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe" not in policy
    for tag, rule in (("script", "script-src"), ("style", "style-src")):
        (code,) = re.findall(rf"<{tag}>(.*?)</{tag}>", text, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(code.encode()).digest()).decode()
        assert f"{rule} 'sha256-{digest}'" in policy
    assert not re.search(r"<(link|img|iframe|script src|object|embed|base)\b", text.split("<script>")[0])


@pytest.mark.parametrize("name", HOSTILE)
def test_no_name_reaches_the_page_as_anything_but_data(name: str, tmp_path: Path) -> None:
    trace = made((name, 0, 100, 1), ("aten::add", 10, 20, 1), kind=ANNOTATION, health=Health(notes=(name,)))
    export_html(Results(trace), tmp_path / "r.html", Results(trace), labels=(name, name))
    content = (tmp_path / "r.html").read_bytes()
    assert name.encode("utf-8", "surrogatepass")[:40] not in content
    values, columns = blocks(tmp_path / "r.html")["summary-0"]
    names = values["groups"]["name"]["names"]
    assert name in [names[i] for i in columns["name.name"]]
    assert values["label"] == name
    ends = len(re.findall(rb"</script>", content))
    assert ends == len(re.findall(rb"<script[ >]", content))


def test_an_empty_recording_has_a_page_too(tmp_path: Path) -> None:
    export_html(Results(made()), tmp_path / "r.html")
    values, _ = blocks(tmp_path / "r.html")["summary-0"]
    assert values["wall_ns"] == 0


def test_the_page_says_what_the_recording_lacks(tmp_path: Path) -> None:
    trace = made(("a", 0, 10, 1), health=Health(dropped=3))
    export_html(Results(trace), tmp_path / "r.html")
    values, _ = blocks(tmp_path / "r.html")["summary-0"]
    assert (values["complete"], values["health"]) == (False, "3 dropped")


def test_a_small_report_is_small(page: Path) -> None:
    assert page.stat().st_size < 400_000


def test_a_failed_report_leaves_the_old_file(recorded: Results, tmp_path: Path, monkeypatch: Any) -> None:
    path = tmp_path / "r.html"
    path.write_text("old")
    monkeypatch.setattr(Block, "text", lambda self: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        recorded.export_html(path)
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["r.html"]


# ------------------------------------------------------------------------------------ doors


def test_a_profile_exports_its_report(tmp_path: Path) -> None:
    with profile() as prof:
        torch.ones(2) + 1
    prof.export_html(str(tmp_path / "r.html"))
    assert "aten::add" in blocks(tmp_path / "r.html")["summary-0"][0]["groups"]["name"]["names"]


def test_a_profile_that_runs_has_no_report_yet(tmp_path: Path) -> None:
    prof = profile()
    with pytest.raises(AssertionError, match="initialized before exporting a report"):
        prof.export_html(str(tmp_path / "r.html"))


def test_a_trace_file_gives_the_numbers_of_the_recording_it_came_from(
    recorded: Results, tmp_path: Path
) -> None:
    from mindtorch_prof.export import chrome

    chrome.export_chrome_trace(recorded.trace, tmp_path / "t.json.gz")
    load(tmp_path / "t.json.gz").export_html(tmp_path / "r.html")
    values, columns = blocks(tmp_path / "r.html")["summary-0"]
    names = values["groups"]["name"]["names"]
    counts = {names[i]: int(n) for i, n in zip(columns["name.name"], columns["name.count"])}
    assert counts == {row.key: row.count for row in recorded.key_averages()}
    assert values["label"] == "t.json.gz"


def test_the_command_writes_a_report_of_one_trace_and_of_two(
    recorded: Results, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from mindtorch_prof.export import chrome

    trace, out = str(tmp_path / "t.json"), str(tmp_path / "r.html")
    chrome.export_chrome_trace(recorded.trace, trace)
    assert cli.main(["report", trace, "-o", out]) == 0
    assert out in capsys.readouterr().out
    assert "summary-1" not in blocks(Path(out))
    assert cli.main(["report", trace, trace, "-o", out]) == 0
    found = blocks(Path(out))
    assert found["summary-1"][0]["label"] == "t.json (B)"
    assert set(found["compare-0"][0]["status"].values()) == {"same"}


def test_the_command_names_what_it_cannot_read_or_must_not_write(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["report", str(tmp_path / "none.json"), "-o", str(tmp_path / "r.html")]) == 2
    assert "none.json" in capsys.readouterr().err
    trace = tmp_path / "t.json"
    trace.write_text("{}")
    assert cli.main(["report", str(trace), "-o", str(trace)]) == 2
    assert "is the input file" in capsys.readouterr().err
    assert trace.read_text() == "{}"


def test_notebooks_get_a_frame_that_holds_all_it_needs(recorded: Results) -> None:
    shown = recorded._repr_html_()
    frame = re.match(r'<iframe sandbox="allow-scripts" [^>]*srcdoc="([^"]*)"></iframe>', shown)
    assert frame is not None
    inner = html.unescape(frame[1])
    assert "default-src 'none'" in inner
    data = re.search(r'id="summary-0">([^<]*)<', inner)
    assert data is not None
    values, columns = unpacked(data[1].encode())
    assert len(columns["name.count"]) == len(recorded.key_averages())
    assert "aten::addmm" in values["groups"]["name"]["names"]


def test_notebooks_show_hostile_names_as_text() -> None:
    shown = Results(made(*[(name, 0, 9, 1) for name in HOSTILE]))._repr_html_()
    assert "<img" not in shown
    assert shown.count("<script") == 0


# ------------------------------------------------------------------------------------ the build


def test_the_built_pages_are_what_their_sources_give(tmp_path: Path) -> None:
    if not WEB.is_dir() or shutil.which("node") is None or not (WEB / "node_modules" / "esbuild").is_dir():
        pytest.skip("NOT CHECKED: whether the built pages fit web/src (needs node, and `npm ci` in web/)")
    command = ["node", "build.mjs", str(tmp_path)]
    subprocess.run(command, cwd=WEB, check=True, capture_output=True, timeout=120)
    for name in ("template.html", "table.html", "THIRD_PARTY.txt"):
        assert (tmp_path / name).read_bytes() == (BUILT / name).read_bytes(), (
            f"{name}: run `npm run build` in web/"
        )


def test_the_lock_file_names_no_host() -> None:
    if not WEB.is_dir():
        pytest.skip("NOT CHECKED: the lock file is not part of this copy of the tests")
    text = (WEB / "package-lock.json").read_text()
    assert '"resolved"' not in text
