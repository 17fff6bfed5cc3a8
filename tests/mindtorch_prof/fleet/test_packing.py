"""Packing: values and arrays come back as they were, and damaged bytes are refused."""

from __future__ import annotations

import numpy as np
import pytest

from mindtorch_prof.fleet.packing import PackingError, packed, unpacked

ARRAYS = {
    "small": np.array([-1, 3]),
    "large": np.array([[2**62, -(2**62)]]),
    "none": np.empty((0, 4), np.int64),
}


def test_values_and_arrays_come_back_as_they_were() -> None:
    values, arrays = unpacked(packed({"a": [1, "ü", None], "b": {"c": 0.5}}, ARRAYS))
    assert values == {"a": [1, "ü", None], "b": {"c": 0.5}}
    assert {k: v.tolist() for k, v in arrays.items()} == {k: v.tolist() for k, v in ARRAYS.items()}
    assert arrays["none"].shape == (0, 4)


def test_equal_contents_have_equal_bytes_in_any_order() -> None:
    assert packed({"a": 1, "b": 2}, ARRAYS) == packed({"b": 2, "a": 1}, dict(reversed(ARRAYS.items())))


@pytest.mark.parametrize("damage", [lambda data: data[:-3], lambda data: b"", lambda data: b"{}"])
def test_damaged_bytes_are_refused(damage: object) -> None:
    assert callable(damage)
    with pytest.raises(PackingError, match="not a packed sketch"):
        unpacked(damage(packed({"a": 1}, ARRAYS)))
