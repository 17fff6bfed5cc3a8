"""A recording of which only the newest events stay in memory: a Recorder in; in the background, older rows are dropped."""

from __future__ import annotations

from mindtorch_prof.sealing.logs import Logs
from mindtorch_prof.sealing.newest import n_events, newest

from .keeper import Keeper
from .recorder import Recorder

_SLACK = 1.25  # rows are dropped when there are so many times as many as may stay: not at each tick


class RingKeeper(Keeper):
    """Keeps the newest events in memory."""

    def __init__(self, recorder: Recorder, max_events: int | None, max_memory: int | None) -> None:
        super().__init__(recorder)
        self._most, self._most_bytes = max_events, max_memory
        self._width = len(recorder.wanted.columns)

    def _keep(self) -> None:
        self.recorder.logs.add(self.recorder.hand_over())
        self._drop(_SLACK)

    def _drop(self, slack: float) -> None:
        logs, most = self.recorder.logs, self._most
        count = n_events(logs, self._width)
        if self._most_bytes is not None and logs.nbytes > slack * self._most_bytes:
            fitting = count * self._most_bytes // logs.nbytes
            most = fitting if most is None else min(most, fitting)
        if most is not None and count > slack * most:
            allocated = int(logs.joined("memory")[:, 1].sum())
            self.recorder.logs, dropped = newest(logs, self._width, most)
            self.recorder.dropped += dropped
            self.recorder.allocated_before += allocated - int(self.recorder.logs.joined("memory")[:, 1].sum())

    def logs(self) -> Logs:
        """The newest events, no more than were asked for."""
        self._drop(1.0)
        return self.recorder.logs
