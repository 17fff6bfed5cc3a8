"""Copies between GPUs: raise, because there are none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..modules.module import Module

__all__ = ["gather", "parallel_apply", "replicate", "scatter"]


def scatter(inputs: Any, target_gpus: Sequence[Any], dim: int = 0) -> Any:
    """Raises: there is no GPU to scatter to."""
    raise RuntimeError("torch.nn.parallel.scatter needs GPUs; this library runs on the CPU only")


def gather(outputs: Any, target_device: Any, dim: int = 0) -> Any:
    """Raises: there is no GPU to gather from."""
    raise AssertionError("Gather function not implemented for CPU tensors")


def replicate(network: Module, devices: Sequence[Any], detach: bool = False) -> list[Module]:
    """Raises: there is no GPU to copy the network to."""
    raise AssertionError("Broadcast function not implemented for CPU tensors")


def parallel_apply(
    modules: Sequence[Module],
    inputs: Sequence[Any],
    kwargs_tup: Sequence[dict[str, Any]] | None = None,
    devices: Sequence[Any] | None = None,
) -> list[Any]:
    """Raises: modules run in parallel on GPUs only."""
    raise RuntimeError("Cannot access accelerator device when none is available.")
