"""The timer: a Python statement in, measurements of it out."""

from __future__ import annotations

import enum
import textwrap
import timeit
from collections.abc import Callable
from typing import Any, NoReturn

import mindtorch_v2 as torch

from . import common

__all__ = ["Language", "Timer", "timer"]

timer = timeit.default_timer


class Language(enum.Enum):
    """The language of a statement."""

    PYTHON = 0
    CPP = 1


class Timer:
    """Measures the time of a statement, after a setup, with a fixed number of threads."""

    _timer_cls = timeit.Timer

    def __init__(
        self,
        stmt: str = "pass",
        setup: str = "pass",
        global_setup: str = "",
        timer: Callable[[], float] = timer,
        globals: dict[str, Any] | None = None,
        label: str | None = None,
        sub_label: str | None = None,
        description: str | None = None,
        env: str | None = None,
        num_threads: int = 1,
        language: Language | str = Language.PYTHON,
    ) -> None:
        if not isinstance(stmt, str):
            raise ValueError("Currently only a `str` stmt is supported.")
        if language not in (Language.PYTHON, "py", "python"):
            if language in (Language.CPP, "cpp", "c++"):
                raise NotImplementedError("C++ statements cannot be timed: this library has no compiler.")
            raise ValueError(f"Invalid language `{language}`.")
        if global_setup:
            raise ValueError(
                f"global_setup is C++ only, got `{global_setup}`. Most likely this code can simply be "
                "moved to `setup`."
            )
        stmt, setup = _dedent(stmt), _dedent(setup)
        self._globals = {**(globals or {}), "torch": (globals or {}).get("torch", torch)}
        self._timer = self._timer_cls(stmt=stmt, setup=setup, timer=timer, globals=self._globals)
        self._task_spec = common.TaskSpec(
            stmt=stmt, setup=setup, global_setup=global_setup, label=label, sub_label=sub_label,
            description=description, env=env, num_threads=num_threads,
        )  # fmt: skip

    def _timeit(self, number: int) -> float:
        return max(self._timer.timeit(number), 1e-9)

    def timeit(self, number: int = 1000000) -> common.Measurement:
        """One measurement of `number` runs, after a few to warm up."""
        with common.set_torch_threads(self._task_spec.num_threads):
            self._timeit(number=max(number // 100, 2))
            return common.Measurement(number, [self._timeit(number=number)], self._task_spec)

    def repeat(self, repeat: int = -1, number: int = -1) -> None:
        """Raises: not supported by this timer."""
        raise NotImplementedError("See `Timer.blocked_autorange.`")

    def autorange(self, callback: Callable[[int, float], NoReturn] | None = None) -> None:
        """Raises: not supported by this timer."""
        raise NotImplementedError("See `Timer.blocked_autorange.`")

    def _estimate_block_size(self, min_run_time: float) -> int:
        """The number of runs per clock reading for which the cost of reading the clock is negligible."""
        with common.set_torch_threads(self._task_spec.num_threads):
            overhead = sorted(self._timeit(0) for _ in range(5))[2]
            number = 1
            while True:
                elapsed = self._timeit(number)
                if overhead <= 1e-4 * elapsed and elapsed >= min_run_time / 1000:
                    return number
                if elapsed > min_run_time:
                    return number
                number *= 10

    def _measure_until(
        self,
        number: int,
        stop_condition: Callable[[list[float]], bool],
        min_run_time: float,
        max_run_time: float | None = None,
        callback: Callable[[int, float], NoReturn] | None = None,
    ) -> list[float]:
        total, stop, times = 0.0, False, []
        with common.set_torch_threads(self._task_spec.num_threads):
            while total < min_run_time or not stop:
                elapsed = self._timeit(number)
                times.append(elapsed)
                if callback:
                    callback(number, elapsed)
                total += elapsed
                stop = stop_condition(times)
                if max_run_time is not None and total > max_run_time:
                    break
        return times

    def blocked_autorange(
        self, callback: Callable[[int, float], NoReturn] | None = None, min_run_time: float = 0.2
    ) -> common.Measurement:
        """Measure blocks of runs for at least `min_run_time` seconds."""
        number = self._estimate_block_size(min_run_time)
        times = self._measure_until(number, lambda times: True, min_run_time, callback=callback)
        return common.Measurement(number, times, self._task_spec)

    def adaptive_autorange(
        self,
        threshold: float = 0.1,
        *,
        min_run_time: float = 0.01,
        max_run_time: float = 10.0,
        callback: Callable[[int, float], NoReturn] | None = None,
    ) -> common.Measurement:
        """Measure until the spread is at most `threshold` of the median, or for `max_run_time` seconds."""
        number = self._estimate_block_size(min_run_time=0.05)

        def enough(times: list[float]) -> bool:
            return len(times) > 3 and common.Measurement(number, times, self._task_spec).meets_confidence(
                threshold
            )

        times = self._measure_until(number, enough, min_run_time, max_run_time, callback)
        return common.Measurement(number, times, self._task_spec)

    def collect_callgrind(
        self,
        number: int = 100,
        *,
        repeats: int | None = None,
        collect_baseline: bool = True,
        retain_out_file: bool = False,
    ) -> NoReturn:
        """Raises: instruction counts need valgrind and a library built for it."""
        raise NotImplementedError(
            "collect_callgrind needs valgrind and a compiled library; use blocked_autorange."
        )


def _dedent(code: str) -> str:
    """Code without the indentation of the caller's source."""
    if len(code) > 1 and code[0] == "\n":
        code = code[1:]
    return textwrap.dedent(code).rstrip()
