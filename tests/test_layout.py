"""The layout of tests: the test of src/mindtorch_prof/a/b.py is tests/mindtorch_prof/a/test_b.py."""

from __future__ import annotations

import ast
import random
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

import mindtorch_v2 as torch

ROOT = Path(__file__).parents[1]
SOURCE, TESTS = ROOT / "src" / "mindtorch_prof", ROOT / "tests" / "mindtorch_prof"

# Tests of the engine as a whole.
OF_NO_MODULE = {
    "test_imports.py",  # which module imports which
    "commands/test_screens.py",  # what all commands print in terminals of several widths
    "analysis/test_any_trace.py",  # all analyses of one random trace agree
    "commands/test_folders.py",  # folders are accepted wherever a trace is
    "analysis/test_accelerators.py",  # devices of all vendors, in all analyses
    "load/test_ascend_levels.py",  # captures of all levels, in both forms
    "load/test_ascend_memory.py",  # the vendor's memory tables beside both forms
    "load/test_ascend_variants.py",  # captures as other versions write them
    "commands/test_every_format.py",  # every command on a trace of every format
    "commands/test_deep_nesting.py",  # calls nested thousands of levels deep, in several commands
    "commands/test_hostile_files.py",  # every command on files that no profiler writes
    "commands/test_hostile_names.py",  # what every command prints of hostile names
    "commands/test_standard_output.py",  # every command that writes a file, to standard output
}
SHORT = 40  # lines: a module up to this length may be tested through those that use it


def module_of(test: Path) -> Path:
    """The module or package that a test file is named after."""
    folder = SOURCE / test.relative_to(TESTS).parent
    name = test.stem.removeprefix("test_")
    names = (f"{name}.py", f"_{name}.py", f"{name}/__init__.py")
    return next((folder / name for name in names if (folder / name).exists()), folder / f"{name}.py")


def test_every_test_of_the_engine_is_named_after_a_module() -> None:
    tests = [
        test for test in TESTS.rglob("test_*.py") if test.relative_to(TESTS).as_posix() not in OF_NO_MODULE
    ]
    assert len(tests) > 50
    assert [str(test.relative_to(TESTS)) for test in tests if not module_of(test).exists()] == []


def test_every_module_of_the_engine_has_a_test_file() -> None:
    tested = {module_of(test) for test in TESTS.rglob("test_*.py")}
    modules = [path for path in SOURCE.rglob("*.py") if len(path.read_text().splitlines()) > SHORT]
    assert len(modules) > 50
    assert sorted(str(path.relative_to(SOURCE)) for path in modules if path not in tested) == []


def test_every_exception_is_a_test_file() -> None:
    assert [name for name in OF_NO_MODULE if not (TESTS / name).exists()] == []


def test_no_two_helpers_of_tests_have_one_name() -> None:
    folders = ("helpers", "mindtorch_prof/facts", "mindtorch_v2/facts", "mindtorch_v2/programs")
    names = [path.name for folder in folders for path in (ROOT / "tests" / folder).glob("*.py")]
    assert len(names) > 20
    assert sorted({name for name in names if names.count(name) > 1}) == []


def test_hypothesis_draws_the_same_examples_in_every_run_and_does_not_look_at_the_clock(
    pytestconfig: pytest.Config,
) -> None:
    assert settings().derandomize or pytestconfig.getoption("--hypothesis-profile") == "search"
    assert settings().deadline is None
    assert HealthCheck.too_slow in settings().suppress_health_check


def test_settings_of_single_tests_do_not_bring_the_clock_back() -> None:
    """A list of suppressed checks replaces the profile's list."""
    forgetful = []
    for path in (ROOT / "tests").rglob("test_*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.keyword) and node.arg == "suppress_health_check":
                given = ast.unparse(node.value)
                if "too_slow" not in given and given not in {"[*HealthCheck]", "list(HealthCheck)"}:
                    forgetful.append(f"{path.relative_to(ROOT)}:{node.value.lineno}")
    assert forgetful == []


@pytest.mark.parametrize("_run", [1, 2])
def test_random_numbers_do_not_depend_on_the_tests_before(_run: int) -> None:
    drawn = (random.random(), float(np.random.random()), torch.rand(()).item())  # noqa: NPY002
    random.seed(0)
    np.random.seed(0)  # noqa: NPY002
    torch.manual_seed(0)
    assert drawn == (random.random(), float(np.random.random()), torch.rand(()).item())  # noqa: NPY002
