"""Recording changes no result: every row of every row file gives the same with a profiler and without.

Compared are values to the last bit, shapes, strides, dtypes, views, nodes of the graph, gradients and errors.
Some ops still have a second body that runs under a profiler. Where it gives something else, that is listed:
here, or in `facts/profiled_differences.txt`. A listed op or row that has become the same fails too, so the
lists only shrink.
"""

from __future__ import annotations

import re
from pathlib import Path

import profiled_rows
import pytest
import row_comparison

import mindtorch_v2 as torch

CALLS = profiled_rows.calls()
AT_ONCE = 200  # rows in one recording: fewer recordings take less time, longer ones more memory
LISTED = [
    line
    for line in (Path(profiled_rows.__file__).parent / "profiled_differences.txt").read_text().splitlines()
    if line and not line.startswith("#")
]

# Ops whose values are rounded differently under a profiler, and why. In which rows that shows depends on the
# processor, so the rows are not listed: whatever runs one of these ops may differ in the last bits.
ROUNDED = {
    "aten::mean": "the sum of halves is rounded before it is divided",
    "aten::binary_cross_entropy_with_logits": "made of log_sigmoid, mul and sub instead of one formula",
    "aten::embedding_renorm_": "one vector after the other instead of all at once",
    "aten::_convolution_double_backward": "made of convolutions instead of products of matrices",
    "aten::_linalg_solve_ex": "two calls of LAPACK, to factorise and to substitute, instead of one",
    "aten::_linalg_det": "the product of the diagonal of a factorisation instead of NumPy's det",
    "aten::_linalg_slogdet": "the same, of logarithms",
}


@pytest.fixture(scope="module")
def differing() -> dict[str, tuple[str, str]]:
    """The rows that give something else under a profiler: what they give without one, and with it."""
    found = {}
    names = list(CALLS)
    for first in range(0, len(names), AT_ONCE):
        some = names[first : first + AT_ONCE]
        plain = [CALLS[name]() for name in some]
        with torch.profiler.profile(record_shapes=True, profile_memory=True):
            profiled = [CALLS[name]() for name in some]
        found.update({n: (a, b) for n, a, b in zip(some, plain, profiled, strict=True) if a != b})
    return found


@pytest.fixture(scope="module")
def rounded(differing: dict[str, tuple[str, str]]) -> dict[str, set[str]]:
    """The rows that are not listed and differ in the last bits of values alone: the ops that each runs."""
    return {
        name: _ops_of(name)
        for name, texts in differing.items()
        if name not in LISTED and _differ_by_rounding(*texts)
    }


_VALUES = re.compile(r"'dtype': '([\w.]+)'(.*?)'values': '([^']*)'")


def _differ_by_rounding(plain: str, profiled: str) -> bool:
    """Whether all but values is the same, and values within the tolerance of their dtype."""
    if _VALUES.sub(r"\1 \2", plain) != _VALUES.sub(r"\1 \2", profiled):
        return False
    for (dtype, _, ours), (_, _, theirs) in zip(_VALUES.findall(plain), _VALUES.findall(profiled)):
        fact = {"dtype": dtype, "values": ours}
        if row_comparison.difference(fact, {"dtype": dtype, "values": theirs}, scaled=True) is not None:
            return False
    return True


def _ops_of(name: str) -> set[str]:
    with torch.profiler.profile() as prof:
        CALLS[name]()
    return {event.name for event in prof.events()}


def test_a_row_gives_the_same_with_a_profiler_and_without(
    differing: dict[str, tuple[str, str]], rounded: dict[str, set[str]]
) -> None:
    explained = {name for name, ops in rounded.items() if ops & ROUNDED.keys()} | set(LISTED)
    unexplained = {name: texts for name, texts in differing.items() if name not in explained}
    assert not unexplained, "\n\n".join(
        f"{name}\n  without: {plain[:500]}\n  with:    {profiled[:500]}"
        for name, (plain, profiled) in unexplained.items()
    )


def test_every_listed_row_still_differs(differing: dict[str, tuple[str, str]]) -> None:
    same = [name for name in LISTED if name not in differing]
    assert same == [], "these rows are the same now: remove them from facts/profiled_differences.txt"


def test_every_listed_op_still_rounds_differently(rounded: dict[str, set[str]]) -> None:
    needed = {op for ops in rounded.values() if len(ops & ROUNDED.keys()) == 1 for op in ops & ROUNDED.keys()}
    assert ROUNDED.keys() - needed == set(), "these ops give the same now: remove them from ROUNDED"


def test_rounding_is_told_from_other_differences() -> None:
    one = "[{'shape': [2], 'stride': [1], 'dtype': 'torch.float32', 'values': '[1.0, 2.0]'}]"
    assert _differ_by_rounding(one, one.replace("2.0", "2.0000002"))
    assert not _differ_by_rounding(one, one.replace("2.0", "2.1"))
    assert not _differ_by_rounding(one, one.replace("'stride': [1]", "'stride': [2]"))
