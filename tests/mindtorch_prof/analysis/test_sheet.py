"""Sheets: sorting, cutting and taking rows."""

from __future__ import annotations

import numpy as np
import pytest

from mindtorch_prof.analysis.sheet import Sheet


def test_rows_are_sorted_stably_and_what_is_missing_comes_last() -> None:
    sheet = Sheet(
        {"name": ["a", "b", "c", "d"], "p95": np.array([1.0, np.nan, 3.0, 1.0]), "step": [None, 2, 1, 2]}
    )
    assert sheet.sort("p95")["name"].tolist() == ["c", "a", "d", "b"]
    assert sheet.sort("p95", descending=False)["name"].tolist() == ["a", "d", "c", "b"]
    assert sheet.sort("step")["name"].tolist() == ["b", "d", "c", "a"]
    assert sheet.head(1).rows() == [{"name": "a", "p95": 1.0, "step": None}]
    assert sheet.take(np.array([1])).rows() == [{"name": "b", "p95": None, "step": 2}]
    with pytest.raises(KeyError, match="there is no column 'calls' here"):
        sheet.sort("calls")
