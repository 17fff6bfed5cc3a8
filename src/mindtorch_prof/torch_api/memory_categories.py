"""Categories of memory: what it is for, with torch's names, numbers and colours; changes in, bytes of each category over time out.

Which category a piece of memory has is decided elsewhere: `memory_profile` follows tensors from op to op,
`analysis.memory_by_lifetime` goes by where and when memory was allocated. `analysis.memory_breakdown` chooses between the two.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable


class Category(enum.Enum):
    """What memory is for; None stands for memory of which that is not known."""

    INPUT = enum.auto()
    TEMPORARY = enum.auto()
    ACTIVATION = enum.auto()
    GRADIENT = enum.auto()
    AUTOGRAD_DETAIL = enum.auto()
    PARAMETER = enum.auto()
    OPTIMIZER_STATE = enum.auto()


class Action(enum.Enum):
    """What happens to memory."""

    PREEXISTING = enum.auto()
    CREATE = enum.auto()
    INCREMENT_VERSION = enum.auto()
    DESTROY = enum.auto()


# in the order of the columns of torch's files
CATEGORY_COLORS: dict[Category | None, str] = {
    Category.PARAMETER: "darkgreen",
    Category.OPTIMIZER_STATE: "goldenrod",
    Category.INPUT: "black",
    Category.TEMPORARY: "mediumpurple",
    Category.ACTIVATION: "red",
    Category.GRADIENT: "mediumblue",
    Category.AUTOGRAD_DETAIL: "royalblue",
    None: "grey",
}
# the numbers that stand for categories in torch's files and in columns
CATEGORY_INDEX: dict[Category | None, int] = {
    category: index for index, category in enumerate(CATEGORY_COLORS)
}
ACTION_INDEX = {action: action.value for action in Action}

# time in ns since the epoch (-1: before the recording), number of the action, bytes (negative: freed), number of the category
Change = tuple[int, int, int, int]


def category_label(category: Category | None) -> str:
    """A category as pages name it."""
    return "Unknown" if category is None else category.name.replace("_", " ").capitalize()


def sizes_over_time(changes: Iterable[Change]) -> tuple[list[int], list[list[int]]]:
    """Times in microseconds, and at each the bytes allocated: a leading 0, then one number per category. What was allocated before
    the recording stands at the time of the first change."""
    times: list[int] = []
    sizes: list[list[int]] = []
    current = [0] * (len(CATEGORY_INDEX) + 1)
    for time_ns, _, nbytes, category in changes:
        current[category + 1] += nbytes
        if times and times[-1] == time_ns // 1000:
            sizes[-1] = list(current)
        else:
            times.append(time_ns // 1000)
            sizes.append(list(current))
    if len(times) > 1 and times[0] < 0:
        times[0] = times[1]
    return times, sizes
