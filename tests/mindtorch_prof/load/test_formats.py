"""Which trace a path stands for: files, folders with one trace, captures, and folders with several."""

from __future__ import annotations

import gzip
import json
import re
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from random import Random

import captures
import kineto_documents as documents
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mindtorch_prof import load
from mindtorch_prof.load import NotATraceError, RefusedTraceError, TraceError
from mindtorch_prof.load.formats import trace_file, trace_paths


def test_a_capture_is_opened_by_its_folder_its_output_or_its_file(tmp_path: Path) -> None:
    for make, name in (
        (captures.text_capture, "trace_view.json"),
        (captures.db_capture, "ascend_pytorch_profiler_6.db"),
    ):
        folder = make(tmp_path / f"{name}_ascend_pt")
        file = folder / "ASCEND_PROFILER_OUTPUT" / name
        for path in (folder, folder / "ASCEND_PROFILER_OUTPUT", file):
            assert trace_file(path) == file
            trace = load(path).trace
            assert trace.settings.rank == 6
            assert trace.settings.source == str(path)


def test_where_a_capture_has_both_forms_the_database_is_read(tmp_path: Path) -> None:
    folder = captures.text_capture(tmp_path / "a_ascend_pt")
    captures.write_tables(
        folder / "ASCEND_PROFILER_OUTPUT" / "ascend_pytorch_profiler_6.db", captures.db_tables()
    )
    assert trace_file(folder).suffix == ".db"


def test_a_folder_stands_for_the_only_trace_in_it(tmp_path: Path) -> None:
    captures.db_capture(tmp_path / "ranks" / "a_ascend_pt")
    (tmp_path / "ranks" / "notes.json").write_text('{"not": "a trace"}')
    (tmp_path / "ranks" / "notes.txt").write_text("text")
    assert load(tmp_path / "ranks").trace.settings.rank == 6
    (tmp_path / "kineto").mkdir()
    documents.write(tmp_path / "kineto" / "worker.pt.trace.json.gz", [documents.event("work", 1, 2)])
    assert [e.key for e in load(tmp_path / "kineto").key_averages()] == ["work"]
    (tmp_path / "nsys").mkdir()
    plain = captures.nsys_export(tmp_path / "a.sqlite")
    with open(plain, "rb") as file, gzip.open(tmp_path / "nsys" / "a.sqlite.gz", "wb") as packed:
        shutil.copyfileobj(file, packed)
    assert len(load(tmp_path / "nsys").trace.device) == 5


def test_a_folder_with_several_traces_is_refused_with_their_names(tmp_path: Path) -> None:
    captures.db_capture(tmp_path / "rank0_ascend_pt")
    captures.text_capture(tmp_path / "rank1_ascend_pt")
    (tmp_path / "kineto.json").write_text(json.dumps({"traceEvents": []}))
    with pytest.raises(
        NotATraceError,
        match=r"folder with 3 traces, where one is expected: kineto\.json, rank0_ascend_pt, rank1_ascend_pt$",
    ):
        load(tmp_path)


def test_a_folder_without_a_trace_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NotATraceError, match="a folder without traces"):
        load(tmp_path)


def test_a_capture_that_was_not_analysed_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "a_ascend_pt" / "PROF_000001").mkdir(parents=True)
    with pytest.raises(NotATraceError, match=r"profiler\.analyse makes it"):
        load(tmp_path / "a_ascend_pt")


def test_commands_for_many_traces_take_those_of_a_folder(tmp_path: Path) -> None:
    for rank in (0, 1):
        captures.db_capture(tmp_path / f"rank{rank}_ascend_pt")
    paths = [str(tmp_path / f"rank{rank}_ascend_pt") for rank in (0, 1)]
    assert trace_paths([str(tmp_path), "x.json"]) == [*paths, "x.json"]
    assert trace_paths([paths[0]]) == [paths[0]]


def test_a_database_beyond_the_limit_is_refused(tmp_path: Path) -> None:
    path = captures.nsys_export(tmp_path / "a.sqlite")
    with pytest.raises(RefusedTraceError, match=r"a\.sqlite: refused"):
        load(path, max_bytes=1000)


def test_a_packed_database_that_was_cut_is_refused(tmp_path: Path) -> None:
    path = captures.nsys_export(tmp_path / "a.sqlite")
    cut = tmp_path / "cut.sqlite.gz"
    cut.write_bytes(gzip.compress(path.read_bytes())[:-200])
    with pytest.raises(NotATraceError, match=r"cut\.sqlite\.gz: the packed data ends too early"):
        load(cut)


VALUES = (None, -1, 0, 2**62, 1.5, 1e30, "", "x", "12", True, "NaN", -(2**63))
QUICK = settings(
    max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)


@QUICK
@given(random=st.randoms(use_true_random=False))
def test_a_list_of_events_with_any_values_is_read_or_refused(random: Random, tmp_path: Path) -> None:
    events = captures.text_events()
    for event in random.choices(events, k=4):
        arguments = event.get("args") or event
        chosen = arguments if random.random() < 0.5 and isinstance(arguments, dict) else event
        chosen[random.choice(list(chosen))] = random.choice((*VALUES, [], {}, [1, 2], 2**70))
    path = tmp_path / "trace_view.json"
    path.write_text(json.dumps(events))
    with suppress(TraceError):
        load(path).key_averages().table()


@QUICK
@given(random=st.randoms(use_true_random=False))
@pytest.mark.parametrize("tables_of", [captures.db_tables, captures.nsys_tables])
def test_a_database_with_any_values_is_read_or_refused(
    tables_of: Callable[[], captures.Tables], random: Random, tmp_path: Path
) -> None:
    tables = tables_of()
    for name in random.choices(list(tables), k=4):
        columns, rows = tables[name]
        changed = [list(row) for row in rows]
        row = random.choice(changed)
        row[random.randrange(len(row))] = random.choice(VALUES)
        # numbers of texts stay numbers: SQLite itself refuses others
        if name not in ("STRING_IDS", "StringIds"):
            tables[name] = columns, [tuple(values) for values in changed]
    path = tmp_path / "a.sqlite"
    path.unlink(missing_ok=True)
    captures.write_tables(path, tables)
    with suppress(TraceError):
        load(path).key_averages().table()


def test_a_database_from_bytes_and_from_an_open_file(tmp_path: Path) -> None:
    path = captures.nsys_export(tmp_path / "a.sqlite")
    assert len(load(path.read_bytes()).trace.device) == 5
    with open(path, "rb") as file:
        assert len(load(file).trace.device) == 5


def test_traces_of_all_folders_below_are_found_and_named(tmp_path: Path) -> None:
    for run in ("run1", "run2"):
        (tmp_path / run).mkdir()
        documents.write(tmp_path / run / "worker.pt.trace.json", [documents.event(run, 1, 2)])
    listed = re.escape(f"{Path('run1') / 'worker.pt.trace.json'}, {Path('run2') / 'worker.pt.trace.json'}")
    with pytest.raises(NotATraceError, match=f"folder with 2 traces, where one is expected: {listed}$"):
        load(tmp_path)
    assert trace_paths([str(tmp_path)]) == [
        str(tmp_path / run / "worker.pt.trace.json") for run in ("run1", "run2")
    ]
