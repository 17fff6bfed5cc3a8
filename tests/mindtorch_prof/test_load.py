"""The two ways into the engine, a file and a live profile: what they give is of one kind."""

from __future__ import annotations

import fake_kineto
from fact_files import FACTS

import mindtorch_prof
from mindtorch_prof.load.open_trace import Loaded

TRACE = FACTS / "torch_trace.json.gz"


def test_a_file_and_a_live_profile_give_recordings_with_the_same_answers() -> None:
    loaded = mindtorch_prof.load(TRACE)
    live = mindtorch_prof.from_torch(fake_kineto.profile(fake_kineto.results_of(fake_kineto.read(TRACE))))
    assert isinstance(loaded, Loaded)
    assert isinstance(live, Loaded)
    mine = {row.key: (row.count, round(row.cpu_time_total, 1)) for row in live.key_averages()}
    theirs = {row.key: (row.count, round(row.cpu_time_total, 1)) for row in loaded.key_averages()}
    assert {key: mine[key] for key in theirs if key != "[memory]"} == {
        key: value for key, value in theirs.items() if key != "[memory]"
    }
