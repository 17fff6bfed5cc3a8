"""Schedules: which step does what, against torch; those that make no sense or end early are told so."""

from __future__ import annotations

import warnings

import fact_files
import pytest
import schedule_cases as cases

import mindtorch_v2 as torch
from mindtorch_v2.profiler import ProfilerAction, profile, schedule

X = torch.ones(2)


def test_every_schedule_goes_as_in_torch() -> None:
    recorded = fact_files.read("profiler_schedules.json.gz")["outcomes"]
    made = cases.make_cases()
    assert len(made) == len(recorded)
    different = [case for case, there in zip(made, recorded) if cases.outcome(torch, case) != there]
    assert different == []


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"wait": -1, "warmup": 0, "active": 1}, "Got wait=-1 "),
        ({"wait": 0, "warmup": 0, "active": 0}, "active=0 "),
    ],
)
def test_a_schedule_that_makes_no_sense_is_refused(arguments: dict[str, int], text: str) -> None:
    with pytest.raises(AssertionError, match=r"Invalid profiler schedule arguments\. .*" + text):
        schedule(**arguments)


def test_a_schedule_refuses_negative_steps() -> None:
    with pytest.raises(AssertionError, match=r"Step must be non-negative\. Got -1\."):
        schedule(wait=0, warmup=1, active=1)(-1)


def test_a_schedule_prints_what_each_step_will_do(capsys: pytest.CaptureFixture[str]) -> None:
    schedule(wait=1, warmup=1, active=2, repeat=1).explain(7)
    told = "step 0: NONE\nstep 1: WARMUP\nstep 2: RECORD\nstep 3: RECORD_AND_SAVE\nsteps 4-6: NONE\n"
    assert capsys.readouterr().out == told


def test_actions_have_torchs_numbers() -> None:
    assert [a.value for a in ProfilerAction] == [0, 1, 2, 3, 4]


def loop(steps: int, **settings: int) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with profile(schedule=schedule(**settings)) as prof:
            for _ in range(steps):
                torch.neg(X)
                prof.step()
    return [str(w.message) for w in caught]


@pytest.mark.parametrize(
    ("steps", "settings", "text"),
    [
        (1, {"wait": 3, "warmup": 1, "active": 2}, "1 step; the schedule needs 6 before the first trace"),
        (0, {"wait": 1, "warmup": 1, "active": 1}, "0 steps; the schedule needs 3 before the first trace"),
        (4, {"wait": 3, "warmup": 3, "active": 2}, "4 steps; the schedule needs 8 before the first trace"),
        (3, {"wait": 1, "warmup": 1, "active": 1, "skip_first": 10}, "3 steps; the schedule needs 13 before"),
    ],
)
def test_a_schedule_that_ended_too_early_says_so_in_one_sentence(
    steps: int, settings: dict[str, int], text: str
) -> None:
    (told,) = loop(steps, **settings)
    assert told.startswith(f"profile ended after {text}")
    assert told.endswith("nothing was recorded")


def test_a_schedule_that_recorded_is_silent() -> None:
    assert loop(4, wait=1, warmup=1, active=1, repeat=1) == []
    assert loop(5, wait=3, warmup=1, active=4) == []


def test_a_program_that_fails_hears_its_own_error_alone() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(KeyError):
            with profile(schedule=schedule(wait=3, warmup=1, active=1)):
                raise KeyError
