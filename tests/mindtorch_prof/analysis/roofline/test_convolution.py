"""Convolutions: bytes, output masks, biases, argument orders. test_models compares FLOP with torch's."""

from __future__ import annotations

from math import prod

import pytest
from roofline_inputs import T, work

from mindtorch_prof.analysis.roofline.work import NotModelled

BF16 = "c10::BFloat16"
X, W, Y = (10, 3, 224, 224), (64, 3, 7, 7), (10, 64, 112, 112)
FORWARD = 2 * prod(Y) * prod(W[1:])
REST = ([2, 2], [3, 3], [1, 1])  # stride, padding, dilation


def test_input_weight_and_result_are_moved_once() -> None:
    done = work("aten::convolution", T(X, BF16), T(W, BF16), None, *REST, False, [0, 0], 1)
    assert (done.flop, done.nbytes) == (FORWARD, 2 * (prod(X) + prod(W) + prod(Y)))


def test_a_bias_adds_one_operation_per_element() -> None:
    done = work("aten::convolution", T(X, BF16), T(W, BF16), T((64,), BF16), *REST, False, [0, 0], 1)
    assert (done.flop, done.nbytes) == (FORWARD + prod(Y), 2 * (prod(X) + prod(W) + prod(Y) + 64))


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("aten::conv2d", (None, [2, 2], [3, 3], [1, 1], 1)),
        ("aten::_convolution", (None, *REST, False, [0, 0], 1, False, False, True, True)),
        ("aten::cudnn_convolution", ([3, 3], [2, 2], [1, 1], 1, False, False, True)),
        ("aten::miopen_convolution", (None, [3, 3], [2, 2], [1, 1], 1, False, False)),
        ("aten::cudnn_convolution_relu", (None, [2, 2], [3, 3], [1, 1], 1)),
    ],
)
def test_every_name_of_a_convolution_gives_the_same(name: str, arguments: tuple[object, ...]) -> None:
    expected = work("aten::convolution", T(X, BF16), T(W, BF16), None, *REST, False, [0, 0], 1)
    assert work(name, T(X, BF16), T(W, BF16), *arguments) == expected  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("mask", "flop", "elements"),
    [
        ([True, True, False], 2 * FORWARD, 2 * (prod(X) + prod(W) + prod(Y))),
        ([False, True, False], FORWARD, prod(X) + prod(W) + prod(Y)),
        ([False, True, True], FORWARD + prod(Y), prod(X) + prod(W) + 2 * prod(Y) + 64),
    ],
)
def test_only_the_gradients_that_are_asked_for_count(mask: list[bool], flop: int, elements: int) -> None:
    done = work(
        "aten::convolution_backward", T(Y, BF16), T(X, BF16), T(W, BF16), [64], *REST, False, [0, 0], 1, mask
    )
    assert (done.flop, done.nbytes) == (flop, 2 * elements)


def test_gradients_of_one_kind_have_ops_of_their_own_in_older_files() -> None:
    rest = ([3, 3], [2, 2], [1, 1], 1, False, False, True)
    of_input = work("aten::cudnn_convolution_backward_input", list(X), T(Y), T(W), *rest)
    of_weight = work("aten::cudnn_convolution_backward_weight", list(W), T(Y), T(X), *rest)
    assert of_input.flop == of_weight.flop == FORWARD
    assert of_input.nbytes == of_weight.nbytes == 4 * (prod(X) + prod(W) + prod(Y))


def test_padding_may_be_named() -> None:
    same = work("aten::conv2d", T((1, 4, 9, 9)), T((8, 4, 3, 3)), None, [1, 1], [1, 1], [1, 1], 1)
    assert same.flop == 2 * 8 * 81 * 36


def test_an_image_without_a_batch_is_one_image() -> None:
    one = work("aten::conv2d", T((4, 9, 9)), T((8, 4, 3, 3)), None, [1, 1], [1, 1], [1, 1], 1)
    assert one.flop == 2 * 8 * 81 * 36


def test_a_stride_that_a_file_does_not_show_is_not_guessed() -> None:
    with pytest.raises(NotModelled, match="not recorded"):
        work("aten::cudnn_convolution", T(X), T(W), T((), "GenericList"), T((), "GenericList"))
