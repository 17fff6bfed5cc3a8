"""Device usage: busy and idle time by stream; overlapping work counts once."""

from __future__ import annotations

import kineto_documents as documents
import pytest
from kineto_documents import load_document
from trace_builder import make_device, make_trace

from mindtorch_prof.analysis.device_usage import device_usage
from mindtorch_prof.trace import DEVICE_ANNOTATION, DEVICE_COPY, DEVICE_KERNEL, DEVICE_SYNC


def test_usage_says_how_busy_each_stream_was() -> None:
    whole, first, second = load_document(documents.gpu()).device_usage()
    assert (whole.device, whole.stream, whole.events, whole.span_us) == (0, -1, 4, 180.0)
    assert (whole.busy_us, whole.idle_us, whole.copy_us) == (170.0, 10.0, 40.0)
    assert (first.stream, first.busy_us, first.idle_us, first.longest_idle_us) == (7, 160.0, 20.0, 10.0)
    assert (second.stream, second.busy_us, second.kernel_us) == (20, 40.0, 0.0)
    assert whole.utilisation == pytest.approx(170 / 180)


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
