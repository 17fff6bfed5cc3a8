"""A callback for Hugging Face's Trainer: `Trainer(..., callbacks=[ProfCallback("runs/")])` writes traces of some training steps."""

from __future__ import annotations

import importlib
from typing import Any

from ..live.training import TrainingProfile


def _callback_class() -> Any:
    try:
        return importlib.import_module("transformers").TrainerCallback
    except ModuleNotFoundError as error:
        raise ImportError(
            "mindtorch_prof.integrations.transformers needs Transformers: pip install transformers"
        ) from error


_Callback: Any = _callback_class()


class ProfCallback(_Callback):  # type: ignore[misc]
    """Records training steps and writes them to a folder; the arguments are those of `TrainingProfile`. A step is one of the optimizer,
    however many batches it accumulates."""

    def __init__(self, folder: str, **options: Any) -> None:
        super().__init__()
        self.profile = TrainingProfile(folder, **options)

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self.profile.start()

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self.profile.step()

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self.profile.stop()
