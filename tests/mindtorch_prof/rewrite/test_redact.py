"""Redaction of files: in place by renaming, gzip stays gzip, and derived files hold no environment."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path

import planted_secrets as planted
import pytest

from mindtorch_prof import cli, load
from mindtorch_prof.load import byte_source
from mindtorch_prof.rewrite.redact import redact_file, trace_without_environment


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A compressed file with secrets everywhere."""
    file = tmp_path / "trace.json.gz"
    file.write_bytes(gzip.compress(json.dumps(planted.document()).encode()))
    return file


def text_of(path: Path) -> str:
    data = path.read_bytes()
    return (gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data).decode()


@pytest.mark.parametrize("name", ["trace.json.gz", "trace.json", "compressed.json"])
def test_a_file_is_cleaned_in_place(name: str, tmp_path: Path) -> None:
    file = tmp_path / name
    text = json.dumps(planted.document()).encode()
    file.write_bytes(text if name == "trace.json" else gzip.compress(text))
    result = redact_file(file)
    assert result.path == str(file)
    assert result.total > 20
    assert planted.leaks(text_of(file)) == []
    assert (file.read_bytes()[:2] == b"\x1f\x8b") == (name != "trace.json")
    assert os.listdir(tmp_path) == [name]
    assert len(load(file).trace) == 5
    assert redact_file(file).total == 0


def test_the_source_stays_if_another_file_is_written(path: Path, tmp_path: Path) -> None:
    before = path.read_bytes()
    redact_file(path, tmp_path / "clean.json")
    assert path.read_bytes() == before
    assert planted.leaks((tmp_path / "clean.json").read_text()) == []


def test_a_file_without_secrets_is_not_written_again(tmp_path: Path) -> None:
    file = tmp_path / "trace.json"
    file.write_text('{"traceEvents": [ ]}')
    number = file.stat().st_ino
    assert redact_file(file).total == 0
    assert file.stat().st_ino == number


def test_bytes_that_are_no_text_go_through(tmp_path: Path) -> None:
    file = tmp_path / "trace.json"
    file.write_bytes(b'{"traceEvents": [{"name": "\xff\xfe", "api_key": "abc"}]}')
    redact_file(file)
    assert file.read_bytes() == b'{"traceEvents": [{"name": "\xff\xfe", "api_key": "REDACTED"}]}'


def test_a_file_that_is_no_json_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "trace.mtrace"
    file.write_bytes(b"PK\x03\x04 hf_QwErTyUiOpAsDfGhJkLz")
    with pytest.raises(ValueError, match="not JSON"):
        redact_file(file)
    assert file.read_bytes().startswith(b"PK")


DERIVED = {
    "slice": "slice {0} -o {1}/out.json",
    "merge": "merge {0} -o {1}/out.json",
    "convert": "convert {0} --to chrome -o {1}/out.json",
    "report": "report {0} -o {1}/out.html",
}
# what derived files keep: names of events, stacks and the host are not metadata
KEPT = {"alicetheuser", "bobwindows", "gpu-node-17.cluster", planted.SECRETS[1], "alice@example.org"}


@pytest.mark.parametrize("name", DERIVED)
def test_derived_files_hold_no_environment_unless_asked(
    name: str, path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = DERIVED[name].format(path, tmp_path).split()
    assert cli.main(words) == 0
    out, err = capsys.readouterr()
    assert "--keep-metadata keeps it" in " ".join((out + err).split())
    text = Path(words[-1]).read_text()
    left = set(planted.leaks(text)) - KEPT
    assert left <= ({"key-of-an-argument"} if name in ("slice", "merge") else set())
    assert cli.main([*words, "--keep-metadata"]) == 0
    kept = Path(words[-1]).read_text()
    if name == "report":  # a report has the arguments of events, and no other metadata
        return
    assert set(planted.leaks(kept)) >= {planted.TOKEN, "hunter2-of-the-environment"}


def test_a_trace_loses_its_environment(path: Path) -> None:
    trace, dropped = trace_without_environment(load(path).trace)
    assert "env" in dropped
    assert "env" not in trace.settings.metadata
    assert trace.settings.metadata["pip_packages"] == planted.top()["pip_packages"]
    assert trace_without_environment(trace) == (trace, [])


def test_a_file_that_unpacks_to_far_more_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(byte_source, "_RATIO_FROM", 1 << 20)
    (tmp_path / "bomb.json.gz").write_bytes(gzip.compress(b"[" + b" " * (4 << 20)))
    with pytest.raises(ValueError, match="it unpacks to more than 500 times its size"):
        redact_file(tmp_path / "bomb.json.gz")
