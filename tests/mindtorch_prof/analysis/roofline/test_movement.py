"""Ops that move data: bytes, and no operations but additions."""

from __future__ import annotations

import pytest
from roofline_inputs import T, work

from mindtorch_prof.analysis.roofline.models import work_of
from mindtorch_prof.analysis.roofline.work import LINK, NotModelled
from mindtorch_prof.inputs import Inputs, TensorInput, TensorList

LONG, BF16 = "long int", "c10::BFloat16"


def test_an_embedding_reads_the_rows_it_is_asked_for() -> None:
    done = work("aten::embedding", T((151936, 1024), BF16), T((16, 559), LONG))
    rows = 16 * 559
    assert (done.flop, done.nbytes) == (0, rows * 8 + 2 * rows * 1024 * 2)


def test_index_select_is_the_same_along_its_dimension() -> None:
    done = work("aten::index_select", T((5, 100)), 1, T((7,), LONG))
    assert done.nbytes == 7 * 8 + 2 * 7 * 5 * 4


def test_a_table_s_gradient_is_written_whole() -> None:
    done = work("aten::embedding_dense_backward", T((16, 8)), T((16,), LONG), 100, -1, False)
    assert (done.flop, done.nbytes) == (128, 4 * 128 + 8 * 16 + 4 * 800)


def test_scatter_add_reads_and_writes_what_it_changes() -> None:
    done = work("aten::scatter_add_", T((50,)), 0, T((80,), LONG), T((80,)))
    assert (done.flop, done.nbytes) == (80, 80 * (8 + 4 + 4 + 4))


def test_filling_writes_and_reads_nothing() -> None:
    assert work("aten::fill_", T((8, 8), BF16), 0)[:2] == (0, 128)


def test_reading_a_number_crosses_the_link_to_the_host() -> None:
    done = work("aten::_local_scalar_dense", T((), "bool"))
    assert (done.nbytes, done.unit) == (1, LINK)


def test_cat_is_modelled_where_types_of_lists_are_known() -> None:
    known = TensorList([TensorInput((2, 3), (3, 1), "float")] * 2)
    assert work_of("aten::cat", Inputs([known, 0])).nbytes == 2 * 2 * 6 * 4
    with pytest.raises(NotModelled, match="element types"):
        work_of(
            "aten::cat",
            Inputs.from_json(b'[["", "0"], ["TensorList", "Scalar"], [[[3, 1]], []], [[[2, 3]], []]]'),
        )


def test_the_largest_are_picked_from_what_is_read_once() -> None:
    done = work("aten::topk", T((64, 1000)), 5, -1, True, True)
    assert done.nbytes == 4 * 64_000 + 64 * 5 * (4 + 8)


def test_sorting_writes_values_and_indices() -> None:
    assert work("aten::sort", T((64, 1000)), -1, False).nbytes == 64_000 * (4 + 4 + 8)


def test_values_put_by_index_are_read_and_written() -> None:
    assert work("aten::index_put_", T((1000, 16)), None, T((10, 16)), False).nbytes == 4 * 2 * 160


def test_padding_reads_the_input_and_writes_the_larger_result() -> None:
    done = work("aten::constant_pad_nd", T((2, 3, 4)), [1, 1, 0, 2], 0.0)
    assert (done.flop, done.nbytes) == (0, 4 * (24 + 2 * 5 * 6))
    with pytest.raises(NotModelled):
        work("aten::constant_pad_nd", T((2, 3)), [-9, 1], 0.0)


def test_enlarged_images_have_the_size_or_the_factors_that_were_passed() -> None:
    expected = 4 * (2 * 3 * 8 * 8 + 2 * 3 * 16 * 16)
    assert work("aten::upsample_nearest2d", T((2, 3, 8, 8)), [16, 16], None).nbytes == expected
    assert work("aten::upsample_nearest2d", T((2, 3, 8, 8)), None, [2.0, 2.0]).nbytes == expected
    with pytest.raises(NotModelled):
        work("aten::upsample_nearest2d", T((2, 3, 8, 8)), None, None)


def test_repeated_tensors_are_read_once_and_written_as_often_as_they_are_asked_for() -> None:
    assert work("aten::repeat", T((2, 3)), [4, 1, 2]).nbytes == 4 * (6 + 48)
    assert work("aten::flip", T((2, 3)), [0]).nbytes == 4 * 12
