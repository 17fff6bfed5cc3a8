"""Tests of recordings of threads that had one identity after the other."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

import mindtorch_v2 as torch
from mindtorch_prof.trace import ANNOTATION
from mindtorch_v2._C._profiler import _ExperimentalConfig
from mindtorch_v2.profiler import profile, record_function


@pytest.mark.parametrize("with_stack", [False, True])
def test_threads_that_run_one_after_the_other_are_not_merged(with_stack: bool) -> None:
    natives = []

    def work(number: int) -> None:
        natives.append(threading.get_native_id())
        with record_function(f"worker {number}"):
            torch.ones(number + 1)

    config = _ExperimentalConfig(profile_all_threads=True)
    with profile(experimental_config=config, profile_memory=True, with_stack=with_stack) as prof:
        for number in range(20):
            thread = threading.Thread(target=work, args=(number,))
            thread.start()
            thread.join()
    trace = _trace(prof)
    workers = np.flatnonzero(trace.kind == ANNOTATION)
    assert len(set(trace.thread[workers].tolist())) == 20
    assert [trace.settings.threads[t][0] for t in _by_number(trace, workers)] == natives
    assert len(set(trace.memory.thread[trace.memory.nbytes > 0].tolist())) == 20
    if with_stack:
        assert set(trace.thread[workers].tolist()) <= set(trace.frames.thread.tolist())
    order = np.lexsort((trace.start_ns, trace.thread))
    assert order.tolist() == sorted(order.tolist())


def _trace(prof: Any) -> Any:
    return prof.profiler._results.trace


def _by_number(trace: Any, workers: np.ndarray) -> list[int]:
    ordered = sorted(workers.tolist(), key=lambda row: int(trace.names[trace.name[row]].split()[1]))
    return [int(trace.thread[row]) for row in ordered]
