"""Old tensor types, and names of the top level that no other file tests, behave as torch's.

The facts are recorded with `python facts/record_expressions.py top_level`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import recorded_rows

import mindtorch_v2 as torch


@pytest.mark.parametrize(("setup", "line", "fact"), recorded_rows.recorded("top_level"))
def test_names_at_the_top_give_what_torch_gives(setup: str, line: str, fact: Any) -> None:
    recorded_rows.check(torch, setup, line, fact)


def test_an_old_tensor_type_cannot_be_inherited_from() -> None:
    with pytest.raises(TypeError, match=r"type 'torch.FloatTensor' is not an acceptable base type"):

        class Mine(torch.FloatTensor): ...


def test_old_constructors_share_an_arrays_memory_and_new_ones_keep_its_order() -> None:
    array = np.arange(12, dtype=np.float32).reshape(3, 4)
    for make in (torch.Tensor, torch.FloatTensor):
        shared = make(array)
        shared[0, 0] = 99
        assert array[0, 0] == 99
        array[0, 0] = 0
        assert shared[0, 0] == 0
    assert torch.LongTensor(np.where(np.eye(4))[1]).stride() == (2,)
    assert torch.Tensor(np.arange(3)).tolist() == [0.0, 1.0, 2.0]
    copied = torch.tensor(array.T)
    array[0, 0] = 5
    assert copied.stride() == (1, 4)
    assert copied[0, 0] == 0
    assert torch.tensor(array.T, dtype=torch.double).stride() == (1, 4)
    assert torch.tensor(np.broadcast_to(np.ones(1), (2, 3))).stride() == (3, 1)
