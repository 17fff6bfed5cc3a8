"""A block of code that is recorded: a library in; the recording of the block, and its counters, out. For tests."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from ..analysis.recording import Recording, as_results
from ..trace import NODE, OP, Trace
from .other_profilers import Watch

REAL, LIBRARY = "real", "mindtorch"
_SETTINGS = {"record_shapes": True, "profile_memory": True, "with_flops": True}


@dataclass(frozen=True)
class Counters:
    """What a block did, in numbers that have no noise."""

    ops: int  # calls of ops, those inside others included
    allocations: int
    allocated: int  # bytes
    peak_memory: int  # bytes: the most that was alive at one time, of what the block allocated
    kernels: int  # on devices

    def as_dict(self) -> dict[str, int]:
        return asdict(self)


def counters(trace: Trace) -> Counters:
    """The counters of a recording, without synthetic events."""
    is_op = ((trace.kind == OP) | (trace.kind == NODE)) & trace.is_recorded
    taken = trace.memory.nbytes > 0
    alive = np.cumsum(trace.memory.nbytes)
    return Counters(
        int(is_op.sum()),
        int(taken.sum()),
        int(trace.memory.nbytes[taken].sum()),
        int(max(alive.max(initial=0), 0)),
        int(trace.device.works.sum()),
    )


def imported_library(wanted: str | None = None) -> Any:
    """The torch that the program has imported: real torch, else mindtorch_v2; None: neither."""
    torch: Any = sys.modules.get("torch")
    is_real = torch is not None and hasattr(torch, "_C") and hasattr(torch, "autograd")
    library = sys.modules.get("mindtorch_v2")
    is_real = is_real and torch is not library
    if wanted == REAL:
        return torch if is_real else None
    if wanted == LIBRARY:
        return library
    return torch if is_real else library


class RecordedBlock:
    """Records between `start` and `stop`. A profiler that the code inside starts itself ends the recording."""

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self._watch = Watch()
        self._open = ExitStack()
        self._prof: Any = None
        self.recording: Recording | None = None
        self.interrupted = False

    def start(self) -> None:
        profiler = self._torch.profiler
        prof = profiler.profile(**_SETTINGS)
        if self._is_real:
            self._open.enter_context(self._watch.watching(self._torch, self._interrupt))
        with self._watch.calling_torch():
            prof.start()
        self._prof = prof

    @property
    def _is_real(self) -> bool:
        return hasattr(self._torch.autograd.profiler.profile, "_prepare_trace") and hasattr(self._torch, "_C")

    def _interrupt(self) -> None:
        if self._prof is not None:
            self.interrupted = True
            self.stop()

    def stop(self) -> None:
        prof, self._prof = self._prof, None
        if prof is None:
            return
        with self._watch.calling_torch():
            prof.stop()
        if not self.interrupted:
            self._open.close()
        from ..load import from_torch

        self.recording = from_torch(prof)

    def close(self) -> None:
        """End everything."""
        self.stop()
        self._open.close()

    def counters(self) -> Counters:
        """The counters of the recording."""
        if self.recording is None:
            raise RuntimeError("nothing is recorded yet")
        return counters(as_results(self.recording).trace)
