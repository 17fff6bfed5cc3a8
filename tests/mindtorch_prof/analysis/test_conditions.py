"""Conditions: what they mean, and that nothing but a condition is understood."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mindtorch_prof.analysis.conditions import WhereError, where
from mindtorch_prof.analysis.sheet import Sheet

SHEET = Sheet(
    {
        "name": ["aten::conv2d", "aten::mm", "forward", "aten::add_"],
        "self_cpu_time_total": np.array([5.0, 2000.0, 30.0, 0.5]),
        "self_cpu_share": np.array([0.01, 0.9, 0.08, 0.01]),
        "cpu_memory_usage": np.array([0, 4096, -8, 1 << 21]),
        "count": np.array([1, 5, 3, 2000]),
        "step": [0, 1, None, 1],
        "stack": [["a.py(1): f", "b.py(2): g"], [], [], ["a.py(1): f"]],
    }
)


@pytest.mark.parametrize(
    ("condition", "rows"),
    [
        ('name ~ "conv|mm"', [0, 1]),
        ('name !~ "^aten::"', [2]),
        ("self_cpu > 1ms", [1]),
        ("self_cpu >= 30", [1, 2]),
        ("500ns == self_cpu", [3]),
        ("10us < self_cpu and self_cpu < 0.1s", [1, 2]),
        ("self_cpu_percent >= 8%", [1, 2]),
        ("mem > 1MB or mem == 4KB", [1, 3]),
        ("mem < 0", [2]),
        ("calls >= 2K", [3]),
        ("not (count > 1 and count < 10)", [0, 3]),
        ("not not count = 1", [0]),
        ("name == 'forward' or count==1 and step==0", [0, 2]),
        ('name in ("forward", "aten::mm")', [1, 2]),
        ("step in (1)", [1, 3]),
        ("step != 1", [0, 2]),
        ("step < 1", [0]),
        ('stack ~ "b\\.py.*g"', [0]),
        ("count > self_cpu", [3]),
        ('NAME ~ "mm" AND Count > 1', [1]),
        ("key == 'forward'", [2]),
    ],
)
def test_a_condition_keeps_the_rows_for_which_it_holds(condition: str, rows: list[int]) -> None:
    assert np.flatnonzero(where(condition).mask(SHEET)).tolist() == rows


@pytest.mark.parametrize(
    ("condition", "problem"),
    [
        ("", "empty; expected"),
        ("self_cpu", "expected a comparison"),
        ("self_cpu >", "expected a column or a value"),
        ("self_cpu > 3 4", "expected `and`, `or` or the end"),
        ("(self_cpu > 3", r"expected \)"),
        ("self_cpu > 3KB", "is in us, the value is in bytes"),
        ("self_cpu > 'much'", "is a number"),
        ("self_cpu > 3 parsec", "unit 'parsec' is not known|expected `and`"),
        ("3 > 4", "expected a column on one side"),
        ("selfcpu > 3", "did you mean self_cpu"),
        ('name ~ "("', "not a valid regular expression"),
        ("name ~ 3", "expected COLUMN ~"),
        ('name in "a"', "expected COLUMN in"),
        ("count > 1 && count < 3", "unexpected text"),
        ("__import__('os')", "there is no column"),
        ("name.__class__ == 'a'", "there is no column"),
        ("(" * 200 + "count > 1" + ")" * 200, "nested more than"),
        ("p95 > 3", "uses p95"),
    ],
)
def test_what_is_no_condition_is_refused_with_the_place(condition: str, problem: str) -> None:
    with pytest.raises(WhereError, match=problem):
        where(condition).mask(SHEET)


@given(st.text(alphabet="()<>=!~ andortinemcu_\"'0123456789.%sKM,", max_size=40))
def test_any_text_gives_a_mask_or_a_clear_error(text: str) -> None:
    try:
        mask = where(text).mask(SHEET)
    except WhereError:
        return
    assert mask.dtype == bool
    assert len(mask) == 4
