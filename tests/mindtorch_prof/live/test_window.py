"""Which steps are recorded: ranges in, the profiler's action in each step out."""

from __future__ import annotations

import pytest

from mindtorch_prof.live.window import Window, step_range


def actions(window: Window, steps: int) -> str:
    letters = {"NONE": ".", "WARMUP": "w", "RECORD": "r", "RECORD_AND_SAVE": "s"}
    return "".join(letters[window.action(step)] for step in range(steps))


@pytest.mark.parametrize(
    ("window", "expected"),
    [
        (Window(), "rrrrrr"),
        (Window(2), ".wrrrr"),
        (Window(0, 2), "rrs..."),
        (Window(3, 4), "..wrs..."),
        (Window(3, 3, repeat=1), "..ws...."),
        (Window(2, 3, every=5), ".wrs..wrs..wrs.."),
        (Window(5, 5, every=5), "....ws...ws...ws"),
        (Window(2, 2, every=3, repeat=2, warmup=1), ".ws.ws......"),
        (Window(0, 1, every=4), "rs.wrs.wrs.w"),
        (Window(2, 3, every=4, repeat=1, warmup=0), "..rs........"),
    ],
)
def test_a_window_says_what_each_step_does(window: Window, expected: str) -> None:
    assert actions(window, len(expected)) == expected


def test_ranges_of_steps_include_their_ends() -> None:
    assert step_range("5-10") == (5, 10)
    assert step_range("5-") == (5, None)
    assert step_range("5") == (0, 4)


@pytest.mark.parametrize("text", ["0", "", "a", "5-3", "-5", "1-2-3"])
def test_what_is_no_range_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"range|number|ends"):
        step_range(text)


def test_recordings_that_may_repeat_are_numbered() -> None:
    assert not Window(1, 2).several
    assert Window(1, 2, every=5).several
    assert Window(signal="USR2").several
