"""Shared by the tests of the engine: a trace file whose numbers are known, a recording, the command line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import kineto_documents as documents
import pytest

import mindtorch_v2 as torch
from mindtorch_prof import cli, load
from mindtorch_prof.torch_api.results import Results
from mindtorch_v2 import nn
from mindtorch_v2.profiler import profile, record_function, schedule


@pytest.fixture(scope="session")
def three_steps_path(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A file: three training steps of 100 us, and an event of 3 us with a hostile name on another thread."""
    events = [e for number in (1, 2, 3) for e in documents.training_step(number, 1000.0 + 110 * number)]
    events.append(documents.event(documents.HOSTILE_NAME, 5000, 3, tid=8))
    return str(documents.write(tmp_path_factory.mktemp("three_steps") / "trace.json.gz", events))


@pytest.fixture(scope="session")
def three_steps(three_steps_path: str) -> Any:
    """The same trace, loaded."""
    return load(three_steps_path)


@pytest.fixture(scope="session")
def recorded_training() -> Results:
    """Three recorded steps of a small network, everything on."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with profile(
        schedule=schedule(wait=0, warmup=1, active=3, repeat=1),
        record_shapes=True,
        profile_memory=True,
        with_stack=True,
        with_flops=True,
        with_modules=True,
    ) as prof:
        for _ in range(4):
            with record_function("forward"):
                loss = model(torch.ones(16, 4)).sum()
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            prof.step()
    assert prof.profiler is not None
    return prof.profiler._results


@pytest.fixture(scope="session")
def report_page(recorded_training: Results, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The HTML report of that recording."""
    path = tmp_path_factory.mktemp("report") / "report.html"
    recorded_training.export_html(path)
    return path


@pytest.fixture(scope="session")
def ecosystem() -> Path:
    """The folder of traces that others recorded: shared/ecosystem beside the checkout."""
    for parent in Path(__file__).resolve().parents:
        folder = parent / "shared" / "ecosystem"
        if folder.is_dir():
            return folder
    pytest.skip("NOT CHECKED: there is no folder shared/ecosystem beside the checkout")


@pytest.fixture
def printed(capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """What a command prints: `printed("show", path)`; `code` is the exit code that it must have."""

    def run(*words: str, code: int = 0) -> str:
        assert cli.main(list(words)) == code
        return capsys.readouterr().out

    return run
