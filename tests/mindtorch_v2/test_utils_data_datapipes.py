"""Data pipes against what torch shows: items, errors, warnings, pickles, graphs, spans in profiles."""

from __future__ import annotations

import types
from typing import Any

import pytest
import recorded_cases

import mindtorch_v2 as torch
from mindtorch_v2.utils.data import DataLoader, IterDataPipe
from mindtorch_v2.utils.data.datapipes.iter import IterableWrapper


@pytest.mark.parametrize(("module", "case"), recorded_cases.recorded("datapipe_cases"))
def test_pipes_show_what_torch_shows(module: str, case: str) -> None:
    recorded_cases.check(module, case)


def test_torch_still_shows_what_was_recorded(torch_reference: types.ModuleType) -> None:
    assert recorded_cases.differing("datapipe_cases", torch_reference.__name__) == []


def test_workers_share_the_items_of_a_pipe_that_says_so() -> None:
    pipe = IterableWrapper(range(8)).shuffle().sharding_filter()
    torch.manual_seed(0)
    loaded = [int(x) for x in DataLoader(pipe, batch_size=None, num_workers=2, shuffle=True)]
    assert sorted(loaded) == list(range(8))
    assert loaded != sorted(loaded)


def test_a_loader_shuffles_a_pipe_by_its_own_seed() -> None:
    pipe = IterableWrapper(range(10)).shuffle()
    torch.manual_seed(0)
    loader = DataLoader(pipe, batch_size=None, shuffle=True)
    assert list(loader) == [9, 0, 5, 7, 4, 1, 3, 8, 6, 2]
    assert list(loader) == [6, 8, 1, 3, 4, 0, 2, 5, 7, 9]


def test_errors_say_in_which_pipe_they_were_raised_once() -> None:
    class Failing(IterDataPipe[int]):
        def __init__(self, error: Exception) -> None:
            self.error = error

        def __iter__(self) -> Any:
            yield 1
            raise self.error

    for error, expected in (
        (KeyError(3), ("\nThis exception is thrown by __iter__ of Failing(error=KeyError(3))",)),
        (
            ValueError("a", 2),
            ("a\nThis exception is thrown by __iter__ of Failing(error=ValueError('a', 2))", 2),
        ),
    ):
        with pytest.raises(type(error)) as raised:
            list(Failing(error).map(abs))
        assert raised.value.args == expected
