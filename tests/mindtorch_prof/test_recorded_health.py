"""What a recording lacks, at the top of files: written and read back, whatever a file holds in its place."""

from __future__ import annotations

from typing import Any

import pytest

from mindtorch_prof.recorded_health import KEY, health_at, health_entry, health_of_parts, with_recorded
from mindtorch_prof.trace import Health

FULL = Health(3, 2, 1, notes=("the end is missing",), lacks=("no shapes",), remarks=("held up for 2 ms",))


def test_a_complete_recording_writes_nothing() -> None:
    assert health_entry(Health()) == {}
    assert health_entry(Health(unfinished=4)) == {}  # spans without an end are marked in the file


def test_what_is_written_is_read_back() -> None:
    entry = health_entry(FULL)
    assert list(entry) == [KEY]
    assert health_at(entry) == Health(3, 0, 1, FULL.notes, FULL.lacks, FULL.remarks)


@pytest.mark.parametrize(
    "entry", [None, [], "dropped", {"dropped": "many"}, {"dropped": True}, {"dropped": -5}, {"notes": "abc"}]
)
def test_values_of_other_types_are_ignored(entry: Any) -> None:
    assert health_at({KEY: entry}) == Health()


def test_texts_of_a_file_are_safe_to_print_and_few_and_short() -> None:
    (note,) = health_at({KEY: {"notes": ["red \x1b[31m text", 7]}}).notes
    assert note == r"red \x1b[31m text"
    many = health_at({KEY: {"notes": [f"{i}" * 3_000 for i in range(10)] * 30}}).notes
    assert (len(many), max(map(len, many))) == (100, 1_000)


def test_dropped_events_add_up_and_what_was_repaired_before_counts_once() -> None:
    found = Health(2, 1, 3, notes=("3 events overlap", "new"))
    recorded = Health(900, 0, 3, notes=("old", "3 events overlap"))
    assert with_recorded(found, recorded) == Health(902, 1, 3, notes=("old", "3 events overlap", "new"))


def test_the_texts_of_a_file_made_of_others_begin_with_the_label_of_theirs() -> None:
    whole = health_of_parts([("rank 0", FULL), ("rank 1", Health(dropped=4, notes=("cut",)))])
    assert whole == Health(
        7,
        0,
        1,
        notes=("rank 0: the end is missing", "rank 1: cut"),
        lacks=("rank 0: no shapes",),
        remarks=("rank 0: held up for 2 ms",),
    )
