"""Inputs of recorded ops: the recorder's descriptions in, the engine's `Inputs` out, also those that torch shows for its own calls.

torch shows other inputs for an op that the user calls than for one that its own ops or derivatives call. In `x * 2` the 2 is shown as
a tensor, in a derivative that doubles as a number; a factory that the user calls has no dtype, the `empty` inside it may have one. Who
called is found after the stop (`mindtorch_prof.sealing.inputs_by_caller`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson

from mindtorch_prof.inputs import Inputs
from mindtorch_prof.sealing.raw import VARIANTS

from ... import _dispatch, _dtype
from ..._codegen import described
from ..record_function import KeywordValues
from .op_inputs import as_torch_passes, as_torch_shows, number_of, op_inputs, range_inputs

_OPTIONS = ("dtype", "layout", "device", "pin_memory")

# callers that pass a number on as the tensor that was made of it
_PASSING_TENSORS = frozenset(
    "MulBackward0 DivBackward0 divide divide_ true_divide true_divide_ multiply multiply_ subtract subtract_".split()
)
# factories that pass their options on to `_ALLOCATING` ops as they got them
_PASSING_OPTIONS = frozenset(("zeros", "new_zeros", "new_ones", "new_full"))
# the same, but with the dtype filled in
_FILLING_DTYPE = frozenset(
    "ones full hann_window hamming_window blackman_window bartlett_window kaiser_window".split()
)
_ALLOCATING = ("empty", "empty_like", "new_empty", "empty_strided")
# ops that take the options of a tensor and pass them on
_OPTIONS_OF_TENSOR = frozenset(("new_empty", "new_empty_strided"))


class LiveInputs:
    """The inputs of a recording in this process, by number, with the rules for calls by torch's own ops and nodes."""

    def __init__(self) -> None:
        self.shown: list[tuple[Any, tuple]] = []  # by number: the op (None: a range) and its arguments
        self.inputs: list[Inputs] = []
        self._described: list[tuple] = []
        self._depends: list[bool] = []
        self._variants: list[tuple[Any, tuple]] = []
        self._variant_inputs: list[Inputs] = []
        # (inputs, the caller, its inputs) -> the number of the inputs that are shown
        self.known: dict[tuple[int, str, int], int] = {}

    def add(self, descriptions: Sequence[tuple]) -> None:
        """Add the recorder's descriptions that have come since the last call; they are numbered in order."""
        for flat in descriptions[len(self.shown) :]:
            op = None if flat[0] < 0 else _dispatch.BY_UID[flat[0]]
            described_as = flat[1:] if op is None else described(op, flat)
            values = described_as if op is None else as_torch_shows(op, described_as)
            self._described.append(described_as)
            self._depends.append(_depends_on_caller(op, flat))
            self.inputs.append(_as_inputs(op, values))
            self.shown.append((op, values))

    def depends_on_caller(self) -> list[bool]:
        """By number: whether the shown inputs depend on the caller."""
        return self._depends

    def variants(self) -> list[Inputs]:
        """The inputs that are shown for calls by torch's own code only."""
        return self._variant_inputs

    def op_and_arguments(self, number: int) -> tuple[Any, tuple]:
        """The op, None for a range, and the arguments with this number."""
        return self._variants[number - VARIANTS] if number >= VARIANTS else self.shown[number]

    def shown_for(self, inputs: int, caller: str, callers_inputs: int) -> int:
        """The number of the inputs that are shown for a call by an op or a node."""
        key = (inputs, caller, callers_inputs)
        number = self.known.get(key)
        if number is None:
            op, values = self.shown[inputs]
            outer = self.op_and_arguments(callers_inputs) if callers_inputs >= 0 else None
            passed = _passed_by(op, self._described[inputs], caller.removeprefix("aten::"), outer)
            number = inputs
            if passed != values:
                number = VARIANTS + len(self._variants)
                self._variants.append((op, passed))
                self._variant_inputs.append(_as_inputs(op, passed))
            self.known[key] = number
        return number


