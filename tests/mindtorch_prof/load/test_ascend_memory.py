"""Memory of an Ascend capture equals its own tables of ops' memory and of the allocators' totals."""

from __future__ import annotations

import csv
import sqlite3
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest

from mindtorch_prof import load

CAPTURES = [f"{form}_level1/rank{rank}" for form in ("text", "db") for rank in (0, 1)]
TOTALS = {"allocated": "Allocated", "reserved": "Reserved", "active": "Active"}


def ns(text: str) -> int | None:
    return (
        round(float(text.strip()[-14:]) * 1000) + int(text.strip()[:-14]) * 10**13 if text.strip() else None
    )


def table(output: Path, name: str) -> list[dict[str, Any]]:
    with open(output / name, newline="") as file:
        return list(csv.DictReader(file))


def query(output: Path, statement: str) -> list[tuple[Any, ...]]:
    (path,) = output.glob("ascend_pytorch_profiler_*.db")
    connection = sqlite3.connect(f"{path.as_uri()}?mode=ro&immutable=1", uri=True)
    rows = connection.execute(statement).fetchall()
    connection.close()
    return rows


def allocations(output: Path) -> list[tuple[int, int | None, int | None]]:
    """(bytes, time of the allocation, time of the release or None) of each op's memory."""
    if (output / "operator_memory.csv").exists():
        return [
            (
                round(float(row["Size(KB)"]) * 1024),
                ns(row["Allocation Time(us)"]),
                ns(row["Active Release Time(us)"]) or ns(row["Release Time(us)"]),
            )
            for row in table(output, "operator_memory.csv")
        ]
    return query(
        output, "SELECT size, allocationTime, COALESCE(activeReleaseTime, releaseTime) FROM OP_MEMORY"
    )


def records(output: Path) -> dict[str, list[float]]:
    """The totals of each allocator over time, by the names that counters have."""
    series: defaultdict[str, list[float]] = defaultdict(list)
    if (output / "memory_record.csv").exists():
        for row in table(output, "memory_record.csv"):
            for word, title in TOTALS.items():
                if row[f"Total {title}(MB)"]:
                    name = f"memory of {row['Component']}: {word} (bytes)"
                    series[name].append(round(float(row[f"Total {title}(MB)"]) * 2**20))
        return series
    columns = ", ".join(f"total{title}" for title in TOTALS.values())
    statement = (
        f"SELECT value, {columns} FROM MEMORY_RECORD JOIN STRING_IDS ON STRING_IDS.id = component "
        "ORDER BY MEMORY_RECORD.rowid"
    )
    for component, *values in query(output, statement):
        for word, value in zip(TOTALS, values):
            if value is not None:
                series[f"memory of {component}: {word} (bytes)"].append(value)
    return series


@pytest.mark.parametrize("name", CAPTURES)
def test_each_allocation_and_release_of_an_op_is_there_with_its_time_and_size(
    name: str, ecosystem: Path
) -> None:
    folder = ecosystem / "ascend" / f"{name}_ascend_pt"
    trace = load(folder).trace
    rows = allocations(folder / "ASCEND_PROFILER_OUTPUT")
    expected = Counter((time, size) for size, time, _ in rows)
    expected += Counter((release, -size) for size, _, release in rows if release is not None)
    found = Counter(zip((trace.memory.time_ns + trace.origin_ns).tolist(), trace.memory.nbytes.tolist()))
    assert expected.total() == 344
    assert not expected - found
    # the rest are changes of the recorded total that no op explains, most of them releases of older memory
    assert (found - expected).total() == 27


@pytest.mark.parametrize("name", CAPTURES)
def test_the_totals_of_each_allocator_are_counters_and_the_peak_is_that_of_both(
    name: str, ecosystem: Path
) -> None:
    folder = ecosystem / "ascend" / f"{name}_ascend_pt"
    trace = load(folder).trace
    expected = records(folder / "ASCEND_PROFILER_OUTPUT")
    counters = trace.counters
    for title, values in expected.items():
        number = counters.names.index(title)
        assert sorted(counters.value[counters.name == number].tolist()) == sorted(values), title
    # between its records the engine's total counts memory that it has released: only the peak can be compared
    assert int(trace.memory.total.max()) == max(expected["memory of PTA+GE: allocated (bytes)"])
