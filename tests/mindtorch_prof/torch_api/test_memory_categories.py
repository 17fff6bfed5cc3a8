"""Categories of memory: their numbers, colours and labels, and the bytes of each over time."""

from __future__ import annotations

from mindtorch_prof.torch_api.memory_categories import (
    CATEGORY_COLORS,
    CATEGORY_INDEX,
    Action,
    Category,
    category_label,
    sizes_over_time,
)


def test_memory_from_before_stands_at_the_time_of_the_first_change() -> None:
    parameter, gradient = CATEGORY_INDEX[Category.PARAMETER], CATEGORY_INDEX[Category.GRADIENT]
    changes = [
        (-1, Action.PREEXISTING.value, 100, parameter),
        (5_200, Action.CREATE.value, 30, gradient),
        (5_900, Action.DESTROY.value, -10, gradient),
        (7_000, Action.DESTROY.value, -20, gradient),
    ]
    times, sizes = sizes_over_time(changes)
    assert times == [5, 5, 7]
    assert [row[1 + parameter] for row in sizes] == [100, 100, 100]
    assert [row[1 + gradient] for row in sizes] == [0, 20, 0]
    assert [row[0] for row in sizes] == [0, 0, 0]


def test_every_category_has_a_number_a_colour_and_a_label() -> None:
    assert set(CATEGORY_COLORS) == set(CATEGORY_INDEX) == {*Category, None}
    assert [category_label(category) for category in (Category.OPTIMIZER_STATE, None)] == [
        "Optimizer state",
        "Unknown",
    ]
