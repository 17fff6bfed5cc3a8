"""The callback for Hugging Face's Trainer: with a stand-in for its class, and with Transformers itself."""

from __future__ import annotations

import importlib
import sys
import warnings
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import mindtorch_v2
from mindtorch_prof import load

MODULE = "mindtorch_prof.integrations.transformers"


def fresh(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.delitem(sys.modules, MODULE, raising=False)
    return importlib.import_module(MODULE)


def test_the_callback_records_steps_of_the_optimizer(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    transformers = ModuleType("transformers")
    transformers.TrainerCallback = type("TrainerCallback", (), {})  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "transformers", transformers)
    monkeypatch.setitem(sys.modules, "torch", mindtorch_v2)
    callback = fresh(monkeypatch).ProfCallback(str(tmp_path), first_step=1, steps=1, report=False)
    callback.on_train_begin(None, None, None, model=None)
    for _ in range(3):
        mindtorch_v2.ones(2) + 1
        callback.on_step_end(None, None, None)
    callback.on_train_end(None, None, None)
    (path,) = tmp_path.iterdir()
    assert "ProfilerStep#1" in load(path).trace.names


def test_without_transformers_the_import_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "transformers", None)  # type: ignore[arg-type]
    with pytest.raises(ImportError, match="pip install transformers"):
        fresh(monkeypatch)


def test_the_trainer_drives_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        transformers = pytest.importorskip("transformers", reason="runs where Transformers is installed")
        pytest.importorskip("accelerate", reason="runs where accelerate is installed")
        import torch

        class Model(torch.nn.Module):  # type: ignore[misc]
            def __init__(self) -> None:
                super().__init__()
                self.layer = torch.nn.Linear(4, 2)

            def forward(self, x: Any, labels: Any = None) -> dict[str, Any]:
                return {"loss": self.layer(x).sum()}

        data = [{"x": torch.ones(4), "labels": 0} for _ in range(16)]
        callback = fresh(monkeypatch).ProfCallback(str(tmp_path / "runs"), first_step=2, steps=2)
        arguments = transformers.TrainingArguments(
            str(tmp_path / "out"),
            num_train_epochs=1,
            per_device_train_batch_size=2,
            report_to=[],
            disable_tqdm=True,
            save_strategy="no",
            use_cpu=True,
        )
        transformers.Trainer(model=Model(), args=arguments, train_dataset=data, callbacks=[callback]).train()
    (path,) = (tmp_path / "runs").glob("*.pt.trace.json.gz")
    assert {"ProfilerStep#2", "ProfilerStep#3"} <= set(load(path).trace.names)
