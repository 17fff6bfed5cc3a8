"""The metadata of a distribution called torch, for `importlib.metadata` while `as_torch()` is on: the version that this package follows."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Iterable
from os import PathLike
from pathlib import Path
from typing import Any

from .torch_version import __version__


class TorchDistribution(importlib.metadata.Distribution):
    """Answers `version("torch")`, `metadata("torch")` and `requires("torch")`; it has no files and requires nothing."""

    def read_text(self, filename: str) -> str | None:
        """The text of METADATA; None for other files."""
        if filename != "METADATA":
            return None
        return f"Metadata-Version: 2.1\nName: torch\nVersion: {__version__}\nSummary: mindtorch-v2 in place of torch\n"

    def locate_file(self, path: str | PathLike[str]) -> Any:
        """A path in this package."""
        return Path(__file__).parent / path


def find_distributions(context: importlib.metadata.DistributionFinder.Context) -> Iterable[TorchDistribution]:
    """The distribution, for a search for `torch` or for all."""
    if context.name is None or context.name.lower() == "torch":
        yield TorchDistribution()
