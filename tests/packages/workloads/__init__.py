"""Small real programs of packages that are written for torch: a name in, a function that returns numbers out.

Each function imports its package itself, because each runs in a process of its own, on this library or on torch. Models are built
from configurations with a fixed seed; nothing is downloaded.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

FAMILIES = (
    "further_packages", "hugging_face", "hugging_face_training", "inspection", "networks", "optimizers", "probability", "probability_models", "tools", "training",
    "training_loops", "vision",
)  # fmt: skip


def all_workloads() -> dict[str, Callable[[], dict[str, Any]]]:
    """All workloads by name."""
    found = {}
    for family in FAMILIES:
        module = importlib.import_module(f"workloads.{family}")
        found.update(
            {
                name: value
                for name, value in vars(module).items()
                if callable(value) and name in module.__all__
            }
        )
    return found
