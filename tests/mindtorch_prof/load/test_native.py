"""Tests of mindtorch_prof.load.native: a trace saved and opened again is the same trace."""

from __future__ import annotations

import contextlib
import zipfile
from collections.abc import Callable
from pathlib import Path

import kineto_documents as documents
import numpy as np
import orjson
import pytest
from fact_files import FACTS
from hypothesis import given, settings
from kineto_documents import load_document
from trace_equality import assert_same
from trace_strategies import nested_traces

from mindtorch_prof import BrokenTraceError, NotATraceError, load
from mindtorch_prof.load.native import read_native
from mindtorch_prof.trace import Trace

TRACE = FACTS / "torch_trace.json.gz"


@pytest.mark.parametrize("name", ["h100_qwen", "v100_resnet50", "mi300", "torch213_cpu_train_all_on", ""])
def test_a_real_trace_is_the_same_after_saving(
    name: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    path = TRACE
    if name:
        (path,) = (request.getfixturevalue("ecosystem") / "traces").glob(f"{name}*")
    loaded = load(path)
    loaded.save(tmp_path / "t.mtrace")
    again = load(tmp_path / "t.mtrace")
    assert_same(loaded.trace, again.trace, "trace")
    assert again.key_averages().table() == loaded.key_averages().table()


@settings(max_examples=30)
@given(trace=nested_traces())
def test_any_trace_is_the_same_after_saving(trace: Trace, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("saved") / "t.mtrace"
    trace.save(path)
    assert_same(trace, read_native(str(path)).trace, "trace")


def test_columns_are_mapped_and_begin_at_multiples_of_64(tmp_path: Path) -> None:
    load(TRACE).save(tmp_path / "t.mtrace")
    trace = read_native(str(tmp_path / "t.mtrace")).trace
    for column in (trace.start_ns, trace.name, trace.thread):
        assert not column.flags.owndata
        assert column.ctypes.data % 64 == 0


def test_equal_traces_give_equal_files(tmp_path: Path) -> None:
    for name in ("a", "b"):
        load(TRACE).save(tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_another_archive_is_no_trace(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
        archive.writestr("data.pkl", b"")
    with pytest.raises(NotATraceError, match="not a trace"):
        load(tmp_path / "x.zip")


def test_a_file_of_a_later_version_says_so(tmp_path: Path) -> None:
    load(TRACE).save(tmp_path / "t.mtrace")
    content = (tmp_path / "t.mtrace").read_bytes()
    (tmp_path / "t.mtrace").write_bytes(content.replace(b'"version":1,', b'"version":7,'))
    with pytest.raises(NotATraceError, match="version 7"):
        load(tmp_path / "t.mtrace")


def test_damaged_files_give_one_sentence(tmp_path: Path) -> None:
    load(TRACE).save(tmp_path / "t.mtrace")
    content = (tmp_path / "t.mtrace").read_bytes()
    random = np.random.default_rng(0)
    path = tmp_path / "damaged.mtrace"
    for _ in range(200):
        damaged = bytearray(content[: random.integers(len(content))] if random.random() < 0.2 else content)
        for place in random.integers(0, max(len(damaged), 1), random.integers(1, 30)):
            damaged[place : place + 1] = bytes([random.integers(256)])
        path.write_bytes(bytes(damaged))
        with contextlib.suppress(BrokenTraceError, NotATraceError):
            read_native(str(path))


def _change(path: Path, member: str, change: Callable[[bytes], bytes]) -> None:
    """Write a file again with another content of one member."""
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    members[member] = change(members[member])
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in members.items():
            archive.writestr(name, data)


@pytest.mark.parametrize(
    ("member", "end", "problem"),
    [
        ("name.npy", b"\x00\x00\x00\x04", "name refers to what is not in the file"),
        ("inputs.npy", b"\x00\x00\x00\x04", "inputs refers to what is not in the file"),
        ("kind.npy", b"\x23", "kind refers to what is not in the file"),
        ("end_ns.npy", bytes(8), "an event ends before it begins"),
        ("start_ns.npy", bytes(8), "the events of a thread are not in the order of their starts"),
    ],
)
def test_columns_that_no_trace_has_are_refused_in_one_sentence(
    tmp_path: Path, member: str, end: bytes, problem: str
) -> None:
    path = tmp_path / "t.mtrace"
    load(TRACE).save(path)
    _change(path, member, lambda content: content[: -len(end)] + end)
    with pytest.raises(BrokenTraceError, match=problem):
        load(path)


def test_arguments_of_kernels_that_are_not_there_are_refused_in_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "t.mtrace"
    load_document(documents.gpu("cuda")).save(path)
    _change(path, "device.extra.npy", lambda content: content[:-4] + b"\x00\x00\x00\x04")
    with pytest.raises(BrokenTraceError, match=r"device\.extra refers to what is not in the file"):
        load(path)


def test_a_value_of_another_type_is_refused_in_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "t.mtrace"
    load(TRACE).save(path)

    def changed(content: bytes) -> bytes:
        header = orjson.loads(content)
        header["trace"]["fields"]["window_ns"] = {"value": {"tuple": ["a", "b"]}}
        return orjson.dumps(header)

    _change(path, "header.json", changed)
    with pytest.raises(BrokenTraceError, match=r"damaged \(ValueError: window_ns is no tuple\[int, int\]\)"):
        load(path)


def test_a_damaged_entry_that_is_read_late_is_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "t.mtrace"
    load(TRACE).save(path)
    _change(path, "input_table.jsonl", lambda content: b"[" * len(content))
    with pytest.raises(BrokenTraceError, match=r"damaged \(an entry of input_table cannot be read\)"):
        load(path).key_averages(group_by_input_shape=True)
