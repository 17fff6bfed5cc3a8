"""The callback for Lightning: with a stand-in for its class, and with Lightning where it is installed."""

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

MODULE = "mindtorch_prof.integrations.lightning"


def fresh(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.delitem(sys.modules, MODULE, raising=False)
    return importlib.import_module(MODULE)


def test_the_callback_is_of_lightning_s_class_and_records_batches(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    package, callbacks = ModuleType("pytorch_lightning"), ModuleType("pytorch_lightning.callbacks")
    callbacks.Callback = type("Callback", (), {})  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "pytorch_lightning", package)
    monkeypatch.setitem(sys.modules, "pytorch_lightning.callbacks", callbacks)
    monkeypatch.setitem(sys.modules, "torch", mindtorch_v2)
    callback = fresh(monkeypatch).ProfCallback(str(tmp_path), first_step=1, steps=1, report=False)
    assert isinstance(callback, callbacks.Callback)
    callback.on_train_start(None, None)
    for batch in range(3):
        mindtorch_v2.ones(2) + 1
        callback.on_train_batch_end(None, None, None, None, batch)
    callback.on_exception(None, None, ValueError())
    callback.teardown(None, None, "fit")
    (path,) = tmp_path.iterdir()
    assert "ProfilerStep#1" in load(path).trace.names


def test_without_lightning_the_import_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("lightning", "lightning.pytorch", "pytorch_lightning"):
        monkeypatch.setitem(sys.modules, name, None)  # type: ignore[arg-type]
    with pytest.raises(ImportError, match="pip install lightning"):
        fresh(monkeypatch)


def test_lightning_s_trainer_drives_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        lightning = pytest.importorskip("lightning.pytorch", reason="runs where Lightning is installed")
        import torch

        class Module(lightning.LightningModule):  # type: ignore[name-defined,misc]
            def __init__(self) -> None:
                super().__init__()
                self.layer = torch.nn.Linear(4, 2)

            def training_step(self, batch: Any, number: int) -> Any:
                return self.layer(batch[0]).sum()

            def configure_optimizers(self) -> Any:
                return torch.optim.SGD(self.parameters(), lr=0.1)

        callback = fresh(monkeypatch).ProfCallback(str(tmp_path / "runs"), first_step=2, steps=2)
        data = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.ones(16, 4)), batch_size=2)
        quiet = {"enable_progress_bar": False, "enable_model_summary": False, "logger": False}
        trainer = lightning.Trainer(
            max_epochs=1,
            callbacks=[callback],
            accelerator="cpu",
            enable_checkpointing=False,
            default_root_dir=tmp_path,
            **quiet,
        )
        trainer.fit(Module(), data)
    (path,) = (tmp_path / "runs").glob("*.pt.trace.json.gz")
    assert {"ProfilerStep#2", "ProfilerStep#3"} <= set(load(path).trace.names)
