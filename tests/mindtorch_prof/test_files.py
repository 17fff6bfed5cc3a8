"""Exported files: complete or absent."""

from __future__ import annotations

import gzip
import os
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from mindtorch_prof.files import open_atomically, open_for_export


def test_a_failed_export_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    path.write_text("old")

    def fail_half_way() -> None:
        with open_for_export(path) as out:
            out.write(b"half of it")
            assert path.read_text() == "old"
            raise RuntimeError("disk full")

    with pytest.raises(RuntimeError, match="disk full"):
        fail_half_way()
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["t.json"]


def test_an_exclusive_export_never_replaces_a_file(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    path.write_text("old")
    with pytest.raises(FileExistsError), open_for_export(path, exclusive=True) as out:
        out.write(b"new")
    assert (path.read_text(), os.listdir(tmp_path)) == ("old", ["t.json"])


def test_a_replaced_file_keeps_its_permissions(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    path.write_text("old")
    path.chmod(0o600)
    with open_for_export(path) as out:
        out.write(b"new")
    assert (path.read_text(), stat.S_IMODE(path.stat().st_mode)) == ("new", 0o600)


def test_what_stands_in_the_file_behind_standard_output_stays(tmp_path: Path) -> None:
    code = (
        "from mindtorch_prof.files import open_for_export\n"
        "print('before')\n"
        "with open_for_export('/dev/stdout') as out: out.write(b'exported ')\n"
        "print('after')"
    )
    with (tmp_path / "log").open("wb") as log:
        log.write(b"earlier\n")
        log.flush()
        subprocess.run([sys.executable, "-c", code], stdout=log, check=True)
    assert (tmp_path / "log").read_text() == "earlier\nbefore\nexported after\n"


@pytest.mark.skipif(sys.platform == "win32", reason="processes are killed with a signal")
def test_the_next_export_removes_what_a_killed_one_left(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    path.write_text("old")
    code = (
        "import os, sys\nfrom mindtorch_prof.files import open_for_export\n"
        f"with open_for_export({str(path)!r}) as out:\n"
        "    out.write(b'half'); out.flush(); os.kill(os.getpid(), 9)"
    )
    subprocess.run([sys.executable, "-c", code], check=False)
    (leftover,) = (name for name in os.listdir(tmp_path) if name != "t.json")
    assert path.read_text() == "old"
    with open_for_export(path) as out:  # it may be about to be locked by its writer
        assert (tmp_path / leftover).exists()
        out.write(b"new")
    os.utime(tmp_path / leftover, (time.time() - 60, time.time() - 60))
    with open_for_export(path) as out:
        out.write(b"newer")
    assert (path.read_text(), os.listdir(tmp_path)) == ("newer", ["t.json"])


def test_an_export_under_way_is_no_leftover(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    with open_for_export(path) as slow:
        (temporary,) = os.listdir(tmp_path)
        os.utime(tmp_path / temporary, (time.time() - 60, time.time() - 60))
        with open_for_export(path) as fast:
            fast.write(b"first")
        assert path.read_text() == "first"
        slow.write(b"last")
    assert (path.read_text(), os.listdir(tmp_path)) == ("last", ["t.json"])


def test_packed_exports_are_nearly_as_small_as_gzip_can_make_them(tmp_path: Path) -> None:
    events = (
        f'{{"ph":"X","name":"aten::add","pid":9,"tid":9,"ts":{4989629722 + i * 981}.{i % 997:03},'
        f'"dur":0.{i % 661:03},"args":{{"External id":{i},"Input Dims":[[4,4],[4,4],[]]}}}},\n'
        for i in range(5000)
    )
    content = "".join(events).encode()
    with open_for_export(tmp_path / "t.json.gz") as out:
        out.write(content)
    packed = (tmp_path / "t.json.gz").read_bytes()
    assert gzip.decompress(packed) == content
    assert len(packed) < 1.1 * len(gzip.compress(content, 9))


def test_a_name_that_ends_in_gz_is_compressed_only_by_exports(tmp_path: Path) -> None:
    with open_atomically(tmp_path / "weights.gz") as out:
        out.write(b"as it is")
    assert (tmp_path / "weights.gz").read_bytes() == b"as it is"


def test_the_content_is_on_the_disk_before_the_name_is_given_to_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []
    fsync, replace = os.fsync, os.replace
    monkeypatch.setattr(
        os, "fsync", lambda file: calls.append(f"{os.fstat(file).st_size} bytes") or fsync(file)
    )
    monkeypatch.setattr(os, "replace", lambda *paths: calls.append("renamed") or replace(*paths))
    with open_for_export(tmp_path / "t.json") as out:
        out.write(b"12345")
    assert calls == ["5 bytes", "renamed"]
    assert (tmp_path / "t.json").read_text() == "12345"
