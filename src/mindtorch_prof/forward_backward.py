"""Links from forward ops to their backward nodes: a Trace in, pairs of rows out."""

from __future__ import annotations

import numpy as np

from .arrays import IntArray, distinct
from .trace import NODE, OP, Trace


def forward_backward(trace: Trace) -> tuple[IntArray, IntArray]:
    """Rows of ops and of the nodes that belong to them, in the order in which the nodes start; pair n is flow n + 1."""
    numbered = trace.sequence >= 0
    backward = np.flatnonzero((trace.kind == NODE) & numbered & (trace.forward_thread != 0))
    forward = np.flatnonzero((trace.kind == OP) & numbered & (trace.forward_thread == 0))
    if not len(backward) or not len(forward) or not trace.settings.forward_backward_links:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    _, thread = distinct(np.concatenate([trace.thread[forward], trace.forward_thread[backward]]))
    sequences, sequence = distinct(np.concatenate([trace.sequence[forward], trace.sequence[backward]]))
    keys = thread * len(sequences) + sequence
    forward_keys, backward_keys = keys[: len(forward)], keys[len(forward) :]
    order = np.lexsort((trace.start_ns[forward], forward_keys))
    last = np.maximum(np.searchsorted(forward_keys[order], backward_keys, side="right") - 1, 0)
    candidate = forward[order][last]  # the last forward op of that sequence number
    matched = (forward_keys[order][last] == backward_keys) & (
        trace.start_ns[candidate] <= trace.start_ns[backward]
    )
    source, target = candidate[matched], backward[matched]
    in_time = np.argsort(trace.start_ns[target], kind="stable")
    return source[in_time], target[in_time]
