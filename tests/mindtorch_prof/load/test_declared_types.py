"""Values of files beside the types that the classes of the data model declare."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
from trace_builder import make_trace

from mindtorch_prof.load.declared_types import _declared, check_fields
from mindtorch_prof.native_file import CLASSES
from mindtorch_prof.trace import Trace


def a_trace() -> Trace:
    return make_trace(("aten::add", 0, 900))


def test_a_trace_that_was_recorded_fits() -> None:
    check_fields(a_trace())


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("window_ns", ("a", "b")),
        ("window_ns", (0, 1, 2)),
        ("window_ns", [0, 1]),
        ("origin_ns", 1.5),
        ("origin_ns", 2**63),
        ("synthetic", 2.0),
        ("start_ns", np.zeros(1)),
        ("start_ns", None),
        ("names", ("aten::add", None)),
        ("stacks", "text"),
        ("input_table", (7,)),
        ("health", None),
    ],
)
def test_a_value_of_another_type_is_named_with_the_type_that_is_expected(field: str, value: Any) -> None:
    declared = {each.name: each.type for each in dataclasses.fields(Trace)}[field]
    with pytest.raises(ValueError, match=f"^{field} is no ") as raised:
        check_fields(dataclasses.replace(a_trace(), **{field: value}))
    assert str(raised.value).endswith(str(declared))


@pytest.mark.parametrize(
    ("field", "value"),
    [("threads", {1: (2,)}), ("threads", {"a": (2, "b")}), ("rank", "0"), ("metadata", []), ("device", 3)],
)
def test_values_of_settings_are_checked_too(field: str, value: Any) -> None:
    trace = a_trace()
    settings = dataclasses.replace(trace.settings, **{field: value})
    with pytest.raises(ValueError, match=rf"^settings\.{field} is no "):
        check_fields(dataclasses.replace(trace, settings=settings))


def test_absent_values_fit_where_they_are_declared() -> None:
    trace = a_trace()
    check_fields(
        dataclasses.replace(trace, synthetic=None, settings=dataclasses.replace(trace.settings, rank=None))
    )


@pytest.mark.parametrize("kind", CLASSES.values(), ids=list(CLASSES))
def test_the_types_of_all_classes_of_native_files_are_known(kind: type) -> None:
    assert len(_declared(kind)) == len(dataclasses.fields(kind))
