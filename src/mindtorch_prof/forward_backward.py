"""Links from forward ops to the backward nodes they led to: a Trace in, pairs of rows out."""

from __future__ import annotations

import numpy as np

from .trace import NODE, OP, Trace


def forward_backward(trace: Trace) -> tuple[np.ndarray, np.ndarray]:
    """Rows of ops and of the nodes that belong to them, in the order in which the nodes start; pair n is flow n + 1."""
    nothing = np.empty(0, np.int64), np.empty(0, np.int64)
    numbered = trace.sequence >= 0
    backward = np.flatnonzero((trace.kind == NODE) & numbered & (trace.forward_thread != 0))
    forward = np.flatnonzero((trace.kind == OP) & numbered & (trace.forward_thread == 0))
    if not len(backward) or not len(forward) or not trace.settings.forward_backward_links:
        return nothing
    _, place = np.unique(
        np.concatenate([trace.thread[forward], trace.forward_thread[backward]]), return_inverse=True
    )
    top = int(trace.sequence.max()) + 1
    keys = place.reshape(-1) * top + np.concatenate([trace.sequence[forward], trace.sequence[backward]])
    forward_keys, backward_keys = keys[: len(forward)], keys[len(forward) :]
    order = np.lexsort((trace.start_ns[forward], forward_keys))
    found = np.maximum(np.searchsorted(forward_keys[order], backward_keys, side="right") - 1, 0)
    last = forward[order][found]  # the last forward op of that sequence number
    matched = (forward_keys[order][found] == backward_keys) & (
        trace.start_ns[last] <= trace.start_ns[backward]
    )
    source, target = last[matched], backward[matched]
    in_time = np.argsort(trace.start_ns[target], kind="stable")
    return source[in_time], target[in_time]
