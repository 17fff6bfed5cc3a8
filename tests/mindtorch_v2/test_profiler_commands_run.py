"""`mindtorch-prof run`: real processes, real signals. However a program ends, its trace is written."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

from mindtorch_prof import cli

SOURCE = Path(__file__).parents[2] / "src"
WORK = "import sys, torch\ntorch.ones(3) + 1\n"
TRAINING = """
import torch
from torch import nn
model, other = nn.Linear(4, 4), nn.Linear(4, 4)
first = torch.optim.SGD(model.parameters(), lr=0.1)
second = torch.optim.SGD(other.parameters(), lr=0.1)
for step in range(5):
    (model(torch.ones(2, 4)).sum() + other(torch.ones(2, 4)).sum()).backward()
    first.step(); second.step(); first.zero_grad(); second.zero_grad()
"""
OUT = ("-o", "out.json")
QUIET = ("--quiet", "-o", "out.json")

# what is run: the options of `run`, the program, its arguments
PROGRAMS: dict[str, tuple[tuple[str, ...], str, tuple[str, ...]]] = {
    "end": (OUT, WORK, ()),
    "exit": (QUIET, WORK + "sys.exit(7)", ()),
    "text": (QUIET, WORK + "sys.exit('no more')", ()),
    "raises": (OUT, WORK + "def inner():\n    raise ValueError('broken')\ninner()\n", ()),
    "syntax": (OUT, "x = (", ()),
    "handles": (
        QUIET,
        WORK
        + "import os, signal\n"
        + "signal.signal(signal.SIGTERM, lambda *_: sys.exit(5))\n"
        + "os.kill(os.getpid(), signal.SIGTERM)\n",
        (),
    ),
    "main": (
        ("--quiet",),
        """
        import os, pickle, sys
        class Here: pass
        assert type(pickle.loads(pickle.dumps(Here()))) is Here
        main = sys.modules["__main__"]
        print(__name__, sys.argv, sys.path[0] == os.getcwd(), __file__, main.Here is Here, __spec__)
        """,
        ("--lr", "0.1", "-o"),
    ),
    "schedule": (("--schedule", "1,1,2", *QUIET), TRAINING, ()),
    "cycles": (("--schedule", "0,0,2,0", "--quiet", "-o", "out.json.gz"), TRAINING, ()),
    "late": (("--schedule", "9,1,1", *OUT), TRAINING, ()),
    "inner": (
        OUT,
        WORK
        + "from torch.profiler import profile\n"
        + "with profile() as inner:\n    torch.zeros(2)\n"
        + "print([row.key for row in inner.key_averages()][:1])\n"
        + "left = profile(); left.start(); torch.zeros(2)\n",  # never stopped
        (),
    ),
    "children": (
        ("--all-threads", *QUIET),
        """
        import multiprocessing, os, threading, torch
        def work(number):
            return float(torch.ones(2).sum()) + number
        if __name__ == "__main__":
            with multiprocessing.get_context("spawn").Pool(1) as pool:
                print(pool.map(work, [1]), flush=True)
            if os.fork() == 0:
                torch.zeros(3)
            else:
                os.wait()
                threading.Thread(target=lambda: torch.eye(2)).start()
        """,
        (),
    ),
    "unwritable": (("--quiet", "-o", "no/such/folder/out.json"), "print('started')\n" + WORK, ()),
}


@dataclass(frozen=True)
class Done:
    """How a program ended, and where."""

    code: int
    out: str
    err: str
    folder: Path

    def ops(self) -> list[str]:
        events = json.loads((self.folder / "out.json").read_text())["traceEvents"]
        return [event["name"] for event in events if event.get("cat") == "cpu_op"]


def start(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "mindtorch_prof", "run", "--torch", "mindtorch", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(SOURCE)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=_with_default_signals,  # noqa: PLW1509
    )


def _with_default_signals() -> None:
    """Under nohup, or in the background of a shell, a program would go on."""
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)


Results = Callable[[str], Done]


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Results:
    """How each of PROGRAMS ended; they run side by side."""

    def run(folder: Path, name: str) -> Done:
        options, program, arguments = PROGRAMS[name]
        (folder / "program.py").write_text(textwrap.dedent(program))
        process = start(folder, *options, "program.py", *arguments)
        out, err = process.communicate(timeout=600)
        return Done(process.returncode, out, err, folder)

    with ThreadPoolExecutor(4) as pool:
        waiting: dict[str, Future[Done]] = {
            name: pool.submit(run, tmp_path_factory.mktemp(name), name) for name in PROGRAMS
        }
        return {name: future.result() for name, future in waiting.items()}.__getitem__


def test_a_program_that_runs_to_its_end_gives_table_and_trace(done: Results) -> None:
    ended = done("end")
    assert ended.code == 0
    assert "aten::add" in ended.out
    assert "Self CPU time total: " in ended.out
    where = f"the trace is in {ended.folder / 'out.json'}"
    assert ended.err == f"mindtorch-prof: {where}; open it with: mindtorch-prof report out.json\n"
    assert "aten::add" in ended.ops()


def test_the_exit_code_of_sys_exit_is_kept_and_the_trace_written(done: Results) -> None:
    assert done("exit").code == 7
    assert "aten::add" in done("exit").ops()


def test_a_text_given_to_sys_exit_goes_to_stderr_with_code_1(done: Results) -> None:
    assert done("text").code == 1
    assert done("text").err.startswith("no more\n")


def test_an_exception_shows_python_s_own_traceback_and_the_trace_is_written(done: Results) -> None:
    ended = done("raises")
    served = os.pathsep.join([str(SOURCE), str(SOURCE / "mindtorch_v2/profiler/_spawned")])
    plain = subprocess.run(
        [sys.executable, "program.py"],
        cwd=ended.folder,
        env={**os.environ, "PYTHONPATH": served},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.code == plain.returncode == 1
    assert ended.err.startswith(plain.stderr)
    assert "ValueError: broken" in plain.stderr
    assert "aten::add" in ended.ops()


def test_a_syntax_error_is_told_as_python_does(done: Results) -> None:
    ended = done("syntax")
    assert ended.code == 1
    assert ended.err.startswith(f'  File "{ended.folder / "program.py"}", line 1\n')
    assert "SyntaxError" in ended.err


def test_a_signal_ends_the_program_after_its_trace_is_written(tmp_path: Path) -> None:
    program = WORK + "import time\nprint('ready', flush=True)\ntime.sleep(100)\nprint('never')\n"
    (tmp_path / "program.py").write_text(program)
    codes = {"SIGINT": 130, "SIGTERM": 143, "SIGHUP": 129}
    processes = {name: start(tmp_path, "-o", f"{name}.json", "--quiet", "program.py") for name in codes}
    for name, process in processes.items():
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.send_signal(getattr(signal, name))
    for name, process in processes.items():
        out, err = process.communicate(timeout=600)
        assert process.returncode == codes[name]
        assert "never" not in out
        assert ("KeyboardInterrupt" in err) == (name == "SIGINT")
        assert "aten::add" in Done(0, out, err, tmp_path / name).folder.with_suffix(".json").read_text()


def test_a_program_that_handles_sigterm_itself_goes_on_as_it_wants(done: Results) -> None:
    assert done("handles").code == 5
    assert "aten::add" in done("handles").ops()


def test_a_program_sees_what_python_would_give_it(done: Results) -> None:
    ended = done("main")
    file = ended.folder / "program.py"
    assert ended.out == f"__main__ ['program.py', '--lr', '0.1', '-o'] True {file} True None\n"
    assert ended.code == 0
    assert (ended.folder / "program.pt.trace.json").exists()


def test_modules_run_as_python_does_with_m(tmp_path: Path) -> None:
    package = tmp_path / "package"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "helper.py").write_text("value = 3\n")
    (package / "__main__.py").write_text(
        "import sys, torch\nfrom .helper import value\nprint(__package__, sys.argv[1:], value)\n"
    )
    process = start(tmp_path, "--quiet", "-m", "package", "--x", "1")
    out, err = process.communicate(timeout=600)
    assert (process.returncode, out) == (0, "package ['--x', '1'] 3\n"), err


def test_a_module_that_is_not_there_ends_with_code_2(tmp_path: Path) -> None:
    process = start(tmp_path, "-m", "nothing.at.all")
    _, err = process.communicate(timeout=600)
    assert process.returncode == 2
    assert err.startswith("mindtorch-prof: there is no module nothing.at.all")


@pytest.mark.parametrize(
    "words",
    [
        ["--steps", "0", "program.py"],
        ["--schedule", "1,2", "program.py"],
        ["--schedule", "1,1,0", "program.py"],
        ["--steps", "1", "--schedule", "1,1,1", "program.py"],
    ],
)
def test_wrong_arguments_end_with_code_2_and_a_usage_line(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(["run", *words])
    assert ended.value.code == 2
    assert capsys.readouterr().err.startswith("usage: mindtorch-prof run")


@pytest.mark.parametrize("words", [["nothing.py"], [], ["--sort-by", "nothing", "x.py"]])
def test_what_cannot_be_run_is_told_in_a_sentence(
    words: list[str], capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert cli.main(["run", *words]) == 2
    assert capsys.readouterr().err.startswith("mindtorch-prof: ")


def test_steps_are_those_of_the_first_optimizer(done: Results) -> None:
    ended = done("schedule")
    events = json.loads((ended.folder / "out.json").read_text())["traceEvents"]
    names = [event.get("name", "") for event in events if event.get("ph") == "X"]
    assert ended.code == 0
    assert {name for name in names if name.startswith("ProfilerStep")} == {"ProfilerStep#2", "ProfilerStep#3"}
    assert sum(name.startswith("Optimizer.step") for name in names) == 4  # two optimizers, two steps


def test_each_cycle_of_a_schedule_has_its_file(done: Results) -> None:
    written = sorted(path.name for path in done("cycles").folder.glob("out*"))
    assert written == ["out.1.json.gz", "out.2.json.gz", "out.3.json.gz"]
    assert "Warning" not in done("cycles").err


def test_a_program_that_ends_before_its_schedule_begins_is_told_so(done: Results) -> None:
    ended = done("late")
    assert ended.code == 0
    assert "nothing was recorded: the program ended after 5 steps" in ended.err
    assert not (ended.folder / "out.json").exists()


def test_a_program_may_profile_itself(done: Results) -> None:
    ended = done("inner")
    assert ended.code == 0
    assert ended.out.startswith("['aten::zeros']\n")
    assert "Incomplete: " in ended.out
    assert "aten::add" in ended.ops()


def test_children_of_a_program_import_torch_and_leave_the_trace_alone(done: Results) -> None:
    ended = done("children")
    assert (ended.code, ended.out) == (0, "[3.0]\n"), ended.err
    assert "aten::eye" in ended.ops()
    assert ended.err.count("the trace is in") == 1


def test_a_folder_that_is_not_there_is_told_before_the_program_starts(done: Results) -> None:
    assert done("unwritable").code == 2
    assert "cannot be written: there is no folder" in done("unwritable").err
    assert "started" not in done("unwritable").out
