"""Restores a pipe to a position, given by the number of items that were taken."""

from __future__ import annotations

from typing import Any

from .._hook_iterator import _SnapshotState


def _simple_graph_snapshot_restoration(datapipe: Any, n_iterations: int, rng: Any = None) -> None:
    """Skip a number of items: the next pass continues there."""
    from ...graph_settings import apply_random_seed

    if datapipe._snapshot_state == _SnapshotState.Restored:
        raise RuntimeError(
            "Snapshot restoration cannot be applied. You can only restore simple snapshot to the graph if your graph has not been "
            "restored."
        )
    datapipe.reset()
    if rng is not None:
        apply_random_seed(datapipe, rng)
    items = iter(datapipe)
    for _ in range(n_iterations):
        try:
            next(items)
        except StopIteration:
            raise RuntimeError(
                f"Fast-forward {datapipe} by {n_iterations} iterations exceeds the number of samples available."
            ) from None
    datapipe._fast_forward_iterator = items
    datapipe._snapshot_state = _SnapshotState.Restored
