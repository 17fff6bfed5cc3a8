"""Inputs by caller: columns of events and the recorder's descriptions in, inputs as torch's own code gives them out.

A number or an option that people leave out reaches an op in one form, what torch's own ops and derivatives pass on in another:
`x * 2` makes a tensor of the 2, a derivative that doubles does not. Which it was is told by the event around a call, so it is looked
at after the stop. Knows ops by name only.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from mindtorch_prof.trace import NODE, OP
from mindtorch_prof.tree import thread_slices

from ... import _dtype
from ..._codegen import described
from .op_inputs import as_torch_shows, number_of, seen_inside

_CONTIGUOUS, _PRESERVE = 0, 1  # torch's numbers of memory formats
_SIZED = re.compile("pad|pool|pixel_|solve_triangular")  # what gives its output a size and says how
_OPTIONS = ("dtype", "layout", "device", "pin_memory")
_OWN_NODES = re.compile(r"torch::autograd::\w+$|\w+Backward\d+$")

# views whose callers leave out where the view begins
_WHOLE = frozenset(
    "expand unsqueeze transpose permute squeeze unfold transpose_ unsqueeze_ squeeze_ t abs".split()
)
# what hands a number on as the tensor that was made of it
_BOXED = frozenset(
    "MulBackward0 DivBackward0 divide divide_ true_divide true_divide_ multiply multiply_ subtract subtract_".split()
)
# what passes its options on as it got them; the second also says which dtype it found
_PASSING = frozenset(
    "zeros rand randn eye normal ones_like full_like rand_like randn_like randint_like new_zeros new_ones new_full".split()
)
_DECIDING = frozenset(
    "ones full linspace logspace randint randperm hann_window hamming_window blackman_window bartlett_window kaiser_window"
    .split()
)  # fmt: skip
# who is given them
_TAKING = ("empty", "empty_like", "new_empty", "empty_strided")
# what looks its options up in a tensor before it passes them on
_LOOKING = frozenset("empty_like zeros_like new_empty new_empty_strided _to_copy clone".split())
# ops that ask for a dtype and nothing more
_TERSE = frozenset(
    "upsample_bicubic2d upsample_linear1d upsample_nearest2d upsample_bilinear2d upsample_nearest1d upsample_trilinear3d "
    "upsample_nearest3d hardtanh_backward hardswish_backward hardswish logit searchsorted bucketize bincount histc histogram "
    "cosine_similarity __lshift__ __rshift__"
    .split()
)  # fmt: skip


def inputs_by_caller(
    names: tuple[str, ...],
    name: np.ndarray,
    kind: np.ndarray,
    thread: np.ndarray,
    end_ns: np.ndarray,
    inputs: np.ndarray,
    shown: Sequence[tuple[Any, tuple]],
    descriptions: Sequence[tuple],
) -> tuple[np.ndarray, list[tuple[Any, tuple]]]:
    """By event its inputs, and the table of them, with what torch shows for calls by its own ops and nodes.

    `names` to `inputs` are columns of a trace. `shown`: (op, arguments as torch shows them to users), `descriptions`: the recorder's own,
    both by index of `inputs`.
    """
    table = list(shown)
    ruled = np.array([_ruled(op, description) for (op, _), description in zip(table, descriptions)] + [False])
    if not ruled.any():
        return inputs, table
    rows = np.flatnonzero(ruled[inputs])
    native = np.array([_OWN_NODES.match(text) is not None for text in names])
    calls = (kind == OP) | ((kind == NODE) & native[name])
    rows, callers = _callers(thread, end_ns, rows, calls)
    if not len(rows):
        return inputs, table
    inputs = inputs.copy()
    made: dict[tuple[int, int, int], int] = {}
    given, caller_name, count = inputs[rows].astype(np.int64), name[callers], len(names)
    for _ in range(4):  # what a caller passes on it was given by its own
        above = inputs[callers]
        span = len(table) + 1
        keys, place = np.unique((given * span + above + 1) * count + caller_name, return_inverse=True)
        found = np.empty(len(keys), np.int32)
        for number, key in enumerate(keys.tolist()):
            key, called_from = divmod(key, count)
            index, outer = divmod(key, span)
            known = made.get((index, outer, called_from))
            if known is None:
                op = table[index][0]
                caller = names[called_from].removeprefix("aten::")
                worded = _worded(
                    op, described(op, descriptions[index]), caller, table[outer - 1] if outer else None
                )
                known = index
                if worded != table[index][1]:
                    known = len(table)
                    table.append((op, worded))
                made[index, outer, called_from] = known
            found[number] = known
        new = found[place.reshape(-1)]
        if (new == inputs[rows]).all():
            break
        inputs[rows] = new
    return inputs, table


def _ruled(op: Any, description: tuple) -> bool:
    """Whether a caller may change what is shown."""
    if op is None:
        return False
    if op.name in ("as_strided", "as_strided_", "sum", "resize_") or any(
        a.name == "pin_memory" for a in op.schema.arguments
    ):
        return True
    return op.numbers and any(value.__class__ is tuple and value[:1] in _KINDS for value in description[2:3])


_KINDS = ((int,), (float,), (bool,), (complex,))


def _callers(
    thread: np.ndarray, end: np.ndarray, rows: np.ndarray, calls: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Of `rows` those that stand directly inside a row of `calls`, and the rows they stand in."""
    inside = np.zeros(len(rows), bool)
    for first, last in thread_slices(thread):
        until = np.maximum.accumulate(np.where(calls[first:last], end[first:last], 0))
        low, high = np.searchsorted(rows, (first + 1, last))
        inside[low:high] = until[rows[low:high] - 1 - first] >= end[rows[low:high]]
    rows = rows[inside]
    around = rows - 1
    while len(on := np.flatnonzero(end[around] < end[rows])):
        around[on] -= 1
    direct = calls[around]
    return rows[direct], around[direct]


