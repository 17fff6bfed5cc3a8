"""Tests of mindtorch_prof.sealing.inputs_by_caller: who called decides which inputs are shown."""

from __future__ import annotations

import numpy as np

from mindtorch_prof.inputs import Inputs
from mindtorch_prof.sealing.inputs_by_caller import inputs_by_caller
from mindtorch_prof.sealing.raw import VARIANTS
from mindtorch_prof.trace import ANNOTATION, NODE, OP


class Rules:
    def __init__(self) -> None:
        self.asked: list[tuple[int, str, int]] = []

    def depends_on_caller(self) -> list[bool]:
        return [False, True]

    def shown_for(self, inputs: int, caller: str, callers_inputs: int) -> int:
        self.asked.append((inputs, caller, callers_inputs))
        return VARIANTS

    def variants(self) -> list[Inputs]:
        return [Inputs([])]


def shown(
    kinds: list[int], names: tuple[str, ...], inputs: list[int], ends: list[int]
) -> tuple[list[int], Rules]:
    rules, count = Rules(), len(kinds)
    answer = inputs_by_caller(
        names,
        np.arange(count),
        np.array(kinds),
        np.zeros(count, np.int64),
        np.array(ends),
        np.array(inputs, np.int32),
        rules,
    )
    return answer.tolist(), rules


def test_a_call_by_an_op_shows_what_the_rules_say() -> None:
    answer, rules = shown([OP, OP, OP], ("aten::outer", "aten::inner", "aten::next"), [0, 1, 1], [10, 5, 20])
    assert answer == [0, VARIANTS, 1]
    assert set(rules.asked) == {(1, "aten::outer", 0)}


def test_a_call_inside_an_annotation_is_the_users() -> None:
    answer, rules = shown([ANNOTATION, OP], ("step", "aten::inner"), [-1, 1], [10, 5])
    assert (answer, rules.asked) == ([-1, 1], [])


def test_only_nodes_of_torch_call_ops_themselves() -> None:
    assert shown([NODE, OP], ("MulBackward0", "aten::mul"), [-1, 1], [10, 5])[0] == [-1, VARIANTS]
    assert shown([NODE, OP], ("MyFunctionBackward", "aten::mul"), [-1, 1], [10, 5])[0] == [-1, 1]


def test_inputs_of_a_caller_that_are_variants_themselves_are_passed_on() -> None:
    answer, rules = shown([OP, OP, OP], ("aten::a", "aten::b", "aten::c"), [0, 1, 1], [30, 20, 10])
    assert answer == [0, VARIANTS, VARIANTS]
    assert (1, "aten::b", VARIANTS) in rules.asked
