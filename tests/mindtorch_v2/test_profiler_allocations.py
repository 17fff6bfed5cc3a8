"""Memory in a recording: what is taken and given back, and when."""

import ctypes
import operator
import signal
import sys
import time
from functools import partial

import numpy as np
import pytest

import mindtorch_v2 as torch
from mindtorch_prof.torch_api.basic_evaluation import traverse_dfs
from mindtorch_v2.profiler import profile


def test_memory_that_cannot_be_had_is_refused_in_torchs_words_and_recording_goes_on():
    with profile(profile_memory=True) as prof:
        with pytest.raises(RuntimeError, match="allocate 281474976710656 bytes"):
            torch.empty(2**46)
        torch.ones(2).sin()
    assert [e.name for e in prof.events() if e.name.startswith("aten::s")] == ["aten::sin"]


def _allocations(prof):
    nodes = traverse_dfs(prof.profiler.kineto_results.experimental_event_tree())
    return [node.extra_fields for node in nodes if node.name == "[memory]"]


def test_the_end_of_memory_that_an_earlier_recording_saw_taken_is_seen():
    with profile(profile_memory=True) as prof:
        x = torch.empty((3, 4))
    (taken,) = _allocations(prof)
    assert taken.alloc_size == 48
    with profile(profile_memory=True) as prof:
        del x
    (given_back,) = _allocations(prof)
    assert (given_back.alloc_size, given_back.ptr) == (-48, taken.ptr)
    assert given_back.total_allocated == taken.total_allocated - 48
    assert [(e.name, e.cpu_memory_usage) for e in prof.events()] == [("[memory]", -48)]


def test_memory_that_ends_between_recordings_is_no_event_of_the_next_one():
    with profile(profile_memory=True) as prof:
        x = torch.empty((3, 4))
    before = _allocations(prof)[0].total_allocated
    del x
    with profile(profile_memory=True) as prof:
        y = torch.empty((3, 4))
    assert [(a.alloc_size, a.total_allocated) for a in _allocations(prof)] == [(48, before)]
    assert y.shape == (3, 4)


def test_memory_that_grows_is_taken_before_the_old_one_ends():
    with profile(profile_memory=True, record_shapes=True) as prof:
        x = torch.rand(4, 3)
        x.resize_(4, 4)
        x.sin()
    sizes = [a.alloc_size for a in _allocations(prof)]
    assert sizes[:3] == [48, 64, -48]
    assert [a.id for a in _allocations(prof)][:3] == [0, 0, 0]


def test_memory_that_was_set_ends_when_the_tensor_outgrows_it():
    with profile(profile_memory=True, record_shapes=True) as prof:
        x = torch.ones(1)
        x.set_(torch.ones(1).untyped_storage())
        x.resize_(2)
        x.resize_(3)
    assert [a.alloc_size for a in _allocations(prof)] == [4, 4, -4, 8, -4, 12, -8]


@pytest.mark.skipif(sys.platform == "win32", reason="the C library is not to be had like this")
@pytest.mark.parametrize("make", [lambda: torch.ones(100), lambda: torch.from_numpy(np.ones(100)).float()])
def test_what_a_signal_handler_raises_while_memory_is_freed_reaches_the_program(make, monkeypatch):
    def handle(number, frame):
        raise TimeoutError("the program's")

    raise_in_c = getattr(ctypes.CDLL(None), "raise")  # Python's own calls handlers before it returns
    reported = []
    monkeypatch.setattr(sys, "unraisablehook", reported.append)
    before = signal.signal(signal.SIGINT, handle)
    try:
        with profile(profile_memory=True) as prof:
            tensors = [make()]
            steps = [partial(raise_in_c, signal.SIGINT), tensors.clear]
            with pytest.raises(TimeoutError, match="the program's"):
                any(map(operator.methodcaller("__call__"), steps))  # no Python code in between
    finally:
        signal.signal(signal.SIGINT, before)
    assert not reported
    assert [a.alloc_size for a in _allocations(prof)][-1] == -400


def test_a_free_has_the_time_at_which_it_happened_not_that_of_the_next_op():
    with profile(profile_memory=True) as prof:
        x = torch.ones(100)
        torch.ones(1)
        del x
        after = time.perf_counter_ns()
        torch.ones(2)
    trace = prof.profiler._results.trace
    (freed,) = trace.memory.time_ns[trace.memory.nbytes == -400].tolist()
    assert freed < after
