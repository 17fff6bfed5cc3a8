"""Tests of mindtorch_prof.load.json_cache: a cache gives the trace of its file or is not used."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import threading
import zipfile
from collections.abc import Callable
from pathlib import Path

import kineto_documents as documents
import numpy as np
import pytest
from fact_files import FACTS
from trace_equality import assert_same

from mindtorch_prof import cli, load
from mindtorch_prof.load import byte_source, json_cache
from mindtorch_prof.load.open_trace import Loaded

OLD = 1_700_000_000  # seconds: a time of the last change that is long ago


@pytest.fixture(autouse=True)
def all_files_are_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_cache, "SMALLEST", 1)
    monkeypatch.delenv(json_cache.VARIABLE, raising=False)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A trace file that has not changed for long."""
    copy = tmp_path / "trace.json.gz"
    copy.write_bytes((FACTS / "torch_trace.json.gz").read_bytes())
    os.utime(copy, (OLD, OLD))
    return copy


def cache_file(path: Path) -> Path:
    return path.parent / f".{path.name}.cache.mtrace"


def state(loaded: Loaded) -> str:
    assert loaded.cache is not None
    return loaded.cache.state


def test_the_second_opening_gives_the_same_trace_from_the_cache(path: Path) -> None:
    plain, first, second = load(path), load(path, cache=True), load(path, cache=True)
    assert (plain.cache, state(first), state(second)) == (None, "written", "read")
    assert_same(second.trace, plain.trace, "trace")
    assert str(second.events()) == str(plain.events())
    assert second.key_averages().table() == plain.key_averages().table()
    assert sorted(os.listdir(path.parent)) == [cache_file(path).name, path.name]


@pytest.mark.parametrize(
    "name", ["h100_qwen_infer_stack_memory", "v100_resnet50", "mi300", "torch213_cpu_train_all_on"]
)
def test_every_answer_is_the_same_from_the_cache_of_a_real_trace(
    ecosystem: Path, tmp_path: Path, name: str, printed: Callable[..., str]
) -> None:
    (real,) = (ecosystem / "traces").glob(f"{name}*")
    path = tmp_path / real.name
    path.write_bytes(real.read_bytes())
    os.utime(path, (OLD, OLD))
    commands = [
        (*words, str(path))
        for words in (
            ("summary",),
            ("show", "--top", "0"),
            ("tree",),
            ("device",),
            ("stacks",),
            ("roofline",),
        )
    ]
    plain = [printed(*words) for words in commands]
    written = [printed(*words, "--cache") for words in commands]
    assert state(load(path, cache=True)) == "read"
    assert [printed(*words, "--cache") for words in commands] == plain == written


