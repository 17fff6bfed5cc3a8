"""JSON text: strings that end in a backslash are written so that Perfetto sees their end."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mindtorch_prof import cli, load
from mindtorch_prof.json_text import encode, safe_end_bytes, safe_ends, spaced

NAME = "C:\\data\\"


@given(st.lists(st.text(alphabet='ab\\"\n/u'), max_size=6))
def test_the_value_stays_and_no_string_ends_in_a_plain_backslash(texts: list[str]) -> None:
    value = {text: [text, f"{text}\\"] for text in texts}
    for text in (encode(value), spaced(value)):
        assert json.loads(text) == value
        assert json.loads(safe_ends(text)) == value
        # scanned as Perfetto does, where a quote after a backslash never ends a string
        in_string = False
        for place, char in enumerate(text):
            if char == '"' and (not in_string or text[place - 1] != "\\"):
                in_string = not in_string
            elif not in_string:
                assert char in "{}[]:, "
        assert not in_string
    plain = json.dumps(value)
    assert safe_end_bytes(plain.encode()).decode() == safe_ends(plain)


def trace_file(folder: Path) -> Path:
    """A trace with a name, a thread, arguments and a top-level key that end in backslashes."""
    import mindtorch_v2 as torch
    from mindtorch_v2.profiler import profile, record_function

    path = folder / "trace.json"
    with profile(record_shapes=True, with_stack=True) as prof:
        prof.add_metadata("folder", NAME)
        with record_function(NAME, NAME):
            torch.ones(3).add(1)
        with record_function("two\\\\"):
            torch.ones(3).mul(2)
    prof.export_chrome_trace(str(path))
    return path


WRITERS = [
    "",
    "slice {0} -o {1}",
    "merge {0} -o {1}",
    "convert {0} --to chrome -o {1}",
]


@pytest.fixture(scope="module", params=WRITERS, ids=["export", "slice", "merge", "convert"])
def written(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file that one of the writers of traces wrote."""
    folder = tmp_path_factory.mktemp("backslash")
    path = trace_file(folder)
    if not request.param:
        return path
    out = folder / "out.json"
    assert cli.main(request.param.format(path, out).split()) == 0
    return out


def test_every_writer_keeps_the_name(written: Path) -> None:
    text = written.read_text()
    assert '\\\\"' not in text
    names = {event["name"] for event in json.loads(text)["traceEvents"]}
    assert NAME in names
    assert "two\\\\" in names
    assert NAME in load(written).trace.names


def test_perfetto_opens_what_every_writer_wrote(written: Path, ecosystem: Path) -> None:
    if shutil.which("node") is None:
        pytest.skip("NOT CHECKED: there is no node for Perfetto's trace processor")
    script = ecosystem / "check_trace.py"
    beside = ecosystem.parents[1] / "venvs" / "eco" / "bin" / "python"  # where its requirements are installed
    python = str(beside) if beside.exists() else sys.executable
    done = subprocess.run(
        [python, str(script), str(written), "--perfetto", "--schema"],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    if "not installed" in done.stdout + done.stderr:
        pytest.skip("NOT CHECKED: Perfetto's trace processor is not installed")
    assert done.returncode == 0, done.stdout + done.stderr


def test_execution_traces_have_safe_names(tmp_path: Path) -> None:
    import mindtorch_v2 as torch
    from mindtorch_v2.profiler import ExecutionTraceObserver, record_function

    path = tmp_path / "et.json"
    observer = ExecutionTraceObserver().register_callback(str(path))
    observer.start()
    with record_function(NAME):
        torch.ones(3).add(1)
    observer.stop()
    observer.unregister_callback()
    text = path.read_text()
    assert '\\\\"' not in text
    assert NAME in {node["name"] for node in json.loads(text)["nodes"]}
