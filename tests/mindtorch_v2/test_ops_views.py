"""Views, copies and conversions: torch's strides, names and errors; NumPy's values; gradients twice.

Modules of _ops: shape, copies, slicing, rearrange, diagonals, view_copies, complex_views, inplace_views.
"""

from __future__ import annotations

import math
from typing import Any

import expression_rows
import numeric_gradients
import numpy as np
import pytest
import recorded_rows
from hypothesis import given, settings
from hypothesis import strategies as st

import mindtorch_v2 as torch


@pytest.mark.parametrize(("setup", "line", "fact"), recorded_rows.recorded("views"))
def test_a_view_or_copy_is_what_torch_gives(setup: str, line: str, fact: Any) -> None:
    assert expression_rows.run(torch, setup, line) == fact


# --------------------------------------------------------------------------- against NumPy

shapes = st.lists(st.integers(1, 4), min_size=0, max_size=4).map(tuple)


@st.composite
def view_steps(draw: Any) -> tuple[tuple[int, ...], list[tuple]]:
    """A shape and a chain of views that fit it."""
    shape = start = draw(shapes)
    steps: list[tuple] = []
    for _ in range(draw(st.integers(1, 5))):
        n = len(shape)
        kind = draw(
            st.sampled_from(["transpose", "slice", "select", "unsqueeze", "expand", "diagonal", "unfold"])
        )
        if kind == "unsqueeze":
            d = draw(st.integers(0, n))
            steps.append((kind, d))
            shape = (*shape[:d], 1, *shape[d:])
        elif kind == "expand" and math.prod(shape) < 200:
            steps.append((kind, (2, *shape)))
            shape = (2, *shape)
        elif n and kind in ("slice", "select", "unfold"):
            d = draw(st.integers(0, n - 1))
            if kind == "slice":
                begin, step = draw(st.integers(0, shape[d] - 1)), draw(st.integers(1, 3))
                steps.append((kind, d, begin, step))
                shape = (*shape[:d], len(range(begin, shape[d], step)), *shape[d + 1 :])
            elif kind == "select":
                steps.append((kind, d, draw(st.integers(-shape[d], shape[d] - 1))))
                shape = shape[:d] + shape[d + 1 :]
            else:
                size = draw(st.integers(1, shape[d]))
                steps.append((kind, d, size))
                shape = (*shape[:d], shape[d] - size + 1, *shape[d + 1 :], size)
        elif n >= 2 and kind in ("transpose", "diagonal"):
            a, b = draw(st.permutations(range(n)))[:2]
            steps.append((kind, a, b))
            if kind == "transpose":
                swapped = list(shape)
                swapped[a], swapped[b] = swapped[b], swapped[a]
                shape = tuple(swapped)
            else:
                shape = (*[s for d, s in enumerate(shape) if d not in (a, b)], min(shape[a], shape[b]))
    return start, steps


def numpy_step(array: np.ndarray, step: tuple) -> np.ndarray:
    kind, *rest = step
    if kind == "transpose":
        return array.swapaxes(*rest)
    if kind == "unsqueeze":
        return np.expand_dims(array, rest[0])
    if kind == "expand":
        return np.broadcast_to(array, rest[0])
    if kind == "diagonal":
        return array.diagonal(0, *rest)
    if kind == "slice":
        d, begin, by = rest
        return array[(slice(None),) * d + (slice(begin, None, by),)]
    if kind == "select":
        return array.take(rest[1], rest[0])
    d, size = rest
    return np.lib.stride_tricks.sliding_window_view(array, size, d)


def torch_step(tensor: Any, step: tuple) -> Any:
    kind, *rest = step
    if kind == "slice":
        d, begin, by = rest
        return tensor[(slice(None),) * d + (slice(begin, None, by),)]
    if kind == "unfold":
        return tensor.unfold(rest[0], rest[1], 1)
    if kind == "diagonal":
        return tensor.diagonal(0, *rest)
    return getattr(tensor, kind)(*rest)


