"""Indexing, gather, scatter and masks: torch's views, names and errors; NumPy's values; gradients twice.

Modules of _ops: indexing, getitem, index_along_dim, scatter, masking.
"""

from __future__ import annotations

from typing import Any

import expression_rows
import numeric_gradients
import numpy as np
import pytest
import recorded_rows
from hypothesis import given, settings
from hypothesis import strategies as st

import mindtorch_v2 as torch
from mindtorch_v2 import _dispatch


@pytest.mark.parametrize(("setup", "line", "fact"), recorded_rows.recorded("indexing"))
def test_an_index_gives_what_torch_gives(setup: str, line: str, fact: Any) -> None:
    assert expression_rows.run(torch, setup, line) == fact


# --------------------------------------------------------------------------- against NumPy

SHAPE = (3, 4, 5)


@st.composite
def indices(draw: Any) -> tuple:
    """An index that NumPy and torch read alike: integers or one array, not both."""
    parts: list[Any] = []
    basic = draw(st.booleans())
    array_used = False
    for n in SHAPE[: draw(st.integers(1, 3))]:
        kinds = ["slice", "int"] if basic else ["slice", "array", "mask"]
        kind = draw(st.sampled_from(kinds))
        if kind == "int":
            parts.append(draw(st.integers(-n, n - 1)))
        elif kind == "slice" or array_used:
            bound = st.none() | st.integers(-n - 1, n + 1)
            parts.append(slice(draw(bound), draw(bound), draw(st.none() | st.integers(1, 3))))
        elif kind == "array":
            parts.append(np.array(draw(st.lists(st.integers(-n, n - 1), min_size=1, max_size=4))))
            array_used = True
        else:
            parts.append(np.array(draw(st.lists(st.booleans(), min_size=n, max_size=n))))
            array_used = True
    if draw(st.booleans()) and len(parts) < 3:
        parts.insert(draw(st.integers(0, len(parts))) if basic else len(parts), Ellipsis)
        if parts[-1] is not Ellipsis:
            parts = [p for p in parts if p is not Ellipsis]
    if basic and draw(st.booleans()):
        parts.insert(draw(st.integers(0, len(parts))), None)
    return tuple(parts)


def torch_index(index: tuple) -> tuple:
    return tuple(torch.from_numpy(p) if isinstance(p, np.ndarray) else p for p in index)


@settings(max_examples=250)
@given(indices())
def test_reading_agrees_with_numpy_with_and_without_gradients(index: tuple) -> None:
    array = np.arange(60.0).reshape(SHAPE)
    tensor = torch.arange(60.0, dtype=torch.float64).reshape(SHAPE)
    np.testing.assert_array_equal(tensor[torch_index(index)].numpy(), array[index])
    leaf = tensor.clone().requires_grad_()
    found = leaf[torch_index(index)]
    np.testing.assert_array_equal(found.detach().numpy(), array[index])
    found.sum().backward()
    counts = np.zeros(SHAPE)
    np.add.at(counts, index, 1)
    np.testing.assert_array_equal(leaf.grad.numpy(), counts)


@settings(max_examples=200)
@given(indices(), st.booleans())
def test_writing_agrees_with_numpy(index: tuple, tensors: bool) -> None:
    array = np.arange(60.0).reshape(SHAPE)
    tensor = torch.arange(60.0, dtype=torch.float64).reshape(SHAPE)
    if tensors:
        value = np.arange(array[index].size, dtype=np.float64).reshape(array[index].shape)
        array[index] = value
        tensor[torch_index(index)] = torch.from_numpy(value)
    else:
        array[index] = -1
        tensor[torch_index(index)] = -1
    np.testing.assert_array_equal(tensor.numpy(), array)


@settings(max_examples=60)
@given(st.integers(0, 2), st.data())
def test_gather_and_scatter_agree_with_numpy_along_any_dimension(dim: int, data: Any) -> None:
    shape = [data.draw(st.integers(1, n)) for n in SHAPE]
    shape[dim] = data.draw(st.integers(1, 6))
    index = np.array(
        data.draw(
            st.lists(
                st.integers(0, SHAPE[dim] - 1), min_size=int(np.prod(shape)), max_size=int(np.prod(shape))
            )
        )
    ).reshape(shape)
    array = np.random.RandomState(0).rand(*SHAPE)
    part = array[tuple(slice(None) if d == dim else slice(n) for d, n in enumerate(shape))]
    found = torch.from_numpy(array).gather(dim, torch.from_numpy(index))
    np.testing.assert_array_equal(found.numpy(), np.take_along_axis(part, index, dim))
    added = torch.zeros(*SHAPE, dtype=torch.float64).scatter_add(dim, torch.from_numpy(index), found)
    assert float(added.sum()) == pytest.approx(float(found.sum()))