def _worded(op: Any, description: tuple, caller: str, outer: Any) -> tuple:
    """What is shown of a call from inside `caller`; `outer`: the (op, description) of that, if it is an op."""
    if op.numbers:
        return (as_torch_shows if caller in _BOXED else seen_inside)(op, description)
    values = list(seen_inside(op, description))
    places = {
        argument.name: place for place, argument in enumerate(op.schema.arguments) if place < len(values)
    }
    above = {} if outer is None or outer[0] is None else _by_name(*outer)
    if op.name in ("as_strided", "as_strided_"):
        if caller in _WHOLE:
            values[3] = None
    elif op.name == "resize_":
        if _SIZED.search(caller):
            values[2] = _CONTIGUOUS
    elif op.name == "sum":
        if caller == "mean" and "dim" in places:
            _sum_of_mean(values, places, above)
    elif "pin_memory" in places:
        _options(op, values, places, caller, above)
    return tuple(values)


def _by_name(op: Any, description: tuple) -> dict[str, Any]:
    return {argument.name: value for argument, value in zip(op.schema.arguments, description)}


def _sum_of_mean(values: list, places: dict[str, int], above: dict[str, Any]) -> None:
    if values[places["dim"]] is None:
        values[places["dim"]] = ()
    if values[places["dtype"]] is None:
        values[places["dtype"]] = above.get("dtype") or _dtype_of(above)


def _numbered(dtype: Any) -> int:
    return number_of(str(dtype))


def _dtype_of(values: dict[str, Any]) -> Any:
    """torch's number of the dtype of the first tensor."""
    tensor = values.get("self")
    return None if tensor.__class__ is not tuple else _numbered(_dtype.BY_NUM[tensor[2]])


def _options(op: Any, values: list, places: dict[str, int], caller: str, above: dict[str, Any]) -> None:
    """dtype, layout, device and pinning of what makes a tensor."""
    own = {name: values[places[name]] for name in _OPTIONS if name in places}
    like = values[0] if "self" in places else None
    dtype = own.get("dtype")
    if (
        dtype is None
        and op.name == "arange"
        and all(value.__class__ is int for value in values[: places["dtype"]])
    ):
        dtype = _numbered(_dtype.int64)
    elif dtype is None:
        dtype = (
            _numbered(_dtype.BY_NUM[like[2]]) if like.__class__ is tuple else _numbered(_dtype.Default.dtype)
        )
    layout: Any = 0
    pinned = None
    if op.name in _TAKING and "pin_memory" in above and (caller in _PASSING or caller in _DECIDING):
        layout, pinned = above.get("layout"), above.get("pin_memory")
        if caller in _PASSING:
            dtype = above.get("dtype")
        _pass_format(values, places, above)
    elif caller in _LOOKING:
        pinned = False if caller == "_to_copy" else above.get("pin_memory")
        if caller == "clone" and op.name == "empty_like" and above.get("memory_format") in (None, _PRESERVE):
            dtype = layout = values[places["memory_format"]] = None
            above = {}
        _pass_format(values, places, above)
    elif caller == "to":
        dtype, layout = above.get("dtype"), above.get("layout")
    elif op.name.endswith("_like") or (caller, op.name) in _BARE:
        dtype, layout = own.get("dtype"), None
        if caller == "binary_cross_entropy_with_logits" and values[places["memory_format"]] is None:
            values[places["memory_format"]] = _PRESERVE
    elif caller in _LAID_OUT and op.name == "empty":
        layout = 0 if caller == "constant_pad_nd" else None
        values[places["memory_format"]] = _CONTIGUOUS
    elif caller in _TERSE or (caller, op.name) == ("repeat", "arange"):
        layout = None
    for name, value in zip(_OPTIONS, (dtype, layout, None, pinned)):
        if name in places:
            values[places[name]] = value


_LAID_OUT = frozenset(("searchsorted", "bucketize", "hardswish", "logit", "constant_pad_nd"))
_BARE = frozenset(
    (
        ("gather_backward", "new_zeros"),
        ("bernoulli_", "to"),
        ("torch::autograd::CopySlices", "new_empty_strided"),
        ("feature_dropout", "new_empty"),
        ("feature_alpha_dropout", "new_empty"),
        ("linalg_qr", "new_empty"),
    )
)


def _pass_format(values: list, places: dict[str, int], above: dict[str, Any]) -> None:
    if (
        "memory_format" in places
        and above.get("memory_format") is not None
        and values[places["memory_format"]] is None
    ):
        values[places["memory_format"]] = above["memory_format"]
