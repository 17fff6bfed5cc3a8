"""torch.utils.tensorboard: event files for TensorBoard. Needs the `tensorboard` package."""

from __future__ import annotations

try:
    import tensorboard  # type: ignore[import-not-found,unused-ignore]  # noqa: F401
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "torch.utils.tensorboard needs the tensorboard package: pip install 'mindtorch_v2[tensorboard]'",
        name="tensorboard",
    ) from error

from .writer import FileWriter, SummaryWriter

__all__ = ["FileWriter", "SummaryWriter"]
