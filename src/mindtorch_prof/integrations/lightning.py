"""A callback for Lightning: `Trainer(callbacks=[ProfCallback("runs/")])` writes traces and reports of some training steps."""

from __future__ import annotations

import importlib
import sys
from typing import Any

from ..live.training import TrainingProfile

_PACKAGES = ("lightning.pytorch", "pytorch_lightning")  # the same library under its new and its old name


def _callback_class() -> Any:
    """The class Callback of the package that the program uses; Lightning takes callbacks of its own class only."""
    for package in sorted(_PACKAGES, key=lambda name: name not in sys.modules):
        try:
            return importlib.import_module(f"{package}.callbacks").Callback
        except ModuleNotFoundError:
            continue
    raise ImportError("mindtorch_prof.integrations.lightning needs Lightning: pip install lightning")


_Callback: Any = _callback_class()


class ProfCallback(_Callback):  # type: ignore[misc]
    """Records training steps and writes them to a folder; the arguments are those of `TrainingProfile`."""

    def __init__(self, folder: str, **options: Any) -> None:
        super().__init__()
        self.profile = TrainingProfile(folder, **options)

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        self.profile.start()

    def on_train_batch_end(self, trainer: Any, pl_module: Any, *args: Any, **kwargs: Any) -> None:
        self.profile.step()

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        self.profile.stop()

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        self.profile.stop()

    def teardown(self, trainer: Any, pl_module: Any, stage: str) -> None:
        self.profile.stop()
