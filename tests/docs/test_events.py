"""docs/events.md names every attribute of events, averages and lists, and explains each column."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from mindtorch_prof.analysis.columns import COLUMNS
from mindtorch_prof.torch_api.event_list import EventList
from mindtorch_prof.torch_api.function_events import FunctionEvent, FunctionEventAvg

PAGE = (Path(__file__).parents[2] / "docs" / "events.md").read_text()
NAMED = set(re.findall(r"`(\w+)", PAGE))


def public(thing: object, less: object = object) -> set[str]:
    return {name for name in dir(thing) if not name.startswith("_")} - set(dir(less))


@pytest.mark.parametrize(
    "names",
    [public(FunctionEvent(0, "op", 0, 0.0, 1.0)), public(FunctionEventAvg()), public(EventList, list)],
    ids=["FunctionEvent", "FunctionEventAvg", "EventList"],
)
def test_every_attribute_is_on_the_page(names: set[str]) -> None:
    assert sorted(names - NAMED) == []


@pytest.mark.parametrize("key", COLUMNS)
def test_the_page_says_of_a_column_what_the_registry_says(key: str) -> None:
    fact = COLUMNS[key]
    columns = PAGE.partition("## Columns\n")[2].splitlines()
    row = next(line for line in columns if line.startswith(f"| `{key}` | "))
    assert fact.title in row
    assert fact.meaning in row
    assert fact.not_in_it in row
