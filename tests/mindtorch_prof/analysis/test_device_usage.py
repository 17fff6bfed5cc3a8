"""Device usage: busy and idle time by stream; overlapping work counts once."""

from __future__ import annotations

import kineto_documents as documents
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kineto_documents import load_document
from trace_builder import make_device, make_trace

from mindtorch_prof.analysis.device_usage import covered_within, device_usage, merged_spans
from mindtorch_prof.trace import DEVICE_ANNOTATION, DEVICE_COPY, DEVICE_KERNEL, DEVICE_SYNC


def test_usage_says_how_busy_each_stream_was() -> None:
    whole, first, second = load_document(documents.gpu()).device_usage()
    assert (whole.device, whole.stream, whole.events, whole.span_us) == (0, -1, 4, 180.0)
    assert (whole.busy_us, whole.idle_us, whole.copy_us) == (170.0, 10.0, 40.0)
    assert (first.stream, first.busy_us, first.idle_us, first.longest_idle_us) == (7, 160.0, 20.0, 10.0)
    assert (second.stream, second.busy_us, second.kernel_us) == (20, 40.0, 0.0)
    assert whole.utilisation == pytest.approx(170 / 180)


spans = st.lists(st.tuples(st.integers(0, 50), st.integers(0, 10)), max_size=12)


@given(spans, spans)
def test_merged_spans_cover_the_same_time_without_overlap(
    work: list[tuple[int, int]], windows: list[tuple[int, int]]
) -> None:
    start, length = np.array(work, np.int64).reshape(-1, 2).T
    busy = {at for begin, size in work for at in range(begin, begin + size)}
    first, last = merged_spans(start, start + length)
    assert (first[1:] > last[:-1]).all()
    assert {at for begin, end in zip(first, last) for at in range(begin, end)} == busy
    begin, size = np.array(windows, np.int64).reshape(-1, 2).T
    inside = covered_within(begin, begin + size, start, start + length)
    assert inside.tolist() == [len(busy & set(range(b, b + n))) for b, n in windows]


def test_annotations_and_waiting_keep_no_device_busy() -> None:
    device = make_device(
        ("gemm", 0, 1_000, 7, DEVICE_KERNEL, -1),
        ("step", 0, 9_000, 7, DEVICE_ANNOTATION, -1),
        ("wait", 1_000, 9_000, 7, DEVICE_SYNC, -1),
        ("copy", 3_000, 4_000, 7, DEVICE_COPY, -1),
    )
    whole, stream = device_usage(make_trace(device=device))
    assert (whole.span_us, whole.busy_us, whole.idle_us, whole.longest_idle_us) == (4.0, 2.0, 2.0, 2.0)
    assert (stream.stream, stream.kernel_us, stream.copy_us) == (7, 1.0, 1.0)