@settings(max_examples=150)
@given(view_steps())
def test_a_chain_of_views_shows_what_numpy_shows_and_shares_its_memory(chain: tuple) -> None:
    shape, steps = chain
    array = np.arange(math.prod(shape), dtype=np.float64).reshape(shape)
    tensor = base = torch.arange(math.prod(shape), dtype=torch.float64).reshape(shape)
    for step in steps:
        array, tensor = numpy_step(array, step), torch_step(tensor, step)
    assert tuple(tensor.shape) == array.shape
    np.testing.assert_array_equal(tensor.numpy(), array)
    np.testing.assert_array_equal(tensor.clone().numpy(), array)
    assert tensor.contiguous().is_contiguous()
    assert tensor.untyped_storage().data_ptr() == base.untyped_storage().data_ptr()


@settings(max_examples=100)
@given(view_steps())
def test_the_gradient_of_a_chain_of_views_counts_how_often_each_element_is_seen(chain: tuple) -> None:
    shape, steps = chain
    count = math.prod(shape)
    places = np.arange(count).reshape(shape)
    leaf = torch.zeros(shape, dtype=torch.float64, requires_grad=True)
    tensor = leaf
    for step in steps:
        places, tensor = numpy_step(places, step), torch_step(tensor, step)
    tensor.sum().backward()
    wanted = np.bincount(places.reshape(-1), minlength=count).reshape(shape)
    np.testing.assert_array_equal(leaf.grad.numpy(), wanted)


@settings(max_examples=60)
@given(shapes, st.data())
def test_reshape_keeps_the_order_of_elements_and_copies_only_when_it_must(shape: tuple, data: Any) -> None:
    order = data.draw(st.permutations(range(len(shape))))
    array = np.arange(math.prod(shape)).reshape(shape).transpose(order)
    tensor = (
        torch.arange(math.prod(shape)).reshape(shape).permute(order) if shape else torch.arange(1).reshape(())
    )
    flat = tensor.reshape(-1)
    np.testing.assert_array_equal(flat.numpy(), array.reshape(-1))
    shares = flat.untyped_storage().data_ptr() == tensor.untyped_storage().data_ptr()
    assert shares == np.shares_memory(array.reshape(-1), array)


# ---------------------------------------------------------------------- facts of their own


def test_writing_to_a_view_writes_to_its_base_and_counts_as_a_write() -> None:
    base = torch.zeros(3, 4)
    view = base.t()[1:3]
    view.fill_(2)
    assert base.tolist() == [[0, 2, 2, 0]] * 3
    assert base._version == view._version == 1


def test_detach_shares_memory_and_version_but_is_no_view() -> None:
    x = torch.ones(2, requires_grad=True) * 2
    y = x.detach()
    y.add_(1)
    assert x.tolist() == [3, 3]
    assert x._version == 1
    assert not y._is_view()
    assert not y.requires_grad


@pytest.mark.parametrize(
    "write", ["add_(1)", "copy_(x)", "mul_(x)", "scatter_(1, j, 1.0)", "fill_(torch.ones(()))"]
)
def test_writing_to_an_expanded_tensor_is_refused(write: str) -> None:
    expanded = torch.zeros(4).expand(3, 4)
    names = {"e": expanded, "x": torch.ones(3, 4), "j": torch.zeros(3, 4, dtype=torch.int64), "torch": torch}
    with pytest.raises(
        RuntimeError, match="more than one element of the written-to tensor refers to a single"
    ):
        eval("e." + write, names)


def test_a_part_of_an_expanded_tensor_without_repetition_can_be_written() -> None:
    base = torch.zeros(4)
    base.expand(3, 4)[1].add_(1)
    base.expand(3, 4)[2, :2] = 5
    assert base.tolist() == [5, 5, 1, 1]


def test_masks_and_indices_write_to_expanded_tensors_with_a_warning() -> None:
    base = torch.zeros(2)
    with pytest.warns(UserWarning, match="Use of masked_fill_ on expanded tensors is deprecated"):
        base.expand(3, 2).masked_fill_(torch.ones(3, 2, dtype=torch.bool), 1.0)
    with pytest.warns(UserWarning, match="Use of index_put_ on expanded tensors is deprecated"):
        base.expand(3, 2)[torch.tensor([0])] = 2.0
    assert base.tolist() == [2, 2]


