"""Tests of mindtorch_v2.profiler.record.unix_time: the time of day of events."""

from __future__ import annotations

import pytest

from mindtorch_v2._C import _profiler as low
from mindtorch_v2.profiler import profile
from mindtorch_v2.profiler.record import recorder, unix_time

EPOCH_NS = 1_700_000_000_000_000_000


class Machine:
    """Both clocks of a machine on which looks take 100 ns; it stands still after the first of each kind."""

    def __init__(self, stops: tuple[str, ...] = ("perf", "unix")) -> None:
        self.now_ns, self.stops = 5_000, [*stops]

    def _look(self, kind: str) -> int:
        now_ns = self.now_ns
        self.now_ns += 100
        if kind in self.stops:
            self.stops.remove(kind)
            self.now_ns += 10_000_000_000
        return now_ns

    def perf_counter_ns(self) -> int:
        return self._look("perf")

    def time_ns(self) -> int:
        return EPOCH_NS + self._look("unix")


@pytest.mark.parametrize("stops", [(), ("perf",), ("unix",), ("perf", "unix"), ("perf", "perf", "unix")])
def test_a_machine_that_stops_between_two_looks_does_not_shift_the_time_of_day(
    stops: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = Machine(stops)
    monkeypatch.setattr(unix_time, "time", machine)
    assert unix_time.unix_origin_ns(machine.perf_counter_ns) == EPOCH_NS


def test_recordings_and_torchs_converter_use_it(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (recorder, low):
        monkeypatch.setattr(module, "unix_origin_ns", lambda *clock: EPOCH_NS)
    with profile() as prof:
        assert prof.profiler._recorder.origin_ns == EPOCH_NS
    assert low._ApproximateClockToUnixTimeConverter().to_unix_ns(5) == EPOCH_NS + 5