def test_the_environment_variable_asks_for_a_cache_and_an_argument_overrules_it(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(json_cache.VARIABLE, "1")
    assert load(path, cache=False).cache is None
    assert [state(load(path)), state(load(path))] == ["written", "read"]
    monkeypatch.setenv(json_cache.VARIABLE, "0")
    assert load(path).cache is None


def test_nothing_is_kept_of_small_files_streams_other_formats_and_other_limits(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with path.open("rb") as file:
        assert load(file, cache=True).cache is None
    assert load(path.read_bytes(), cache=True).cache is None
    assert load(path, cache=True, max_event_bytes=1 << 20).cache is None
    load(path).save(path.parent / "t.mtrace")
    assert load(path.parent / "t.mtrace", cache=True).cache is None
    monkeypatch.setattr(json_cache, "SMALLEST", 1 << 20)
    assert load(path, cache=True).cache is None
    assert not cache_file(path).exists()


def test_a_capture_that_depends_on_files_beside_it_has_no_cache(tmp_path: Path) -> None:
    events = [
        {"ph": "M", "name": "process_name", "pid": 1, "tid": 0, "args": {"name": "Ascend Hardware"}},
        {"ph": "X", "name": "MatMul", "pid": 1, "tid": 2, "ts": "10.5", "dur": 2.0, "args": {}},
    ]
    path = tmp_path / "trace_view.json"
    path.write_text(json.dumps(events))
    os.utime(path, (OLD, OLD))
    assert load(path, cache=True).cache is None
    assert os.listdir(tmp_path) == ["trace_view.json"]


def rewritten(path: Path, name: str, when: float) -> None:
    documents.write(path, [documents.event(name, 5, 3)])
    os.utime(path, (when, when))


@pytest.mark.parametrize("when", [OLD, OLD + 1])
def test_a_changed_file_of_the_same_size_is_read_again_and_its_cache_replaced(
    tmp_path: Path, when: int
) -> None:
    path = tmp_path / "t.json"
    rewritten(path, "aten::add", OLD)
    load(path, cache=True)
    size = path.stat().st_size
    rewritten(path, "aten::mul", when)
    assert path.stat().st_size == size
    again = load(path, cache=True)
    assert (state(again), again.trace.names) == ("written", ("aten::mul",))
    assert load(path, cache=True).trace.names == ("aten::mul",)


def test_another_time_alone_makes_a_cache_stale(path: Path) -> None:
    load(path, cache=True)
    os.utime(path, (OLD, OLD + 5))
    assert [state(load(path, cache=True)) for _ in range(2)] == ["written", "read"]


def test_a_cache_of_another_reader_is_replaced(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    load(path, cache=True)
    monkeypatch.setattr(json_cache, "READER", "another")
    assert [state(load(path, cache=True)) for _ in range(2)] == ["written", "read"]


def test_a_file_that_changed_a_moment_ago_gets_no_cache(path: Path) -> None:
    os.utime(path)
    loaded = load(path, cache=True)
    assert loaded.cache is not None
    assert (loaded.cache.state, "a moment ago" in loaded.cache.note) == ("none", True)
    assert not cache_file(path).exists()


def test_a_file_that_changes_while_it_is_read_gets_no_cache(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = byte_source.Source.head

    def touched(self: byte_source.Source) -> bytes:
        os.utime(path, (OLD, OLD + 9))
        return read(self)

    monkeypatch.setattr(byte_source.Source, "head", touched)
    loaded = load(path, cache=True)
    assert loaded.cache is not None
    assert "changed while it was read" in loaded.cache.note
    assert not cache_file(path).exists()


def test_any_damage_of_a_cache_is_noticed_and_the_file_is_read(path: Path) -> None:
    table = load(path, cache=True).key_averages().table()
    content = cache_file(path).read_bytes()
    used = zipfile.ZipFile(cache_file(path))
    parts = [(info.header_offset, info.file_size) for info in used.infolist()]
    used.close()
    random = np.random.default_rng(0)
    for number in range(60):
        damaged = bytearray(content[: random.integers(1, len(content))] if number % 5 == 0 else content)
        if number % 5:  # inside a part: between parts there is padding, which says nothing
            offset, size = parts[random.integers(len(parts))]
            place = offset + 400 + int(random.integers(max(size - 400, 1)))
            damaged[min(place, len(damaged) - 1)] ^= 1 << int(random.integers(8))
        cache_file(path).write_bytes(bytes(damaged))
        again = load(path, cache=True)
        assert again.key_averages().table() == table
        assert again.cache is not None
        assert again.cache.state == "read" or again.cache.note.count("\n") == 0
        assert state(load(path, cache=True)) == "read"


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04", b"\x80\x04cos\nsystem\n", b"{}" * 5000])
def test_a_cache_that_is_something_else_is_said_in_one_line_and_replaced(
    path: Path, content: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    cache_file(path).write_bytes(content)
    assert cli.main(["summary", str(path), "--cache"]) == 0
    error = capsys.readouterr().err
    assert "cannot be used, the file itself was read" in " ".join(error.split())
    assert state(load(path, cache=True)) == "read"


def test_a_planted_link_is_neither_followed_nor_written_through(path: Path, tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_text("mine")
    cache_file(path).symlink_to(precious)
    loaded = load(path, cache=True)
    assert (state(loaded), precious.read_text()) == ("written", "mine")
    assert not cache_file(path).is_symlink()


def test_a_planted_pipe_does_not_hang(path: Path) -> None:
    os.mkfifo(cache_file(path))
    loaded = load(path, cache=True)
    assert loaded.cache is not None
    assert "no regular file" in loaded.cache.note


def test_a_cache_that_others_may_write_is_not_trusted(path: Path) -> None:
    load(path, cache=True)
    cache_file(path).chmod(0o666)
    again = load(path, cache=True)
    assert again.cache is not None
    assert (again.cache.state, "others may write it" in again.cache.note) == ("written", True)


@pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0, reason="needs another user's file: root only"
)
def test_a_cache_of_another_user_is_not_trusted(path: Path) -> None:
    load(path, cache=True)
    os.chown(cache_file(path), 12345, -1)
    again = load(path, cache=True)
    assert again.cache is not None
    assert "belongs to another user" in again.cache.note


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o644, 0o755])
def test_a_cache_has_the_permissions_of_its_file(path: Path, mode: int) -> None:
    path.chmod(mode)
    load(path, cache=True)
    assert stat.S_IMODE(cache_file(path).stat().st_mode) == mode & 0o666


@pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0, reason="needs another group's file: root only"
)
def test_a_group_that_may_not_be_given_gets_no_access(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path.chmod(0o640)
    os.chown(path, -1, 12345)

    def refused(*_: object) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "fchown", refused)
    load(path, cache=True)
    assert stat.S_IMODE(cache_file(path).stat().st_mode) == 0o600


def test_a_folder_that_cannot_be_written_is_no_error(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(json_cache, "open_cache_file", refused)
    loaded = load(path, cache=True)
    assert loaded.cache == (
        "none",
        str(cache_file(path)),
        f"no cache of {path} was written: Permission denied",
    )
    assert len(loaded.trace) > 0


def test_writers_at_the_same_time_leave_one_whole_cache_and_nothing_else(path: Path) -> None:
    problems: list[BaseException] = []

    def open_often() -> None:
        try:
            for _ in range(10):
                assert len(load(path, cache=True).trace) > 0
                cache_file(path).unlink(missing_ok=True)
        except BaseException as error:
            problems.append(error)

    threads = [threading.Thread(target=open_often) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not problems
    load(path, cache=True)
    assert sorted(os.listdir(path.parent)) == [cache_file(path).name, path.name]


def test_a_writer_killed_half_way_leaves_a_file_that_a_later_one_removes(path: Path) -> None:
    code = (
        "import os, sys, mindtorch_prof.native_file as native\n"
        "from mindtorch_prof.load import json_cache\n"
        "json_cache.SMALLEST = 1\n"
        "native._add = lambda *_: os._exit(9)\n"
        "from mindtorch_prof import load\n"
        "load(sys.argv[1], cache=True)"
    )
    assert subprocess.run([sys.executable, "-c", code, str(path)], check=False).returncode == 9
    (leftover,) = path.parent.glob(".*.tmp")
    os.utime(leftover, (OLD, OLD))
    load(path, cache=True)
    assert sorted(os.listdir(path.parent)) == [cache_file(path).name, path.name]


def test_a_folder_with_a_cache_in_it_still_has_one_trace(path: Path) -> None:
    load(path, cache=True)
    again = load(path.parent, cache=True)
    assert (state(again), again.trace.settings.source) == ("read", str(path.parent))


def test_doctor_says_whether_its_answer_came_from_the_cache(path: Path, printed: Callable[..., str]) -> None:
    def answers(*words: str) -> list[object]:
        text = printed("doctor", str(path), "--format", "json", *words)
        return [json.loads(text)["cache"], "cache" in printed("doctor", str(path), *words)]

    assert answers() == [None, False]
    assert answers("--cache") == ["written", True]
    assert answers("--cache") == ["read", True]


def test_strict_refuses_a_damaged_file_also_from_its_cache(path: Path, tmp_path: Path) -> None:
    cut = tmp_path / "cut.json"
    cut.write_text(
        '{"traceEvents": [{"ph": "X", "cat": "cpu_op", "name": "a", "ts": 1, "dur": 2, "pid": 1, "tid": 1}'
    )
    os.utime(cut, (OLD, OLD))
    messages = []
    for cached in (False, True, True):
        with pytest.raises(ValueError, match=r"cut\.json") as caught:
            load(cut, strict=True, cache=cached)
        messages.append(str(caught.value))
    assert messages[0] == messages[1] == messages[2]
