"""The answer to "what did the devices do?": a recording in; breakdown, kernels, copies and idle causes of each device out, as one object."""

from __future__ import annotations

from ..number_formats import format_time
from ..trace import Trace
from .answers import Answer
from .device_breakdown import device_breakdown
from .device_kernels import device_kernels
from .idle_causes import idle_causes

_PARTS = ("computation", "exposed_communication", "exposed_copy", "idle")


def device_rows(trace: Trace, top: int = 10) -> list[dict[str, object]]:
    """One dict per device, as `mindtorch-prof device --format json` prints it; top: rows of its tables, 0: all."""
    some, device = slice(top or None), trace.device
    return [
        {
            **times.to_dict(),
            "kernels_by_type": [row.to_dict("type") for row in kernels.by_type],
            "kernels_by_op": [row.to_dict("op") for row in kernels.by_op[some]],
            "kernels": [row.to_dict("name") for row in kernels.by_name[some]],
            "copies": [row.to_dict() for row in kernels.copies],
            "idle": idle.to_dict(device.names, device.name, trace.window_ns[0], top),
        }
        for times, kernels, idle in zip(device_breakdown(trace), device_kernels(trace), idle_causes(trace))
    ]


class DeviceAnswer(Answer):
    """What each device did with its time; `devices` has one dict per device."""

    def __init__(self, trace: Trace, top: int = 10) -> None:
        self.devices = device_rows(trace, top)
        self.breakdowns = device_breakdown(trace)
        self.title = f"Devices of {trace.settings.source_name or 'a recording'}"

    def to_dict(self) -> dict[str, object]:
        """As `mindtorch-prof device --format json` prints it."""
        return {"devices": self.devices}

    def _rows(self) -> list[dict[str, object]]:
        return [
            {"device": times.device, "step": step, **part.figures()}
            for times in self.breakdowns
            for step, part in ((None, times), *((step.step, step) for step in times.steps))
        ]

    def _lines(self) -> list[str]:
        if not self.breakdowns:
            return ["no work of a device in this recording"]
        return [
            f"device {times.device}: {times.busy_share:.1%} busy of {format_time(times.span_us)}; "
            f"{times.without_op_share:.1%} of its work belongs to no op"
            for times in self.breakdowns
        ]

    def _cells(self) -> tuple[list[str], list[list[str]]]:
        head = ["Device", "Step", "Span", "Computation", "Exposed communication", "Exposed copies", "Idle"]
        rows = [
            [str(times.device), step, format_time(part.span_us)]
            + [format_time(getattr(part, f"{name}_us")) for name in _PARTS]
            for times in self.breakdowns
            for step, part in (("all", times), *((str(step.step), step) for step in times.steps))
        ]
        return head, rows
