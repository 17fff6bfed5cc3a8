"""Memory layouts of results: strides against torch, the compiled rule against its plain twin."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import recorded_cases

import mindtorch_v2 as torch
from mindtorch_v2 import _tensor_slots
from mindtorch_v2._ops import _layout

needs_compiled_core = pytest.mark.skipif(
    _tensor_slots.laid_out is None, reason="the compiled core is not there"
)


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


@needs_compiled_core
def test_the_compiled_rule_lays_results_out_as_the_plain_one() -> None:
    generator = np.random.default_rng(0)
    for shape in ((2, 3), (2, 3, 4), (3, 1, 4), (2, 3, 4, 5), (2, 1, 3, 1, 4)):
        for _, count in itertools.product(range(200), (1, 2, 3)):
            operands = [_random_layouts(generator, shape) for _ in range(count)]
            result = np.ones(shape, np.float64)
            compiled, plain = _tensor_slots.laid_out(result, *operands), _layout._laid_out(result, *operands)
            assert compiled.strides == plain.strides
            np.testing.assert_array_equal(compiled, plain)


@needs_compiled_core
def test_the_compiled_rule_refuses_other_numbers_of_operands() -> None:
    for arguments in ([], [np.ones(2)] * 6):
        with pytest.raises(TypeError, match="a result and up to four operands"):
            _tensor_slots.laid_out(*arguments)


def test_a_result_that_lies_right_is_not_copied() -> None:
    result, operand = np.ones((3, 4)).T, np.ones((3, 4)).T
    assert _layout.laid_out(result, operand) is result


def test_an_operand_that_does_not_broadcast_to_the_result_decides_nothing() -> None:
    result = np.ones((2, 3))
    assert _layout.laid_out(result, np.ones((5, 2)).T) is result


SHAPES = ((180, 190), (3, 110, 101), (4, 16, 32, 17), (2, 250, 1, 70))


@needs_compiled_core
@pytest.mark.parametrize("dtype", ["bool", "float16", "float32", "float64", "complex128"])
def test_compiled_copies_between_layouts_are_those_of_the_plain_twin(dtype: str) -> None:
    generator = np.random.default_rng(0)
    crossed = 0
    for shape in SHAPES:
        for _ in range(20):
            to = _random_layouts(generator, shape).astype(dtype, "K")
            values = _random_layouts(generator, shape).astype(dtype, "K")
            values = np.broadcast_to(values, shape) if generator.integers(2) else values
            if values.flags.writeable:
                values[...] = generator.integers(0, 9, values.shape)
            assert _tensor_slots.unlike(to, values) == _layout._unlike(to, values)
            if to.shape != values.shape:
                continue
            twin = np.copy(to, "K")
            compiled, plain = _tensor_slots.copy_across(to, values), _layout._copy_across(twin, values)
            assert compiled == plain
            np.testing.assert_array_equal(to, twin)
            np.testing.assert_array_equal(to, values if plain else to)
            crossed += plain
    assert crossed > 3


@needs_compiled_core
def test_compiled_copies_between_layouts_refuse_what_they_cannot_copy() -> None:
    memory = np.zeros((200, 200), np.float32)
    assert not _tensor_slots.copy_across(memory, memory.T)  # one memory
    assert not _tensor_slots.copy_across(memory, np.ones((200, 200)).T)  # another dtype
    assert not _tensor_slots.copy_across(memory, np.ones((200, 200), np.float32))  # one order
    other = np.ones((200, 200), np.float32)
    other.flags.writeable = False
    assert not _tensor_slots.copy_across(other, memory.T)
    for arguments in ([memory], [memory, [1.0]]):
        with pytest.raises(TypeError, match="takes 2 arrays"):
            _tensor_slots.copy_across(*arguments)
        with pytest.raises(TypeError, match="takes 2 arrays"):
            _tensor_slots.unlike(*arguments)


@needs_compiled_core
def test_compiled_strides_in_elements_are_those_of_the_plain_twin() -> None:
    generator = np.random.default_rng(0)
    for shape in ((), (0,), (1, 1), (2, 3), (2, 0, 4), (3, 1, 4), (2, 1, 3, 1)):
        for _, is_fresh in itertools.product(range(50), (True, False)):
            array = _random_layouts(generator, shape) if all(shape) and shape else np.zeros(shape)
            array = array[..., ::-1] if array.ndim and generator.integers(4) == 0 else array
            array = array[:, None] if array.ndim and generator.integers(4) == 0 else array
            expected = _tensor_slots.strides_in_elements(array, is_fresh)
            assert _tensor_slots.strides(array, is_fresh) == expected
    for arguments in ([], [np.ones(2)], [np.ones(2), 1], [[1], True]):
        with pytest.raises(TypeError, match="strides"):
            _tensor_slots.strides(*arguments)


def test_large_operands_of_different_layouts_give_the_values_and_strides_of_small_ones() -> None:
    for shape, order in (((150, 170), (1, 0)), ((8, 12, 10, 20), (0, 3, 1, 2))):
        x = torch.randn([shape[d] for d in order]).permute(tuple(np.argsort(order).tolist()))
        y = torch.randn(shape)
        for a, b in ((x, y), (y, x)):
            for call in (torch.add, torch.mul, torch.atan2, torch.lt, torch.maximum):
                result = call(a, b)
                assert torch.equal(result, call(a.contiguous(), b.contiguous()))
                assert result.stride() == a.stride()
        assert torch.equal(x.clone().sub_(y), x.contiguous() - y)
