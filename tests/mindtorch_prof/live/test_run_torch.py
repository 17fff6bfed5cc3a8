"""Programs under real torch's profiler: real processes, real signals."""

from __future__ import annotations

import gzip
import json
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from mindtorch_prof import load
from mindtorch_prof.live.run_torch import export_trace, run, signal_number

SOURCE = Path(__file__).parents[3] / "src"
TRAINING = """
import os, sys, time, torch
model, other = torch.nn.Linear(4, 4), torch.nn.Linear(4, 4)
first = torch.optim.SGD(model.parameters(), lr=0.1)
second = torch.optim.SGD(other.parameters(), lr=0.1)
def train(steps):
    for _ in range(steps):
        (model(torch.ones(2, 4)).sum() + other(torch.ones(2, 4)).sum()).backward()
        first.step(); second.step()
"""


class Profile:
    def export_chrome_trace(self, path: str) -> None:
        Path(path).write_text('{"traceEvents": []}')


class BrokenProfile:
    def export_chrome_trace(self, path: str) -> None:
        Path(path).write_text('{"traceEv')
        raise RuntimeError("no space")


def test_a_trace_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    export_trace(Profile(), str(tmp_path / "out.json"))
    export_trace(Profile(), str(tmp_path / "out.json.gz"))
    with pytest.raises(RuntimeError, match="no space"):
        export_trace(BrokenProfile(), str(tmp_path / "broken.json"))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out.json", "out.json.gz"]
    assert json.loads(gzip.decompress((tmp_path / "out.json.gz").read_bytes())) == {"traceEvents": []}


def test_signals_are_named_with_and_without_sig() -> None:
    assert signal_number("usr2") == signal_number("SIGUSR2") == signal.SIGUSR2
    with pytest.raises(ValueError, match="is no signal"):
        signal_number("NOTHING")
    with pytest.raises(ValueError, match="ends or stops"):
        signal_number("TERM")


def test_settings_that_torch_does_not_have_are_refused() -> None:
    from mindtorch_prof.live.program import Program

    with pytest.raises(TypeError, match="with_nothing"):
        run(Program(__file__), with_nothing=True)


# ------------------------------------------------------------------------------------------------ real torch


@pytest.fixture
def start(torch_reference: ModuleType, tmp_path: Path) -> Any:
    """Starts `mindtorch-prof run` with a program, in a folder of its own."""

    def started(program: str, *options: str, environment: dict[str, str] | None = None) -> Any:
        (tmp_path / "program.py").write_text(textwrap.dedent(program))
        words = ["-m", "mindtorch_prof", "run", "--torch", "real", "-o", "out.json", *options, "program.py"]
        return subprocess.Popen(
            [sys.executable, *words],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(SOURCE), **(environment or {})},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    return started


def ended(process: Any) -> tuple[int, str, str]:
    out, err = process.communicate(timeout=600)
    return process.returncode, out, err


def steps(path: Path) -> list[str]:
    return sorted(name for name in load(path).trace.names if name.startswith("ProfilerStep#"))


@pytest.mark.parametrize(
    ("end", "code"), [("", 0), ("sys.exit(7)", 7), ("raise ValueError('broken')", 1), ("os._exit(9)", 9)]
)
def test_the_trace_is_written_however_the_program_ends(
    start: Any, tmp_path: Path, end: str, code: int
) -> None:
    exit_code, out, err = ended(start(TRAINING + f"train(2)\n{end}\n"))
    assert exit_code == code
    assert "Self CPU time total: " in out
    assert "open it with: mindtorch-prof report out.json" in err
    assert ("ValueError: broken" in err) == ("ValueError" in end)
    assert "aten::addmm" in load(tmp_path / "out.json").trace.names


def test_sigterm_ends_the_program_after_its_trace_is_written(start: Any, tmp_path: Path) -> None:
    process = start(TRAINING + "train(2)\nprint('ready', flush=True)\ntime.sleep(100)\n", "--quiet")
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGTERM)
    assert ended(process)[0] == 143
    assert "aten::addmm" in load(tmp_path / "out.json").trace.names


