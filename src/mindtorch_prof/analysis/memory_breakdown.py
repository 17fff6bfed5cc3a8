"""Memory by category: Results in; the category of each allocation, and all changes of memory with their categories, out.

The one place that chooses how categories are decided. Where tensors were told apart (shapes and memory were recorded), torch's
memory profile decides, which follows tensors from op to op. Elsewhere `memory_by_lifetime` decides.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ..torch_api.memory_categories import Change
from ..torch_api.memory_profile import MemoryProfileTimeline, allocation_categories
from ..torch_api.results import Results
from .memory_by_lifetime import categories_by_lifetime, changes_by_lifetime

_MOST_EVENTS = 30_000  # of a memory profile in a report: each 10,000 events take about 0.2 s


def memory_categories(
    results: Results, born: npt.NDArray[np.integer], died: npt.NDArray[np.integer]
) -> npt.NDArray[np.integer]:
    """The category of each allocation, as its number in CATEGORY_INDEX; by lifetime where a recording is too long for a report.
    born, died: rows of the trace's memory, as `lifetimes` gives them."""
    profile = results.memory_profile if len(results.trace) <= _MOST_EVENTS else None
    if profile is None:
        return categories_by_lifetime(results.trace, results.tree, born, died)
    return np.array(allocation_categories(profile, born.tolist()), np.int64)


def memory_changes(results: Results) -> list[Change]:
    """All changes of the CPU's memory, in the order of time."""
    profile = results.memory_profile
    if profile is None:
        return changes_by_lifetime(results.trace, results.tree)
    return MemoryProfileTimeline(profile)._entries("cpu")
