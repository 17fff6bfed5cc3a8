"""Elementwise ops: one operation per element of the result; types are promoted as torch does."""

from __future__ import annotations

import pytest
from roofline_inputs import T, work

BF16, LONG = "c10::BFloat16", "long int"
X = T((16, 559, 1024), BF16)
E = 16 * 559 * 1024


@pytest.mark.parametrize(
    ("name", "arguments", "nbytes"),
    [
        ("aten::silu", (X,), 4 * E),
        ("aten::mul", (X, X), 6 * E),
        ("aten::mul", (X, T((1024,), BF16)), 4 * E + 2 * 1024),
        ("aten::mul", (X, T((16, 559, 1024))), (2 + 4 + 4) * E),  # bfloat16 and float32 give float32
        ("aten::mul", (X, T((), "double")), 4 * E + 8),  # a number does not change the type
        ("aten::mul", (T((4,), LONG), 2.5), 4 * (8 + 4)),  # whole numbers and a fraction give float32
        ("aten::div", (T((4,), LONG), T((4,), LONG)), 4 * (8 + 8 + 4)),
        ("aten::add_", (X, X, 1), 6 * E),
        ("aten::add_", (X, T((16, 559, 1024)), 1), (2 + 4 + 2) * E),  # written in place
        ("aten::mul", (T((9,)), T((), "double"), T((9,))), 4 * 18 + 8),  # the third is where the result goes
        ("aten::clamp_min", (T((9,)), 0, T((9,))), 4 * 18),
        ("aten::clamp_min_", (X, 0), 4 * E),
        ("aten::eq", (T((4,), LONG), 1), 4 * (8 + 1)),
        ("aten::where", (T((4,), "bool"), T((4,)), T((4,))), 4 * (1 + 4 + 4 + 4)),
        ("aten::threshold_backward", (X, X, 0), 6 * E),
        ("aten::copy_", (T((16, 559, 1024)), X, False), 6 * E),
        ("aten::_to_copy", (X, 6, None, None, None, False, None), 6 * E),
        ("aten::native_dropout", (X, 0.1, True), (2 + 2 + 1) * E),
    ],
)
def test_bytes(name: str, arguments: tuple[T, ...], nbytes: int) -> None:
    assert work(name, *arguments).nbytes == nbytes


def test_operations_are_counted_on_the_broadcast_shape() -> None:
    assert work("aten::add", T((8, 1)), T((1, 9)), 1).flop == 72


def test_an_expanded_input_is_read_once() -> None:
    expanded = T((8, 1024), BF16, (0, 1))
    assert work("aten::silu", expanded).nbytes == 2 * (1024 + 8 * 1024)
