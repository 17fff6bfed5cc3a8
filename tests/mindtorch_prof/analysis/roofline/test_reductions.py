"""Reductions, pooling and losses: each input element is read once, the result is written."""

from __future__ import annotations

import pytest
from roofline_inputs import T, work

from mindtorch_prof.analysis.roofline.work import NotModelled

X = T((4, 6, 8))
E = 192


@pytest.mark.parametrize(
    ("name", "arguments", "elements"),
    [
        ("aten::sum", (X, None), E + 1),
        ("aten::sum", (X, [0, 2], False, None), E + 6),
        ("aten::mean", (X, [-1], True, None), E + 24),
        ("aten::mean", (X, [], False, None), E + 1),
        ("aten::amax", (X, [1], False), E + 32),
        ("aten::var", (X, [2], None, True), E + 24),
        ("aten::linalg_vector_norm", (X, 2, [1], False, None), E + 32),
    ],
)
def test_the_result_has_the_dimensions_that_are_kept(
    name: str, arguments: tuple[T, ...], elements: int
) -> None:
    assert work(name, *arguments).nbytes == 4 * elements


def test_max_along_a_dimension_writes_indices_too() -> None:
    assert work("aten::max", X, 1, False).nbytes == 4 * (E + 32) + 8 * 32


def test_max_of_two_tensors_is_elementwise() -> None:
    done = work("aten::max", X, X)
    assert (done.nbytes, done.category) == (4 * 3 * E, "elementwise")


def test_bools_are_summed_to_whole_numbers() -> None:
    assert work("aten::sum", T((100,), "bool"), None).nbytes == 100 + 8


def test_dimensions_that_a_file_does_not_show_are_not_guessed() -> None:
    with pytest.raises(NotModelled, match="dimensions"):
        work("aten::sum", X, T((), "ScalarList"), T((), "Scalar"))


def test_max_pooling_writes_the_result_and_its_indices() -> None:
    done = work("aten::max_pool2d_with_indices", T((10, 64, 112, 112)), [3, 3], [2, 2], [1, 1], [1, 1], False)
    result = 10 * 64 * 56 * 56
    assert (done.flop, done.nbytes) == (9 * result, 4 * (4 * result) + (4 + 8) * result)


@pytest.mark.parametrize(("ceil", "size"), [(False, 3), (True, 4)])
def test_a_window_that_does_not_fit_counts_only_with_ceil(ceil: bool, size: int) -> None:
    done = work("aten::max_pool2d_with_indices", T((1, 1, 8, 8)), [2, 2], [2, 2], [0, 0], [1, 1], ceil)
    assert done.flop == 4 * 16
    done = work("aten::max_pool2d_with_indices", T((1, 1, 7, 7)), [2, 2], [2, 2], [0, 0], [1, 1], ceil)
    assert done.flop == 4 * size * size


def test_a_loss_that_picks_reads_one_element_per_target() -> None:
    done = work("aten::nll_loss_forward", T((32, 1000)), T((32,), "long int"), None, 1, -100)
    assert done.nbytes == 32 * 4 + 32 * 8 + 8
