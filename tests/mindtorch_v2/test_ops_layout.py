"""Memory layouts of results: strides against torch, the compiled rule against its plain twin."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import recorded_cases

from mindtorch_v2._ops import _core, _layout


@pytest.mark.parametrize(("module", "case"), recorded_cases.recorded("layout_cases"))
def test_a_case_shows_the_strides_of_torch(module: str, case: str) -> None:
    recorded_cases.check(module, case)


def _random_layouts(generator: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """An array of this shape or one that broadcasts to it: permuted, with gaps, with repeats."""
    order = generator.permutation(len(shape))
    gaps = generator.integers(1, 3, len(shape))
    memory = np.zeros([shape[d] * gap for d, gap in zip(order, gaps)], np.float32)
    array = memory[tuple([slice(None, None, gap) for gap in gaps])].transpose(np.argsort(order))
    for d in range(len(shape)):
        kind = generator.integers(0, 6)
        if kind == 0:
            array = array.take([0], d)
        elif kind == 1:
            array = np.broadcast_to(array.take([0], d), array.shape)
    return array


@pytest.mark.skipif(_core.laid_out is None, reason="the compiled core is not there")
def test_the_compiled_rule_lays_results_out_as_the_plain_one() -> None:
    generator = np.random.default_rng(0)
    for shape in ((2, 3), (2, 3, 4), (3, 1, 4), (2, 3, 4, 5), (2, 1, 3, 1, 4)):
        for _, count in itertools.product(range(200), (1, 2, 3)):
            operands = [_random_layouts(generator, shape) for _ in range(count)]
            result = np.ones(shape, np.float64)
            compiled, plain = _core.laid_out(result, *operands), _layout._laid_out(result, *operands)
            assert compiled.strides == plain.strides
            np.testing.assert_array_equal(compiled, plain)


@pytest.mark.skipif(_core.laid_out is None, reason="the compiled core is not there")
def test_the_compiled_rule_refuses_a_call_without_operands() -> None:
    with pytest.raises(TypeError, match="one to four operands"):
        _core.laid_out(np.ones(2))


def test_a_result_that_lies_right_is_not_copied() -> None:
    result, operand = np.ones((3, 4)).T, np.ones((3, 4)).T
    assert _layout.laid_out(result, operand) is result


def test_an_operand_that_does_not_broadcast_to_the_result_decides_nothing() -> None:
    result = np.ones((2, 3))
    assert _layout.laid_out(result, np.ones((5, 2)).T) is result
