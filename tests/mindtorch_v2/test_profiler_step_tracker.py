"""Steps of the process: who counts them, and when."""

from __future__ import annotations

import pytest

from mindtorch_v2.autograd.profiler import KinetoStepTracker
from mindtorch_v2.profiler import profile, schedule


def test_steps_are_counted_while_a_daemon_is_asked_for(monkeypatch):
    monkeypatch.setenv("KINETO_USE_DAEMON", "1")
    before = KinetoStepTracker.current_step()
    with profile(schedule=schedule(wait=0, warmup=1, active=1, repeat=1)) as prof:
        for _ in range(4):
            prof.step()
    assert KinetoStepTracker.current_step() == before + 4
    monkeypatch.delenv("KINETO_USE_DAEMON")
    with profile(schedule=schedule(wait=0, warmup=1, active=1, repeat=1)) as prof:
        for _ in range(4):
            prof.step()
    assert KinetoStepTracker.current_step() == before + 4


def test_optimizers_count_steps_in_a_process_that_a_daemon_profiles(run_python):
    program = (
        "import mindtorch_v2 as torch\n"
        "from mindtorch_v2.autograd.profiler import KinetoStepTracker as K\n"
        "o = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=0.1)\n"
        "o.step(); o.step(); print(K.current_step(), dict(K._step_dict))"
    )
    assert run_python(program, KINETO_USE_DAEMON="1").strip() == "2 {'Optimizer': 2}"


def test_steps_are_counted_by_the_furthest_requester(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(KinetoStepTracker, "_current_step", 0)
    monkeypatch.setattr(KinetoStepTracker, "_step_dict", {})
    KinetoStepTracker.init_step_count("a")
    assert [KinetoStepTracker.increment_step(name) for name in "abb"] == [1, 2, 3]
    assert KinetoStepTracker.erase_step_count("a")
    assert not KinetoStepTracker.erase_step_count("a")
    assert KinetoStepTracker.current_step() == 3