@settings(max_examples=40)
@given(st.integers(1, 400), st.integers(1, 30), st.integers(1, 80))
def test_index_add_sums_rows_however_many_repeat(rows: int, places: int, width: int) -> None:
    random = np.random.RandomState(rows)
    index = random.randint(0, places, rows)
    source = random.rand(rows, width).astype(np.float32)
    wanted = np.zeros((places, width), np.float64)
    np.add.at(wanted, index, source)
    found = torch.zeros(places, width).index_add_(0, torch.from_numpy(index), torch.from_numpy(source))
    np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-5, atol=1e-5)


# ---------------------------------------------------------------------- facts of their own


def test_basic_indices_give_views_and_index_tensors_copies() -> None:
    x = torch.zeros(3, 4)
    for index in (0, slice(1), (slice(None), 1), None, ..., (0, 1)):
        assert x[index]._is_view()
    for index in (torch.tensor([0]), [0, 1], x > 0, True):
        assert not x[index]._is_view()


def test_an_element_can_be_written_through_a_chain_of_indices() -> None:
    x = torch.zeros(2, 3)
    x[1][2] = 5
    x[0, 1] += 2
    assert x.tolist() == [[0, 2, 0], [0, 0, 5]]


def test_assignment_between_overlapping_parts_is_refused_without_a_clone() -> None:
    x = torch.arange(6)
    with pytest.raises(RuntimeError, match="refer to a single memory location"):
        x[1:] = x[:-1]
    x[1:] = x[:-1].clone()
    assert x.tolist() == [0, 0, 1, 2, 3, 4]


def test_a_write_after_it_was_saved_is_noticed_in_the_backward_pass() -> None:
    x = torch.ones(3, requires_grad=True)
    y = x * 2
    z = y * y
    y[0] = 5
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.sum().backward()


def test_iterating_gives_the_rows() -> None:
    assert [row.tolist() for row in torch.arange(4).view(2, 2)] == [[0, 1], [2, 3]]


def test_deprecated_ways_to_index_warn_as_torch_does() -> None:
    x = torch.zeros(2, 2)
    with pytest.warns(UserWarning, match="non-tuple sequence for multidimensional indexing is deprecated"):
        x[[[0, 1], [1, 0]]]


# -------------------------------------------------------------------- what a profile shows


def shown(statement: str, **names: Any) -> str:
    """The outermost ops that a statement records."""
    depth, found = 0, []

    def recorder(op: Any, *arguments: Any) -> Any:
        nonlocal depth
        if depth == 0:
            found.append(op.name)
        depth += 1
        try:
            return op.run(*arguments)
        finally:
            depth -= 1

    _dispatch.recorder = _dispatch.Hook(recorder)
    try:
        exec(statement, {"torch": torch, **names})
    finally:
        _dispatch.recorder = None
    return " ".join(found)


@pytest.mark.parametrize(
    ("statement", "events"),
    [
        ("x[0]", "select"),
        ("x[0, 1]", "select select"),
        ("x[:]", "slice"),
        ("x[:, 1]", "select"),
        ("x[::2, 1:]", "slice slice"),
        ("x[0:3, 1]", "select"),
        ("x[None]", "unsqueeze"),
        ("x[...]", "alias"),
        ("x[None, 0, :, None]", "unsqueeze select unsqueeze"),
        ("x[i]", "index"),
        ("x[0, i]", "select index"),
        ("x[None, i]", "unsqueeze index"),
        ("x[True]", "unsqueeze empty fill_ index"),
        ("x[0] = 1", "lift_fresh select fill_"),
        ("x[0, 0] = 1", "lift_fresh select select copy_"),
        ("x[:] = 1", "lift_fresh fill_"),
        ("x[0] = x[1]", "select select copy_"),
        ("x[0:2] = x[0]", "select slice view expand copy_"),
        ("x[i] = 1", "lift_fresh index_put_"),
        ("x[i, i] = torch.ones(1)", "ones view index_put_"),
    ],
)
def test_indexing_records_the_ops_torch_records(statement: str, events: str) -> None:
    assert shown(statement, x=torch.zeros(3, 4), i=torch.tensor([0, 2])) == events


