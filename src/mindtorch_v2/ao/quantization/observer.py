"""torch.ao.quantization.observer: names that packages import. Observers measure ranges for quantized tensors, of which there are none here."""

from __future__ import annotations

from typing import Any

from ..._refused import refused_class
from . import ObserverBase

__all__ = [
    "HistogramObserver", "MinMaxObserver", "MovingAverageMinMaxObserver", "MovingAveragePerChannelMinMaxObserver", "ObserverBase",
    "PerChannelMinMaxObserver", "PlaceholderObserver",
]  # fmt: skip


def _observer(name: str) -> Any:
    return refused_class(
        "torch.ao.quantization.observer", name, "there are no quantized tensors; run the floating model"
    )


HistogramObserver = _observer("HistogramObserver")
MinMaxObserver = _observer("MinMaxObserver")
MovingAverageMinMaxObserver = _observer("MovingAverageMinMaxObserver")
MovingAveragePerChannelMinMaxObserver = _observer("MovingAveragePerChannelMinMaxObserver")
PerChannelMinMaxObserver = _observer("PerChannelMinMaxObserver")
PlaceholderObserver = _observer("PlaceholderObserver")