def test_steps_are_those_of_the_first_optimizer_and_have_torch_s_numbers(start: Any, tmp_path: Path) -> None:
    assert ended(start(TRAINING + "train(8)\n", "--quiet", "--steps", "3-5"))[0] == 0
    assert steps(tmp_path / "out.json") == ["ProfilerStep#3", "ProfilerStep#4", "ProfilerStep#5"]


def test_a_window_that_repeats_has_a_file_for_each_time(start: Any, tmp_path: Path) -> None:
    _, _, err = ended(start(TRAINING + "train(12)\n", "--quiet", "--steps", "1-2", "--every", "5"))
    assert "(and 2 before it)" in err
    assert steps(tmp_path / "out.2.json") == ["ProfilerStep#6", "ProfilerStep#7"]


def test_a_time_ends_the_recording_and_the_program_goes_on(start: Any, tmp_path: Path) -> None:
    program = TRAINING + "train(2)\ntime.sleep(1.5)\ntorch.eye(3)\nprint('went on')\n"
    _, out, _ = ended(start(program, "--quiet", "--seconds", "0.7"))
    names = load(tmp_path / "out.json").trace.names
    assert out == "went on\n"
    assert "aten::addmm" in names
    assert "aten::eye" not in names


def test_a_program_without_a_signal_is_told_that_nothing_was_recorded(start: Any) -> None:
    code, _, err = ended(start(TRAINING + "train(1)\n", "--quiet", "--on-signal", "USR2"))
    assert code == 0
    assert "ended without a signal USR2" in err


def test_signals_start_and_stop_a_recording_of_a_running_program(start: Any, tmp_path: Path) -> None:
    program = (
        TRAINING
        + """
import signal
train(1)
os.kill(os.getpid(), signal.SIGUSR2); train(2)
os.kill(os.getpid(), signal.SIGUSR2); torch.eye(3)
os.kill(os.getpid(), signal.SIGUSR2); train(1)
"""
    )
    assert ended(start(program, "--quiet", "--on-signal", "USR2"))[0] == 0
    assert "aten::eye" not in load(tmp_path / "out.1.json").trace.names
    assert "aten::addmm" in load(tmp_path / "out.2.json").trace.names
    assert not (tmp_path / "out.3.json").exists()


def test_a_program_that_profiles_itself_is_left_alone(start: Any, tmp_path: Path) -> None:
    program = (
        TRAINING
        + """
torch.eye(3)
with torch.profiler.profile() as own:
    torch.zeros(2)
print([row.key for row in own.key_averages()][:1])
"""
    )
    code, out, err = ended(start(program, "--quiet"))
    assert (code, out) == (0, "['aten::zeros']\n")
    assert err.count("the program profiles itself: it is left alone") == 1
    names = load(tmp_path / "out.json").trace.names
    assert "aten::eye" in names
    assert "aten::zeros" not in names


def test_workers_of_a_data_loader_leave_the_trace_alone(start: Any, tmp_path: Path) -> None:
    program = (
        TRAINING
        + """
data = torch.utils.data.TensorDataset(torch.ones(8, 4))
for (batch,) in torch.utils.data.DataLoader(data, batch_size=4, num_workers=2):
    model(batch)
"""
    )
    code, _, err = ended(start(program, "--quiet"))
    assert code == 0, err
    assert err.count("the trace is in") == 1


def test_ranks_have_files_of_their_own_and_one_of_them_prints(start: Any, tmp_path: Path) -> None:
    environment = {"RANK": "1", "WORLD_SIZE": "2"}
    _, out, err = ended(start(TRAINING + "train(1)\n", environment=environment))
    assert out == ""
    assert "out.rank1.json" in err
    assert (tmp_path / "out.rank1.json").exists()