def test_writing_through_a_view_of_a_leaf_is_refused() -> None:
    leaf = torch.ones(3, requires_grad=True)
    with pytest.raises(RuntimeError, match="a view of a leaf Variable that requires grad"):
        leaf[0].zero_()


def test_a_view_op_in_place_changes_the_tensor_itself() -> None:
    x = torch.arange(3.0).view(1, 3)
    same = x.squeeze_()
    assert same is x
    assert (x.shape, x._version) == ((3,), 1)
    assert x.unsqueeze_(1).t_().shape == (1, 3)


def test_tensors_made_of_bits_of_another_dtype_share_memory() -> None:
    x = torch.zeros(2)
    x.view(torch.int32)[0] = 0x3F800000
    assert x.tolist() == [1, 0]


def test_as_strided_reads_the_whole_storage_even_through_a_narrow_view() -> None:
    x = torch.arange(6)
    assert x[4:].as_strided((3,), (2,), 0).tolist() == [0, 2, 4]


def test_conversions_round_and_cut_as_c_does() -> None:
    assert torch.tensor([1.9, -1.9]).int().tolist() == [1, -1]
    assert torch.tensor([300.0]).to(torch.float16).tolist() == [300.0]
    assert torch.tensor([1e6]).half().tolist() == [math.inf]
    assert torch.tensor([0.0, -0.5, math.nan]).bool().tolist() == [False, True, True]


def test_to_gives_the_same_tensor_when_nothing_changes() -> None:
    x = torch.ones(2)
    assert all(y is x for y in (x.to(torch.float32), x.to("cpu"), x.to(x), x.float()))
    assert x.to(torch.float32, copy=True) is not x


def test_large_transposes_are_copied_right() -> None:
    x = torch.arange(300.0 * 400).view(300, 400)
    np.testing.assert_array_equal(x.t().contiguous().numpy(), x.numpy().T)
    y = torch.empty(400, 300).copy_(x.t())
    np.testing.assert_array_equal(y.numpy(), x.numpy().T)


# -------------------------------------------------------------------- what a profile shows


def shown(statement: str, **names: Any) -> str:
    """The ops inside ops that a profile of a statement shows, as text."""
    with torch.profiler.profile(record_shapes=True) as profiler:
        exec(statement, {"torch": torch, **names})

    def text(event: Any) -> str:
        inside = ", ".join(map(text, event.cpu_children))
        return event.name.removeprefix("aten::") + (f"({inside})" if inside else "")

    return " ".join(text(event) for event in profiler.events() if event.cpu_parent is None)


@pytest.mark.parametrize(
    ("statement", "events"),
    [
        ("x.t()", "t(transpose(as_strided))"),
        ("x.reshape(12)", "reshape(view)"),
        (
            "x.t().reshape(12)",
            "t(transpose(as_strided)) reshape(clone(empty_like(empty), copy_), _unsafe_view)",
        ),
        ("x.contiguous()", ""),
        ("x.t().contiguous()", "t(transpose(as_strided)) contiguous(clone(empty_like(empty), copy_))"),
        ("x.clone()", "clone(empty_strided, copy_)"),
        ("x.double()", "to(_to_copy(empty_strided, copy_))"),
        ("x.float()", "to"),
        ("x.detach()", "detach(detach)"),
        ("x.chunk(2)", "chunk(split(narrow(slice(as_strided)), narrow(slice(as_strided))))"),
        ("x.unbind()", "unbind(select(as_strided), select(as_strided), select(as_strided))"),
        ("torch.diag(x)", "diag(diagonal_copy(diagonal(as_strided), clone(empty_like(empty), copy_)))"),
    ],
)
def test_a_profile_of_views_and_copies_shows_the_ops_torch_shows(statement: str, events: str) -> None:
    assert shown(statement, x=torch.zeros(3, 4)) == events


# ------------------------------------------------------------------------------- gradients