# ------------------------------------------------------------------------------- gradients

S = (3, 4)
ROWS, II = torch.tensor([0, 2]), torch.tensor([0, 0, 2])
J = torch.tensor([[0, 1], [1, 0], [2, 2]])
JJ = torch.tensor([[0, 1, 1, 3], [3, 0, 0, 0], [2, 2, 2, 2]])
M = torch.tensor([[True, False, True, False], [False, False, True, True], [True, True, True, False]])


def setting(index: Any) -> Any:
    def write(x: Any, y: Any) -> Any:
        z = x * 1
        z[index] = y
        return z

    return write


GRADIENTS: dict[str, tuple] = {
    "rows": (lambda x: x[II], S),
    "pairs": (lambda x: x[II, torch.tensor([1, 1, 0])], S),
    "columns": (lambda x: x[:, II], S),
    "mask": (lambda x: x[M], S),
    "two apart": (lambda x: x[II, :, torch.tensor([1, 1, 0])], (3, 2, 2)),
    "write a row": (setting(0), S, (4,)),
    "write a slice": (setting(slice(1, 3)), S, (2, 4)),
    "write a mask": (setting(M), S, (7,)),
    "write columns": (setting((slice(None), ROWS)), S, (3, 2)),
    "write one": (setting((1, 2)), S, ()),
    "write one to many": (setting(ROWS), S, ()),
    "index_put": (lambda x, y: x.index_put((II,), y, accumulate=True), S, (3, 4)),
    "gather": (lambda x: x.gather(1, J), S),
    "scatter": (lambda x, y: x.scatter(1, torch.tensor([[0, 1], [1, 0], [2, 3]]), y), S, (3, 2)),
    "scatter a number": (lambda x: x.scatter(1, J, 2.0), S),
    "scatter_add": (lambda x, y: x.scatter_add(1, JJ, y), S, S),
    "index_select": (lambda x: x.index_select(1, II), S),
    "index_add": (lambda x, y: x.index_add(1, II, y, alpha=2), S, (3, 3)),
    "index_copy": (lambda x, y: x.index_copy(0, ROWS, y), S, (2, 4)),
    "index_fill": (lambda x: x.index_fill(0, ROWS, 2.0), S),
    "index_fill with a tensor": (lambda x, y: x.index_fill(0, ROWS, y), S, ()),
    "take": (lambda x: x.take(II), S),
    "put": (lambda x, y: x.put(ROWS, y), S, (2,)),
    "put accumulating": (lambda x, y: x.put(II, y, True), S, (3,)),
    "take_along_dim": (lambda x: torch.take_along_dim(x, J, 1), S),
    "masked_fill": (lambda x: x.masked_fill(M, 2.0), S),
    "masked_fill with a tensor": (lambda x, y: x.masked_fill(M, y), S, ()),
    "masked_fill that broadcasts": (lambda x: x.masked_fill(M, 1.0), (4,)),
    "masked_scatter": (lambda x, y: x.masked_scatter(M, y), S, (9,)),
    "masked_select": (lambda x: x.masked_select(M), (4,)),
    "where": (lambda x, y: torch.where(M, x, y), S, (4,)),
    "where with a number": (lambda x: torch.where(M, x, 0.0), S),
    **{
        f"scatter_reduce {how} {include}": (
            lambda x, y, how=how, own=include: x.scatter_reduce(1, JJ, y, how, include_self=own), S, S,
        )
        for how in ("sum", "prod", "mean", "amax", "amin")
        for include in (True, False)
    },
}  # fmt: skip


@pytest.mark.parametrize("name", GRADIENTS)
def test_first_and_second_derivatives_are_what_differences_give(name: str) -> None:
    function, *given_shapes = GRADIENTS[name]
    numeric_gradients.check(function, *given_shapes)


@pytest.mark.parametrize("how", ["prod", "mean", "amax", "amin"])
@pytest.mark.filterwarnings("ignore:index_reduce")
def test_index_reduce_has_first_and_second_derivatives(how: str) -> None:
    numeric_gradients.check(lambda x, y: x.index_reduce(0, II, y, how), S, S)
