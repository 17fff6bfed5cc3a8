"""Inputs of events in the report: one line per argument."""

from __future__ import annotations

from trace_builder import make_trace

from mindtorch_prof.export.html.inputs import input_texts
from mindtorch_prof.inputs import Inputs, TensorInput


def test_tensors_are_shown_by_type_and_shape_and_numbers_by_value() -> None:
    inputs = Inputs((TensorInput((2, 3), (3, 1), "float"), 2.5, (1, 2), None))
    trace = make_trace(input_table=(inputs,))
    assert input_texts(trace) == [["float [2, 3]", "2.5", "[1, 2]", "None"]]