S = (3, 4)
GRADIENTS: dict[str, tuple] = {
    "as_strided": (lambda x: x.as_strided((2, 2), (1, 2)), S),
    "as_strided that overlaps": (lambda x: x.as_strided((3, 3), (1, 1), 1), S),
    "as_strided that repeats": (lambda x: x.as_strided((2, 3), (0, 1)), S),
    "as_strided of a transpose": (lambda x: x.t().as_strided((2, 2), (1, 2), 1), S),
    "view": (lambda x: x.view(2, 6), S),
    "reshape with a copy": (lambda x: x.t().reshape(12), S),
    "reshape without": (lambda x: x[:, :2].reshape(3, 2, 1), S),
    "permute": (lambda x: x.permute(2, 0, 1), (2, 3, 2)),
    "expand": (lambda x: x.expand(2, 3, 4), (3, 1)),
    "squeeze": (lambda x: x.squeeze(), (1, 3, 1)),
    "squeeze one": (lambda x: x.squeeze(0), (1, 3, 1)),
    "squeeze two": (lambda x: x.squeeze((0, 2)), (1, 3, 1)),
    "diagonal": (lambda x: x.diagonal(-1, 2, 0), (2, 3, 3)),
    "unfold": (lambda x: x.unfold(1, 3, 1), S),
    "unbind": (lambda x: x.unbind(1)[2], S),
    "split": (lambda x: x.split(2)[1], S),
    "split_with_sizes": (lambda x: x.split([1, 2]), S),
    "unsafe_split": (lambda x: torch.unsafe_split(x, 2), S),
    "to": (lambda x: x.to(torch.float64, copy=True), S),
    "flip": (lambda x: x.flip(0, 1), S),
    "roll": (lambda x: x.roll((1, 2), (0, 1)), S),
    "rot90": (lambda x: x.rot90(3), S),
    "repeat": (lambda x: x.repeat(2, 1, 3), S),
    "repeat_interleave": (lambda x: x.repeat_interleave(torch.tensor([1, 0, 2]), 0), S),
    "diag_embed": (lambda x: torch.diag_embed(x, 1), (2, 3)),
    "diag": (lambda x: x.diag(), S),
    "tril": (lambda x: x.tril(-1), S),
    "triu": (lambda x: x.triu(1), (2, 3, 3)),
    "trace": (lambda x: x.trace(), (4, 2)),
    "select_scatter": (lambda x, y: torch.select_scatter(x, y, 1, 2), S, (3,)),
    "slice_scatter": (lambda x, y: torch.slice_scatter(x, y, 1, 1, 3), S, (3, 2)),
    "diagonal_scatter": (torch.diagonal_scatter, S, (3,)),
    "as_strided_scatter": (lambda x, y: torch.as_strided_scatter(x, y, (2, 2), (1, 2)), S, (2, 2)),
    "copy_": (lambda x, y: (x * 1).copy_(y), S, (4,)),
    "copy_ into a part": (lambda x, y: torch.cat([(x * 1)[0].copy_(y), y]), S, (4,)),
    "fill_": (lambda x, y: (x * 1).fill_(y), S, ()),
    "squeeze_": (lambda x: (x * 1).squeeze_(), (1, 3)),
    "t_": (lambda x: (x * 1).t_(), S),
    "unsqueeze_": (lambda x: (x * 1).unsqueeze_(0), S),
    "fill_diagonal_": (lambda x: (x * 1).fill_diagonal_(2.0), S),
    "expand_copy": (lambda x: torch.expand_copy(x, (2, 3, 4)), S),
    "split_copy": (lambda x: torch.split_copy(x, 2), S),
    "as_strided_copy": (lambda x: torch.as_strided_copy(x, (2, 2), (1, 2)), S),
    "narrow_copy": (lambda x: torch.narrow_copy(x, 1, -2, 1), S),
    "complex views": (lambda x: torch.view_as_real(torch.view_as_complex(x) * (1 + 2j)), (3, 2)),
    "real": (lambda x: torch.view_as_complex(x).real, (3, 2)),
    "imag": (lambda x: torch.view_as_complex(x).imag, (3, 2)),
}


@pytest.mark.parametrize("name", GRADIENTS)
def test_first_and_second_derivatives_are_what_differences_give(name: str) -> None:
    function, *given_shapes = GRADIENTS[name]
    numeric_gradients.check(function, *given_shapes)
