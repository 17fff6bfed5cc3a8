"""Event trees for tests: a profile in, torch's `_ProfilerEvent` objects out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mindtorch_prof.torch_api import basic_evaluation


def tree_of(prof: Any) -> list[Any]:
    """The roots of a profile's event tree."""
    return prof.profiler.kineto_results.experimental_event_tree()


def walk(events: Any) -> Iterator[Any]:
    """Events and everything inside them, depth first."""
    return basic_evaluation.traverse_dfs(events)


def ops(prof: Any, name: str) -> list[Any]:
    """The events of a profile that have this name."""
    return [event for event in walk(tree_of(prof)) if event.name == name]
