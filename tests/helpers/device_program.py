"""A program with a device for tests: ops, launches and kernels in, a loaded trace out; and its advice."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import kineto_documents as documents

from mindtorch_prof import load
from mindtorch_prof.analysis.advice import Advice, advise


def codes(source: Any, least: float = 0.0) -> list[str]:
    """The codes of all advice."""
    return [advice.code for advice in advise(source, least)]


def one(source: Any, code: str) -> Advice:
    """The only advice of a code."""
    (match,) = [advice for advice in advise(source, 0.0) if advice.code == code]
    return match


class DeviceProgram:
    """A file of a program that launches kernels: times in microseconds."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []

    def op(self, name: str, start: float, length: float, cat: str = "cpu_op") -> None:
        self.events.append(documents.event(name, start, length, cat))

    def kernel(
        self, op: str, launch: float, start: float, length: float, name: str = "gemm", **more: Any
    ) -> None:
        """An op around a launch of 4 us, and the kernel."""
        ids = {"External id": len(self.events) + 1, "correlation": len(self.events) + 1}  # 0 is no id
        self.events += [
            documents.event(op, launch - 1, 6, **ids),
            documents.event("cudaLaunchKernel", launch, 4, "cuda_runtime", **ids),
            documents.kernel(name, start, length, **ids, **more),
        ]

    def load(self, path: Path, **top: Any) -> Any:
        return load(documents.write(path / "device.json", self.events, **top))