def _as_inputs(op: Any, values: tuple) -> Inputs:
    if op is not None:
        return op_inputs(op, values)
    # the keyword values of a range, if any, are the last of its recorded values
    if values and values[-1].__class__ is KeywordValues:
        return range_inputs(values[:-1], orjson.loads(values[-1].encode()))
    return range_inputs(values, None)


def _depends_on_caller(op: Any, description: tuple) -> bool:
    """Whether the shown inputs depend on the caller."""
    if op is None:
        return False
    if any(a.name == "pin_memory" for a in op.schema.arguments):
        return True
    return op.numbers and any(
        value.__class__ is tuple and value[:1] in _NUMBER_CLASSES for value in description[2:3]
    )


_NUMBER_CLASSES = ((int,), (float,), (bool,), (complex,))


def _passed_by(op: Any, description: tuple, caller: str, outer: Any) -> tuple:
    """The arguments that `caller` passes to an op. `outer`: (op, arguments) of the caller, if it is an op."""
    if op.numbers:
        return (as_torch_shows if caller in _PASSING_TENSORS else as_torch_passes)(op, description)
    values = list(as_torch_passes(op, description))
    places = {
        argument.name: place for place, argument in enumerate(op.schema.arguments) if place < len(values)
    }
    above = {} if outer is None or outer[0] is None else _by_name(*outer)
    if "pin_memory" in places:
        _fill_options(op, values, places, caller, above)
    return tuple(values)


def _by_name(op: Any, description: tuple) -> dict[str, Any]:
    return {argument.name: value for argument, value in zip(op.schema.arguments, description)}


def _dtype_number(dtype: Any) -> int:
    return number_of(str(dtype))


def _fill_options(op: Any, values: list, places: dict[str, int], caller: str, above: dict[str, Any]) -> None:
    """Fill in the dtype, layout, device and pinning of an op that creates a tensor. `above`: the caller's arguments."""
    own = {name: values[places[name]] for name in _OPTIONS if name in places}
    like = values[0] if "self" in places else None
    dtype = own.get("dtype")
    if (
        dtype is None
        and op.name == "arange"
        and all(value.__class__ is int for value in values[: places["dtype"]])
    ):
        dtype = _dtype_number(_dtype.int64)
    elif dtype is None:
        dtype = _dtype_number(_dtype.BY_NUM[like[2]] if like.__class__ is tuple else _dtype.Default.dtype)
    layout: Any = 0
    pinned = None
    if (
        op.name in _ALLOCATING
        and "pin_memory" in above
        and (caller in _PASSING_OPTIONS or caller in _FILLING_DTYPE)
    ):
        layout, pinned = above.get("layout"), above.get("pin_memory")
        if caller in _PASSING_OPTIONS:
            dtype = above.get("dtype")
        _pass_format(values, places, above)
    elif caller in _OPTIONS_OF_TENSOR:
        pinned = above.get("pin_memory")
        _pass_format(values, places, above)
    elif caller == "to":
        dtype, layout = above.get("dtype"), above.get("layout")
    elif op.name.endswith("_like") or (caller, op.name) in _WITHOUT_OPTIONS:
        dtype, layout = own.get("dtype"), None
    elif caller == "cosine_similarity":  # a dtype and no layout
        layout = None
    for name, value in zip(_OPTIONS, (dtype, layout, None, pinned)):
        if name in places:
            values[places[name]] = value


# (caller, op): called without any option
_WITHOUT_OPTIONS = frozenset(
    (
        ("gather_backward", "new_zeros"),
        ("torch::autograd::CopySlices", "new_empty_strided"),
        ("feature_dropout", "new_empty"),
        ("feature_alpha_dropout", "new_empty"),
    )
)


def _pass_format(values: list, places: dict[str, int], above: dict[str, Any]) -> None:
    """Fill in the caller's memory format."""
    if (
        "memory_format" in places
        and above.get("memory_format") is not None
        and values[places["memory_format"]] is None
    ):
        values[places["memory_format"]] = above["memory_format"]
