"""Tests of mindtorch_prof.sealing.tensor_columns: ids of tensors and memory as columns."""

from __future__ import annotations

import numpy as np

from mindtorch_prof.sealing.logs import Logs
from mindtorch_prof.sealing.raw import TensorTables
from mindtorch_prof.sealing.tensor_columns import tensor_columns
from mindtorch_prof.trace import Frames

EMPTY = np.empty(0, np.int64)


def test_memory_that_is_alive_has_its_address_and_other_memory_one_of_its_own() -> None:
    alive = np.array([[120, 0xAAAA, 64]])
    tables = TensorTables(100, EMPTY.reshape(0, 2), {130: 0xBBBB}, (), {}, alive)
    ids = tensor_columns(tables, Logs(), EMPTY, EMPTY, np.array([110, 120, 130, 110]), Frames.none())
    assert ids.storages[:, 0].tolist() == [110, 120, 130]
    addresses = ids.storages[:, 2].tolist()
    assert addresses[1:] == [0xAAAA, 0xBBBB]
    assert addresses[0] >= 1 << 60


def test_memory_that_had_an_id_before_its_allocation_was_recorded_keeps_it() -> None:
    tables = TensorTables(100, EMPTY.reshape(0, 2), {}, (), {}, EMPTY.reshape(0, 3))
    logs = Logs(
        {("storages", 0): [np.array([105, 120, 0])], ("earlier_ids", 0): [np.array([120, 105])]}.items()
    )
    ids = tensor_columns(tables, logs, EMPTY, EMPTY, np.array([120]), Frames.none())
    assert ids.memory.tolist() == [105]
    assert ids.storages[0].tolist() == [105, 105, 0]
