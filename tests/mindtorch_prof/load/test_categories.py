"""Categories of events: what their texts mean, in files of several torch versions and devices."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest

from mindtorch_prof.load.categories import DEVICE, HOST, SPAN, category
from mindtorch_prof.trace import DEVICE_COPY, DEVICE_KERNEL, DEVICE_SYNC, OP, RUNTIME


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ("cpu_op", (HOST, OP)),
        ("Operator", (HOST, OP)),  # torch 1.8 to 1.10 wrote it so
        ("Trace", (SPAN, 0)),
        ("kernel", (DEVICE, DEVICE_KERNEL)),
        ("Memcpy", (DEVICE, DEVICE_COPY)),
        ("cuda_sync", (DEVICE, DEVICE_SYNC)),
    ],
)
def test_categories_of_old_and_new_torch_have_their_meaning(text: str, meaning: tuple[str, int]) -> None:
    assert category(text) == meaning


@pytest.mark.parametrize("maker", ["cuda", "hip", "xpu", "mtia", "privateuse1"])
@pytest.mark.parametrize("layer", ["runtime", "driver"])
def test_runtime_calls_of_any_maker_are_known(maker: str, layer: str) -> None:
    assert category(f"{maker}_{layer}") == (HOST, RUNTIME)


@pytest.mark.parametrize("unknown", [None, 7, "", "ac2g", "async_npu", "kernel "])
def test_other_categories_have_no_meaning(unknown: object) -> None:
    assert category(unknown) is None


def _slices(folder: Path) -> Iterator[dict[str, object]]:
    for path in sorted(folder.rglob("*.json.gz")):
        document = orjson.loads(gzip.decompress(path.read_bytes()))
        events = document.get("traceEvents", []) if isinstance(document, dict) else []
        yield from (
            event for event in events if event.get("ph") == "X" and "correlation" in event.get("args", {})
        )


def test_all_slices_with_a_correlation_id_in_real_traces_have_a_known_category(ecosystem: Path) -> None:
    texts = {event.get("cat") for event in _slices(ecosystem)}
    assert "kernel" in texts
    assert {text for text in texts if category(text) is None} == set()
