"""torch.utils.tensorboard writes files that TensorBoard reads, or says what to install."""

from __future__ import annotations

import importlib
import importlib.util
from pathlib import Path

import pytest

import mindtorch_v2 as torch


def test_tensorboard_is_asked_for_when_it_is_missing() -> None:
    if importlib.util.find_spec("tensorboard") is not None:
        pytest.skip("tensorboard is installed")
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'mindtorch_v2\[tensorboard\]'"):
        importlib.import_module("mindtorch_v2.utils.tensorboard")


def test_tensorboard_files_can_be_read_back(tmp_path: Path) -> None:
    loader = pytest.importorskip(
        "tensorboard.backend.event_processing.event_file_loader", reason="runs with the extra `tensorboard`"
    )
    from mindtorch_v2.utils.tensorboard import SummaryWriter

    with SummaryWriter(tmp_path) as writer:
        writer.add_scalar("loss", torch.tensor(2.5), 3)
        writer.add_text("note", "hello", 4)
        writer.add_histogram("weights", torch.arange(10.0), 5)
        with pytest.raises(AttributeError, match="this library writes scalar"):
            writer.add_graph(None)
    (path,) = tmp_path.iterdir()
    events = [event for event in loader.EventFileLoader(str(path)).Load() if event.summary.value]
    assert [(event.step, event.summary.value[0].tag) for event in events] == [
        (3, "loss"),
        (4, "note/text_summary"),
        (5, "weights"),
    ]


def test_precision_recall_and_hyperparameters_are_written(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard", reason="runs with the extra `tensorboard`")
    from mindtorch_v2.utils.tensorboard import SummaryWriter, summary

    curve = summary.pr_curve("c", torch.tensor([1, 0, 1]), torch.tensor([0.9, 0.2, 0.4]), 3).value[0].tensor
    # at thresholds 0, 0.5 and 1: true positives, false positives, true negatives, false negatives
    assert list(curve.float_val)[:12] == [2, 1, 0, 1, 0, 0, 0, 1, 1, 0, 1, 2]
    with SummaryWriter(tmp_path) as writer:
        writer.add_hparams({"lr": 0.1, "name": "x"}, {"accuracy": 0.5}, run_name="run")
    assert list((tmp_path / "run").iterdir())
    with pytest.raises(ValueError, match="value should be one of int"):
        summary.hparams({"lr": [1]}, {})
