"""What tests of recorded objects rely on: nothing of earlier tests is freed while they record."""

from __future__ import annotations

import gc

import pytest


@pytest.fixture(autouse=True)
def no_garbage() -> None:
    """Free what earlier tests left in reference cycles.

    Memory that an earlier recording saw allocated is an event of the recording in which it is freed, and
    takes an id there.
    """
    gc.collect()
