"""What every test may rely on, before and after: nothing records, gradients are on, float32 is default.

Random numbers are the same in every run, whatever ran before.
"""

from __future__ import annotations

import gc
import importlib
import importlib.util
import os
import random
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

import mindtorch_v2 as torch
from mindtorch_v2 import _compile
from mindtorch_v2 import _recording_hooks as _hooks
from mindtorch_v2.profiler import process_flags

# The same examples in every run: a change must not fail because of an example that happens to be drawn today.
# `pytest --hypothesis-profile=search` looks for others. A deadline, and the check that examples are drawn
# quickly, are timing assertions: on a busy machine a test of a millisecond can take half a second.
_UNTIMED = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("same examples", derandomize=True, **_UNTIMED)
settings.register_profile("search", derandomize=False, **_UNTIMED)
settings.load_profile("same examples")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup() -> None:
    """Seed random numbers before the fixtures of a test: the tests before it differ from run to run."""
    random.seed(0)
    np.random.seed(0)  # noqa: NPY002  (also what the library's data workers draw from)
    torch.manual_seed(0)


def pytest_collection_finish() -> None:
    """Hide the collected tests from the garbage collector.

    They are some hundred thousand objects: each full collection takes milliseconds longer for them, thousands
    of times in a run of the suite.
    """
    gc.collect()
    gc.freeze()


def pytest_sessionstart() -> None:
    """Programs of the tests heed signals, also where a shell started the tests with some of them ignored."""
    for number, handler in ((signal.SIGINT, signal.default_int_handler), (signal.SIGQUIT, signal.SIG_DFL)):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, handler)


@pytest.fixture(autouse=True)
def nothing_left_behind() -> Iterator[None]:
    """No hook and no flag of a recording is set before or after a test, and global modes are as they were."""
    assert _process_state() == [], "set before this test"
    profile_function = sys.getprofile()
    grad_enabled, default_dtype = torch.is_grad_enabled(), torch.get_default_dtype()
    yield
    left = _process_state()
    profile_function_changed = sys.getprofile() is not profile_function
    if left:
        _hooks.remove_all()
        _hooks.set_muted(False)
        importlib.reload(process_flags)
    if profile_function_changed:
        sys.setprofile(profile_function)
    torch.set_grad_enabled(grad_enabled)
    torch.set_default_dtype(default_dtype)
    assert left == [], "set by this test and not reset"
    assert not profile_function_changed, "this test changed sys.setprofile and did not reset it"


_FLAGS = {name: value for name, value in vars(process_flags).items() if isinstance(value, bool)}


def _process_state() -> list[str]:
    """The names of all hooks that are on and of all flags that do not have their default."""
    flags = {
        name: value
        for name, value in vars(process_flags).items()
        if isinstance(value, bool) and value is not _FLAGS[name]
    }
    return [*_hooks.active_hooks(), *flags]


@pytest.fixture
def eager_warnings_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """Warnings that a function runs eagerly, given once in a process, are given again."""
    monkeypatch.setattr(_compile, "_warned", set())


@pytest.fixture(scope="session")
def torch_reference() -> ModuleType:
    """Real torch, for side-by-side tests; they run where it is installed."""
    if importlib.util.find_spec("torch") is None:
        pytest.skip("runs where real torch is installed")
    return importlib.import_module("torch")


@pytest.fixture(scope="session")
def op_names() -> Callable[[Callable[[], object]], list[str]]:
    """Calls a function under a profiler and returns the names of the ops that it shows, without `aten::`."""

    def names(call: Callable[[], object]) -> list[str]:
        with torch.profiler.profile(record_shapes=True) as prof:
            call()
        return [event.name.removeprefix("aten::") for event in prof.events()]

    return names


@pytest.fixture(scope="session")
def run_python() -> Callable[..., str]:
    """Runs a program in a new interpreter, which must end well, and returns what it prints."""

    def run(program: str, *folders: Path, **environment: str) -> str:
        """The program imports from `folders` first; `environment` is added to this process's."""
        path = os.pathsep.join([*map(str, folders), *filter(None, [os.environ.get("PYTHONPATH")])])
        done = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(program)],
            env={**os.environ, "PYTHONPATH": path, **environment},
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run
