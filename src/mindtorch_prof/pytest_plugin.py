"""A pytest plugin: `pytest --torch-prof` counts what each test does, the fixture `torch_prof` lets a test check it.

Nothing is imported and nothing is recorded unless one of them is used. Counters (ops, allocations, peak memory, kernels) have no noise:
a test that fails by one of them does more than before.
"""

from __future__ import annotations

import json
import os
from collections.abc import Generator, Sequence
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from types import TracebackType

    from .analysis.baseline import Baseline
    from .analysis.recording import Recording
    from .live.block import Counters, RecordedBlock

_PROPERTY = "torch_prof"
_TITLES = {
    "ops": "ops",
    "allocations": "allocations",
    "allocated": "bytes allocated",
    "peak_memory": "peak bytes",
    "kernels": "kernels",
}
_HELP = "count the ops, allocations and kernels of each test, and its peak memory"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the options."""
    group = parser.getgroup("torch-prof", "counters of real torch or mindtorch_v2")
    group.addoption("--torch-prof", action="store_true", help=_HELP)
    group.addoption(
        "--torch-prof-library",
        choices=("real", "mindtorch"),
        help="which library is counted, if both are imported (real torch)",
    )
    group.addoption(
        "--torch-prof-save", metavar="FILE", help="write the counters of all tests to a JSON file"
    )
    group.addoption(
        "--torch-prof-compare",
        metavar="FILE",
        help="fail if a test counts more than in a file that --torch-prof-save wrote",
    )
    group.addoption(
        "--torch-prof-update",
        action="store_true",
        help="write the baselines that assert_no_regression compares with, instead of comparing",
    )


def _counts_all(config: pytest.Config) -> bool:
    options = ("--torch-prof", "--torch-prof-save", "--torch-prof-compare")
    return any(config.getoption(name) for name in options)


# ---------------------------------------------------------------------------------------------------- every test


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, None]:
    """Record a test where the options ask for it and the test does not do so itself."""
    if not _counts_all(item.config) or "torch_prof" in getattr(item, "fixturenames", ()):
        yield
        return
    block = _block(item.config)
    if block is None:
        yield
        return
    block.start()
    try:
        yield
    finally:
        block.close()
        if not block.interrupted:
            _note(item, block.counters())


def _block(config: pytest.Config) -> RecordedBlock | None:
    from .live.block import RecordedBlock, imported_library

    torch = imported_library(config.getoption("--torch-prof-library"))
    return None if torch is None else RecordedBlock(torch)


def _note(item: pytest.Item, counters: Counters) -> None:
    item.user_properties.append((_PROPERTY, counters.as_dict()))  # also travels from xdist's workers


def pytest_terminal_summary(terminalreporter: Any, exitstatus: int, config: pytest.Config) -> None:
    """Print the counters, and what got worse."""
    if not _counts_all(config):
        return
    counted = {test: values for test, values in _counted(terminalreporter).items() if any(values.values())}
    terminalreporter.section("torch-prof")
    if not counted:
        terminalreporter.write_line("no test used torch")
        return
    for line in _table(counted):
        terminalreporter.write_line(line)
    for line in config.stash.get(_WORSE, []):
        terminalreporter.write_line(line, red=True)


_WORSE = pytest.StashKey[list[str]]()


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Save and compare the counters of all tests, in the process that prints."""
    config = session.config
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    save, compare = config.getoption("--torch-prof-save"), config.getoption("--torch-prof-compare")
    if reporter is None or hasattr(config, "workerinput") or not (save or compare):
        return
    counted = _counted(reporter)
    if compare:
        with open(compare, encoding="utf-8") as stream:
            worse = list(_worse(json.load(stream), counted))
        config.stash[_WORSE] = worse
        if worse and session.exitstatus == 0:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
    if save:
        from .files import open_for_export

        with open_for_export(save) as out:
            out.write(json.dumps(dict(sorted(counted.items())), indent=1).encode() + b"\n")


