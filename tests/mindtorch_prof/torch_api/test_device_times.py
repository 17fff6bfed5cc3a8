"""Device times: kernels have rows of their own, and no time is counted twice."""

from __future__ import annotations

import kineto_documents as documents
from average_rows import row, rows
from kineto_documents import load_document

from mindtorch_prof.torch_api.enums import DeviceType


def test_averages_of_devices_are_the_sums_of_their_events() -> None:
    loaded = load_document(documents.gpu())
    events = loaded.events()
    by_hand = events._like(list(events)).key_averages()
    assert rows(sorted(by_hand, key=lambda r: (r.key, r.is_user_annotation))) == rows(
        sorted(loaded.key_averages(), key=lambda r: (r.key, r.is_user_annotation))
    )


def test_annotations_on_a_device_are_not_counted_twice() -> None:
    loaded = load_document(documents.gpu())
    shadow = row(loaded, "step", device=True)
    assert shadow.is_user_annotation
    # what its stream worked, not the 180 from its begin to its end
    assert shadow.self_device_time_total == 160.0
    assert row(loaded, "step").device_time_total == 200.0
    kernels = [
        r for r in loaded.key_averages() if r.device_type != DeviceType.CPU and not r.is_user_annotation
    ]
    assert sum(r.self_device_time_total for r in kernels) == 200.0
