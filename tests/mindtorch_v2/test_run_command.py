"""`mindtorch-prof run`: real processes, real signals. However a program ends, its trace is written."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

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


def start(folder: Path, *arguments: str, **how: object) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
    return subprocess.Popen(
        [sys.executable, "-m", "mindtorch_prof", "run", *arguments],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **how,  # type: ignore[call-overload]
    )


def run(
    folder: Path, program: str, *arguments: str, options: tuple[str, ...] = ("-o", "out.json")
) -> tuple[int, str, str]:
    """Exit code, standard output, standard error of a program under `run`."""
    (folder / "program.py").write_text(textwrap.dedent(program))
    process = start(folder, *options, "program.py", *arguments)
    out, err = process.communicate(timeout=60)
    return process.returncode, out, err


def ops(path: Path) -> list[str]:
    return [
        event["name"] for event in json.loads(path.read_text())["traceEvents"] if event.get("cat") == "cpu_op"
    ]


def test_a_program_that_runs_to_its_end_gives_table_and_trace(tmp_path: Path) -> None:
    code, out, err = run(tmp_path, WORK)
    assert code == 0
    assert "aten::add" in out
    assert "Self CPU time total: " in out
    assert err == f"mindtorch-prof: the trace is in {tmp_path / 'out.json'}\n"
    assert "aten::add" in ops(tmp_path / "out.json")


def test_the_exit_code_of_sys_exit_is_kept_and_the_trace_written(tmp_path: Path) -> None:
    code, _, _ = run(tmp_path, WORK + "sys.exit(7)")
    assert code == 7
    assert "aten::add" in ops(tmp_path / "out.json")


def test_a_text_given_to_sys_exit_goes_to_stderr_with_code_1(tmp_path: Path) -> None:
    code, _, err = run(tmp_path, WORK + "sys.exit('no more')")
    assert code == 1
    assert err.startswith("no more\n")


def test_an_exception_shows_python_s_own_traceback_and_the_trace_is_written(tmp_path: Path) -> None:
    program = WORK + "def inner():\n    raise ValueError('broken')\ninner()\n"
    code, _, err = run(tmp_path, program)
    file = tmp_path / "program.py"
    plain = subprocess.run(
        [sys.executable, "program.py"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": f"{SOURCE}{os.pathsep}{SOURCE / 'mindtorch_v2/profiler/_spawned'}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert code == plain.returncode == 1
    assert err.startswith(plain.stderr)
    assert f'File "{file}", line 5' in err
    assert "aten::add" in ops(tmp_path / "out.json")


def test_a_syntax_error_is_told_as_python_does(tmp_path: Path) -> None:
    code, _, err = run(tmp_path, "x = (")
    assert code == 1
    assert err.startswith(f'  File "{tmp_path / "program.py"}", line 1\n')
    assert "SyntaxError" in err


@pytest.mark.parametrize(("name", "code"), [("SIGINT", 130), ("SIGTERM", 143), ("SIGHUP", 129)])
def test_a_signal_ends_the_program_after_its_trace_is_written(tmp_path: Path, name: str, code: int) -> None:
    (tmp_path / "program.py").write_text(
        WORK + "import time\nprint('ready', flush=True)\ntime.sleep(60)\nprint('never')\n"
    )
    process = start(tmp_path, "-o", "out.json", "--quiet", "program.py")
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    process.send_signal(getattr(signal, name))
    out, err = process.communicate(timeout=30)
    assert process.returncode == code
    assert "never" not in out
    assert ("KeyboardInterrupt" in err) == (name == "SIGINT")
    assert "aten::add" in ops(tmp_path / "out.json")


def test_a_program_that_handles_sigterm_itself_goes_on_as_it_wants(tmp_path: Path) -> None:
    program = WORK + (
        "import os, signal\n"
        "signal.signal(signal.SIGTERM, lambda *_: sys.exit(5))\n"
        "os.kill(os.getpid(), signal.SIGTERM)\n"
    )
    code, _, _ = run(tmp_path, program)
    assert code == 5
    assert "aten::add" in ops(tmp_path / "out.json")


def test_a_program_sees_what_python_would_give_it(tmp_path: Path) -> None:
    program = """
        import os, pickle, sys
        class Here: pass
        assert type(pickle.loads(pickle.dumps(Here()))) is Here
        main = sys.modules["__main__"]
        print(__name__, sys.argv, sys.path[0] == os.getcwd(), __file__, main.Here is Here, __spec__)
    """
    code, out, _ = run(tmp_path, program, "--lr", "0.1", "-o", options=("--quiet",))
    expected = f"__main__ ['program.py', '--lr', '0.1', '-o'] True {tmp_path / 'program.py'} True None\n"
    assert (code, out) == (0, expected)
    assert (tmp_path / "program.pt.trace.json").exists()


def test_modules_run_as_python_does_with_m(tmp_path: Path) -> None:
    package = tmp_path / "package"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "helper.py").write_text("value = 3\n")
    (package / "__main__.py").write_text(
        "import sys, torch\nfrom .helper import value\nprint(__package__, sys.argv[1:], value)\n"
    )
    process = start(tmp_path, "--quiet", "-m", "package", "--x", "1")
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (0, "package ['--x', '1'] 3\n"), err


@pytest.mark.parametrize("words", [("nothing.py",), ("-m", "nothing.at.all"), (), ("--steps", "0", "x.py")])
def test_what_cannot_be_run_ends_with_code_2_and_a_sentence(tmp_path: Path, words: tuple[str, ...]) -> None:
    process = start(tmp_path, *words)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 2
    assert "Traceback" not in err
    assert err.splitlines()[-1].startswith("mindtorch-prof")


def test_steps_are_those_of_the_first_optimizer(tmp_path: Path) -> None:
    code, _, _ = run(tmp_path, TRAINING, options=("--schedule", "1,1,2", "--quiet", "-o", "out.json"))
    events = json.loads((tmp_path / "out.json").read_text())["traceEvents"]
    steps = [
        event["name"]
        for event in events
        if event.get("name", "").startswith("ProfilerStep") and event.get("ph") == "X"
    ]
    assert code == 0
    assert sorted(set(steps)) == ["ProfilerStep#2", "ProfilerStep#3"]
    assert (
        sum(event.get("name", "").startswith("Optimizer.step") for event in events) == 4
    )  # two optimizers, two steps


def test_each_cycle_of_a_schedule_has_its_file(tmp_path: Path) -> None:
    run(tmp_path, TRAINING, options=("--schedule", "0,0,2,0", "--quiet", "-o", "out.json.gz"))
    assert sorted(path.name for path in tmp_path.glob("out*")) == [
        "out.1.json.gz",
        "out.2.json.gz",
        "out.3.json.gz",
    ]


def test_a_program_that_ends_before_its_schedule_begins_is_told_so(tmp_path: Path) -> None:
    code, _, err = run(tmp_path, TRAINING, options=("--schedule", "9,1,1", "-o", "out.json"))
    assert code == 0
    assert "nothing was recorded: the program ended after 5 steps" in err
    assert not (tmp_path / "out.json").exists()


def test_a_program_may_profile_itself(tmp_path: Path) -> None:
    program = WORK + (
        "from torch.profiler import profile\n"
        "with profile() as inner:\n    torch.zeros(2)\n"
        "print([row.key for row in inner.key_averages()][:1])\n"
        "left = profile(); left.start(); torch.zeros(2)\n"  # never stopped
    )
    code, out, _ = run(tmp_path, program)
    assert code == 0
    assert out.startswith("['aten::zeros']\n")
    assert "Incomplete: " in out
    assert "aten::add" in ops(tmp_path / "out.json")


def test_children_of_a_program_import_torch_and_leave_the_trace_alone(tmp_path: Path) -> None:
    program = """
        import multiprocessing, os, threading, torch
        def work(number):
            return float(torch.ones(2).sum()) + number
        if __name__ == "__main__":
            with multiprocessing.get_context("spawn").Pool(1) as pool:
                print(pool.map(work, [1]))
            if os.fork() == 0:
                torch.zeros(3)
            else:
                os.wait()
                threading.Thread(target=lambda: torch.eye(2)).start()
    """
    code, out, err = run(tmp_path, program, options=("--all-threads", "--quiet", "-o", "out.json"))
    assert (code, out) == (0, "[3.0]\n"), err
    assert "aten::eye" in ops(tmp_path / "out.json")
    assert err.count("the trace is in") == 1


def test_a_trace_that_cannot_be_written_is_told_and_the_exit_code_kept(tmp_path: Path) -> None:
    code, _, err = run(tmp_path, WORK + "sys.exit(3)", options=("--quiet", "-o", "no/such/folder/out.json"))
    assert code == 3
    assert "could not be written" in err