def _counted(reporter: Any) -> dict[str, dict[str, int]]:
    """Counters by the id of a test, of those that passed or failed."""
    return {
        report.nodeid: dict(value)
        for outcome in ("passed", "failed")
        for report in reporter.stats.get(outcome, [])
        for name, value in getattr(report, "user_properties", ())
        if name == _PROPERTY
    }


def _worse(before: dict[str, dict[str, int]], after: dict[str, dict[str, int]]) -> Generator[str, None, None]:
    for test, now in after.items():
        for name, value in now.items():
            limit = before.get(test, {}).get(name)
            if limit is not None and value > limit:
                yield f"{test}: {_TITLES[name]} {limit:,} -> {value:,}"


def _table(counted: dict[str, dict[str, int]]) -> Generator[str, None, None]:
    shown = ("ops", "allocations", "peak_memory", "kernels")
    titles = [_TITLES[name] for name in shown]
    yield "  ".join(f"{title:>12}" for title in titles) + "  test"
    for test, values in counted.items():
        yield "  ".join(f"{values[name]:>12,}" for name in shown) + f"  {test}"


# ---------------------------------------------------------------------------------------------------- the fixture


class TorchProf:
    """The fixture: a context manager that records what is inside it; afterwards its counters can be read and compared."""

    def __init__(self, request: pytest.FixtureRequest) -> None:
        self._request = request
        self._block: RecordedBlock | None = None

    def __enter__(self) -> TorchProf:
        block = _block(self._request.config)
        if block is None:
            raise RuntimeError("torch_prof: neither torch nor mindtorch_v2 is imported")
        self._block = block
        block.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._block is not None:
            self._block.close()
            if error is None:
                _note(self._request.node, self._block.counters())

    @property
    def counters(self) -> Counters:
        """What the block did: ops, allocations, allocated, peak_memory, kernels."""
        return self._finished().counters()

    @property
    def recording(self) -> Recording:
        """The recording, for every analysis of mindtorch_prof."""
        recording = self._finished().recording
        assert recording is not None
        return recording

    def _finished(self) -> RecordedBlock:
        if self._block is None or self._block.recording is None:
            raise RuntimeError("torch_prof: nothing is recorded; expected `with torch_prof:` before")
        return self._block

    def assert_no_regression(
        self,
        baseline: str | os.PathLike[str] | Baseline,
        *,
        on: Sequence[str] | None = None,
        tolerance: float = 0.0,
        exact: bool = False,
    ) -> None:
        """Fail if a counter is above the baseline; `mindtorch-prof check` has the same rules.

        baseline: a file, relative to the folder of the test, which `pytest --torch-prof-update` writes; or a Baseline.
        on: the metrics that are checked: by default those without noise (ops, count, shapes, flops, memory, kernels, peak_memory).
        tolerance: by which share a counter may grow; exact: a counter that decreases fails as well.
        """
        __tracebackhide__ = True
        from .analysis.baseline import Baseline, make_baseline, read_baseline, write_baseline
        from .analysis.check import COUNTED, check

        if not isinstance(baseline, Baseline):
            path = os.path.join(os.path.dirname(self._request.path), os.fspath(baseline))
            if self._request.config.getoption("--torch-prof-update"):
                os.makedirs(os.path.dirname(path), exist_ok=True)
                write_baseline(make_baseline([self.recording], source=self._request.node.nodeid), path)
                return
            if not os.path.exists(path):
                pytest.fail(
                    f"{path}: there is no baseline; `pytest --torch-prof-update` writes it", pytrace=False
                )
            baseline = read_baseline(path)
        report = check([self.recording], baseline, on=on or COUNTED, tolerance=tolerance, exact=exact)
        if not report:
            lines = [f"{len(report.failures)} counters are worse than the baseline:"]
            pytest.fail("\n  ".join([*lines, *[each.sentence() for each in report.failures]]), pytrace=False)


@pytest.fixture
def torch_prof(request: pytest.FixtureRequest) -> Generator[TorchProf, None, None]:
    """Record a block of a test and check its counters: `with torch_prof: ...`, then `torch_prof.assert_no_regression("step.json")`."""
    fixture = TorchProf(request)
    yield fixture
    if fixture._block is not None:
        fixture._block.close()
