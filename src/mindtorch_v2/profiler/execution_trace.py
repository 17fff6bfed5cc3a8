"""Execution traces: ops and ranges as they happen in, the nodes of a Chakra execution trace out, as torch writes them.

What happens is kept as numbers and short tuples; text is made when the file is written. Nothing kept holds a tensor: a tensor and
its memory are known by numbers that are given when they are first met and end with them.
"""

from __future__ import annotations

import functools
import itertools
import os
import re
import threading
import time
import weakref
from typing import IO, Any

import numpy as np
import orjson

from mindtorch_prof.trace import Trace
from mindtorch_prof.tree import thread_slices

from .. import _dispatch, _dtype, _overrides
from .. import _hooks as hooks
from .._graph import grad_state, storage_of
from .record.op_inputs import ELEMENT_NAMES, number_of
from .record_function import KeywordValues

SCHEMA = "1.1.1-chakra.0.0.4"
PROCESS = "[pytorch|profiler|execution_trace|process]"
THREAD = "[pytorch|profiler|execution_trace|thread]"
ENGINE = "autograd::engine::"

_BACKWARD, _USER = 1, 7  # scopes
_record_ids = itertools.count(1)  # one for every node of this process, in all traces
_thread_numbers = itertools.count(1)
_HIDDEN_MEMORY = (0, 0, 0, 0, "")  # of tensors whose memory is not one piece: sparse ones


class _Thread(threading.local):
    """The number of a thread; Python gives the identity of an ended one to the next."""

    def __init__(self) -> None:
        self.number = next(_thread_numbers)
        self.stacks: dict[int, _Stack] = {}


_here = _Thread()


class _Stack:
    """The open nodes of one thread in one trace: the node of the thread itself, then what is inside it."""

    __slots__ = ("number", "nodes", "ops")

    def __init__(self, number: int, root: int) -> None:
        self.number = number
        self.nodes = [root]
        self.ops: list[Any] = [None]  # the op of the node beside it, or None


class _Reference(weakref.ref):
    """A reference that knows the place of its object."""

    __slots__ = ("place",)
    place: int


class _Numbers:
    """Numbers of objects that live: the same for the same object, a new one where memory is used again."""

    def __init__(self, count: Any) -> None:
        self.count = count
        self.known: dict[int, tuple[int, Any]] = {}

    def __call__(self, thing: Any) -> int:
        place = id(thing)
        found = self.known.get(place)
        if found is not None and found[1]() is thing:
            return found[0]
        number = next(self.count)
        reference = _Reference(thing, self._forget)
        reference.place = place
        self.known[place] = (number, reference)
        return number

    def _forget(self, reference: Any) -> None:
        held = self.known.get(reference.place)
        if held is not None and held[1] is reference:
            del self.known[reference.place]


class _Tensor:
    """What a trace tells of a tensor."""

    __slots__ = ("place", "shape", "strides", "dtype")

    def __init__(self, place: tuple, shape: Any, strides: Any, dtype: str) -> None:
        self.place = place  # tensor, memory, offset, elements, bytes of one, device
        self.shape = shape
        self.strides = strides
        self.dtype = dtype


class _Node:
    """Something that has begun."""

    __slots__ = ("id", "name", "parent", "inputs", "record", "sequence", "scope", "thread", "forward", "schema",
                 "integers")  # fmt: skip


class ExecutionTrace:
    """One trace: records between `start` and `stop`, as often as wanted, and is written once."""

    def __init__(self, *, ranges_of_integers: bool = False, saved_ops: tuple[str, ...] = ()) -> None:
        self.time = time.strftime("%Y-%m-%d %H:%M:%S")
        self.started_ms = time.monotonic_ns() // 1_000_000
        self.ids = itertools.count(1)
        self.process = next(self.ids)
        self.tensors = _Numbers(self.ids)
        self.memories = _Numbers(self.ids)
        self.nodes: list[tuple] = []  # (node, outputs), in the order in which they ended
        self.stacks: dict[int, _Stack] = {}  # by identity of the thread
        self.ranges_of_integers = ranges_of_integers
        self.saved_ops = saved_ops  # the integers that go into these are kept, for `data`
        self.data: list[tuple[int, int, bytes]] = []  # node, number of the tensor among the inputs, bytes
        self.open: list[_Node] = []
        self.running = False
        self.window = 0  # how many nodes there were when recording began last

    # ------------------------------------------------------------------------------------------------ life

    def start(self) -> None:
        """Record from now on, on every thread."""
        if not self.running:
            self.running = True
            self.window = len(self.nodes)
            hooks.add_observer(self)

    def stop(self) -> None:
        """Record no more; what is open ends here."""
        if not self.running:
            return
        self.running = False
        hooks.remove_observer(self)
        for node in sorted(self.open, key=lambda node: -node.id):
            self.nodes.append((node, ()))
        self.open.clear()
        for stack in self.stacks.values():
            del stack.nodes[1:], stack.ops[1:]

    def wrap(self, recorder: Any, ranges: Any) -> tuple[Any, Any]:
        """The dispatcher's slots with this trace in them, around whoever else is there."""
        return _dispatch.Hook(self._seer(recorder)), _Ranges(self, ranges)

    # ------------------------------------------------------------------------------------------------ while it happens

    def _seer(self, recorder: Any) -> Any:
        begin, end, state = self._begin, self._end, grad_state

        def see(op: Any, *arguments: Any) -> Any:
            sequence = state.seq if state.enabled and op.sequenced else -1
            node = begin(op.qualified_name, 0, sequence, 0, op, arguments)
            result: Any = None
            try:
                if recorder is None:
                    result = op.run(*arguments)
                else:
                    result = recorder[op.uid](*arguments)
                return result
            finally:
                end(node, result)

        return see

    def _stack(self) -> _Stack:
        """The open nodes of this thread."""
        stack = _here.stacks.get(id(self))
        if stack is None or self.stacks.get(threading.get_ident()) is not stack:
            root = next(self.ids)
            stack = _here.stacks[id(self)] = _Stack(_here.number, root)
            self.stacks[threading.get_ident()] = stack
            node = _Node()
            node.id, node.name, node.parent, node.inputs, node.record = root, THREAD, self.process, (), 0
            node.sequence, node.scope, node.thread, node.forward = -1, _USER, stack.number, (0, 0)
            node.schema, node.integers = None, None
            self.nodes.append((node, ()))
        return stack

    def _begin(
        self, name: str, scope: int, sequence: int, forward_thread: int, op: Any, arguments: tuple
    ) -> _Node:
        stack = self._stack()
        node = _Node()
        node.id = next(self.ids)
        node.record = next(_record_ids)
        node.name, node.scope, node.sequence, node.thread = name, scope, sequence, stack.number
        node.parent = stack.nodes[-1]
        node.forward = self._forward(forward_thread, stack) if scope == _BACKWARD else (0, 0)
        node.integers = None
        if op is None:
            node.schema = None
            node.inputs = tuple([self._value(value) for value in arguments])
        else:
            node.schema = op
            above = stack.ops[-1]
            if above is not None and above.name == "empty_like" and stack.ops[-2] is not None:
                above = stack.ops[-2]  # which asked for memory through it
            node.inputs = self._inputs(op, arguments, above)
        if self.ranges_of_integers or self.saved_ops:
            self._integers(node, arguments)
        stack.nodes.append(node.id)
        stack.ops.append(op)
        self.open.append(node)
        return node

    def _end(self, node: _Node, result: Any) -> None:
        """A node is over; if recording ended before it, it has been written already."""
        try:
            self.open.remove(node)
        except ValueError:
            return
        stack = self._stack()
        if node.id in stack.nodes:
            place = stack.nodes.index(node.id)
            del stack.nodes[place], stack.ops[place]
        several = result.__class__ is not list and isinstance(result, tuple)
        outputs = () if result is None else result if several else (result,)
        if node.schema and node.schema.schema.returns[:1] and node.schema.schema.returns[0].endswith("[]"):
            outputs = (list(outputs),)
        self.nodes.append((node, tuple([self._value(value) for value in outputs])))

    def _forward(self, thread: int, stack: _Stack) -> tuple[int, int]:
        """The thread that made a node of the backward pass, and what is open there; unknown, it is taken for this one."""
        there = self.stacks.get(thread, stack)
        return there.number, there.nodes[-1]

    def _inputs(self, op: Any, arguments: tuple, inside: Any) -> tuple:
        """What goes into an op, inside another one or None, with what torch says where nothing is said here."""
        made: list[Any] = []
        known, has_tensors = _arguments(op)
        tensor_class = _dispatch.Tensor
        if inside is not None and inside.name in ("ones", "ones_like") and op.name == "fill_":
            arguments = (arguments[0], 1.0)
        elif inside is not None and inside.name in _KEEPING and op.name == "as_strided":
            arguments = (*arguments[:3], None)  # it begins where its argument does
        for argument, value in zip(known, arguments):
            if value.__class__ is tensor_class:
                made.append(self._tensor(value))
                continue
            if argument.kind == "Tensor" and value.__class__ in _dispatch.NUMBERS:
                made.append(self._boxed(value))
                continue
            if value is None and (inside is None or inside.name in _FACTORIES):
                if argument.name == "pin_memory":
                    value = False
                elif argument.name == "layout" and op.name == "empty_strided":
                    value = 0
                elif argument.name == "device" and not has_tensors:
                    made.append(("Device", "cpu"))
                    continue
            elif value is None and op.name == "empty_strided" and argument.name in ("layout", "device"):
                made.append(("Int", 0) if argument.name == "layout" else ("Device", "cpu"))
                continue
            made.append(self._value(value, argument))
        return tuple(made)

    def _boxed(self, value: Any) -> _Tensor:
        """A number in a tensor's place: a tensor of its own."""
        dtype = _dtype.number_dtype(value)
        if dtype._name == "float32":
            dtype = _dtype.float64
        place = (next(self.ids), next(self.ids), 0, 1, dtype.itemsize, "cpu")
        return _Tensor(place, (), (), ELEMENT_NAMES[dtype._np.num])

    def _value(self, value: Any, argument: Any = None) -> Any:
        """A value as numbers: a `_Tensor`, (type, value), or (kind of list, [values])."""
        if isinstance(value, _dispatch.Tensor):
            return self._tensor(value)
        kind = "" if argument is None else argument.type
        if kind and value is not None:
            if argument.kind == "ints":
                value = list(_dispatch.ints(value, argument.length))
            elif kind.startswith("float") and "[" not in kind:
                value = float(value)
            elif kind.startswith("bool") and "[" not in kind:
                value = bool(value)
        if value is None:
            return ("None", "<None>")
        if value.__class__ in _PLAIN:
            return (_PLAIN[value.__class__], value)
        if isinstance(value, (tuple, list)):
            listed = "Tuple" if argument is None and isinstance(value, tuple) else "GenericList"
            return (listed, [self._value(item) for item in value])
        return _other(value)

    def _tensor(self, tensor: Any) -> _Tensor:
        number = self.tensors(tensor)
        plain_class = tensor.__class__ is _dispatch.Tensor or tensor.__class__ in _overrides.plain_types
        if plain_class and not tensor._array_missing and not tensor.is_sparse:
            try:
                array = tensor._array
            except ValueError:  # a parameter that waits for its shape
                return _Tensor((number, *_HIDDEN_MEMORY), (), (), "nullptr (uninitialized)")
            storage = storage_of(tensor)
            memory = self.memories(storage if storage._keeps is None else storage._keeps)
            offset = 0 if storage._root is array else tensor.storage_offset()
            shape, size, item = array.shape, array.size, array.itemsize
            plain = size and 1 not in shape
            strides = tuple([step // item for step in array.strides]) if plain else tensor.stride()
            shown = ELEMENT_NAMES[array.dtype.num]
            return _Tensor((number, memory, offset, size, item, "cpu"), shape, strides, shown)
        with _overrides.overrides_limited(_overrides.ALL_OFF):
            return self._other_tensor(tensor, number)

    def _other_tensor(self, tensor: Any, number: int) -> _Tensor:
        """A tensor that is sparse, or has no memory, or is of a class that answers for itself."""
        dtype = tensor.dtype
        shown = ELEMENT_NAMES[dtype._np.num]
        shape = tuple(tensor.shape)
        if tensor.is_sparse:
            return _Tensor((number, *_HIDDEN_MEMORY), shape, (0,) * len(shape), shown)
        if tensor._array_missing:
            memory, offset = self.memories(tensor._meta), 0
        else:
            storage = storage_of(tensor)
            memory = self.memories(storage if storage._keeps is None else storage._keeps)
            offset = tensor.storage_offset()
        place = (number, memory, offset, tensor.numel(), dtype.itemsize, str(tensor.device))
        return _Tensor(place, shape, tensor.stride(), shown)

    def _integers(self, node: _Node, arguments: tuple) -> None:
        """The smallest and the largest integer of each tensor that goes in, and the integers themselves where they are wanted."""
        found: dict[str, list[int]] = {}
        for number, tensor in enumerate(_dispatch._tensors_in(arguments)):
            array = getattr(tensor, "_array", None)
            if array is None or array.dtype.kind not in "iu" or not array.size:
                continue
            if self.ranges_of_integers:
                found[str(number)] = [int(array.min()), int(array.max())]
            if node.name in self.saved_ops:
                self.data.append((node.id, number, array.tobytes()))
        node.integers = found or None

    def record_ids(self, trace: Trace) -> np.ndarray:
        """By event of a recording that ran in the same window: the number of its node, which ties the two files together; 0 where a
        thread's events are not this trace's."""
        found = np.zeros(len(trace), np.int64)
        nodes: dict[int, list[_Node]] = {}
        for node, _ in self.nodes[self.window :]:
            if node.record:
                nodes.setdefault(node.thread, []).append(node)
        for first, last in thread_slices(trace.thread):
            stack = self.stacks.get(int(trace.thread[first]))
            here = sorted(nodes.get(0 if stack is None else stack.number, ()), key=lambda node: node.id)
            names = [trace.names[number] for number in trace.name[first:last].tolist()]
            if [node.name for node in here] == names:
                found[first:last] = [node.record for node in here]
        return found

    # ------------------------------------------------------------------------------------------------ the file

    def write(self, out: IO[bytes]) -> None:
        """Write everything, in torch's layout."""
        head = f'{{\n  "schema": "{SCHEMA}", "pid": {os.getpid()}, "time": "{self.time}", "start_ts": {self.started_ms},\n  "nodes": ['
        out.write(head.encode())
        for node, outputs in self.nodes:
            out.write(_text(node, outputs).encode())
            out.write(b",")
        process = _Node()
        process.id = process.parent = self.process
        process.name, process.inputs, process.record, process.sequence = PROCESS, (), 0, -1
        process.scope, process.thread, process.forward, process.schema = _USER, 0, (0, 0), None
        process.integers = None
        out.write(_text(process, ()).encode())
        out.write(f'\n  ],\n  "finish_ts": {time.monotonic_ns() // 1_000_000}\n}}'.encode())


class _Ranges:
    """What is no op, for the dispatcher's slot: noted, and handed on."""

    __slots__ = ("trace", "inner")

    def __init__(self, trace: ExecutionTrace, inner: Any) -> None:
        self.trace = trace
        self.inner = inner

    def enter(self, name: str, scope: int, sequence: int, forward_thread: int, arguments: tuple) -> tuple:
        inner, shown = self.inner, arguments
        if scope == 0 and sequence >= 0:  # a Function: of its arguments torch shows the tensors
            shown = tuple([a for a in arguments if isinstance(a, _dispatch.Tensor)])
        elif scope == 0 and arguments and arguments[-1].__class__ is KeywordValues:
            shown = arguments[:-1]
        elif scope == _BACKWARD:
            shown = tuple([a for a in arguments if a is not None])
        number = -1 if name.startswith(ENGINE) else sequence
        node = self.trace._begin(name, scope, number, forward_thread, None, shown)
        if inner is None:
            return node, None
        return node, inner.enter(name, scope, sequence, forward_thread, arguments)

    def exit(self, token: tuple) -> None:
        node, token = token
        if self.inner is not None:
            self.inner.exit(token)
        self.trace._end(node, None)


@functools.cache
def _arguments(op: Any) -> tuple[tuple, bool]:
    """An op's arguments, and whether tensors are among them."""
    arguments = op.schema.arguments
    return arguments, any(a.kind.startswith("Tensor") for a in arguments)


# inside these, memory is asked for as it was asked of them
_FACTORIES = frozenset(
    "zeros ones full rand randn randint randperm eye normal ones_like zeros_like full_like _to_copy".split()
)
_KEEPING = frozenset("transpose expand permute unsqueeze squeeze movedim broadcast_to".split())
_PLAIN = {int: "Int", float: "Double", bool: "Bool", str: "String", complex: "ComplexDouble"}


def _other(value: Any) -> tuple[str, Any]:
    """A value that is neither a plain one nor a list: a setting of torch's as its number, the rest by its kind."""
    text = str(value)
    number = number_of(text)
    if number is not text:
        return ("Int", number)
    kind = type(value).__name__
    if kind == "device":
        return ("Device", text)
    if kind == "dict":
        return ("GenericDict", "<GenericDict>")
    item = getattr(value, "item", None)
    if item is not None:  # a number of NumPy's
        plain = item()
        return (_PLAIN.get(plain.__class__, kind), plain)
    return (kind, f"<{kind}>")


# ---------------------------------------------------------------------------------------------------- text


def _text(node: _Node, outputs: tuple) -> str:
    ranges = "" if node.integers is None else orjson.dumps(node.integers).decode()
    number, parent = node.forward
    return (
        f'\n      {{\n        "id": {node.id}, "name": {_quoted(node.name)}, "ctrl_deps": {node.parent},\n'
        f'        "inputs": {_values(node.inputs)},\n'
        f'        "outputs": {_values(outputs)},\n'
        f'        "attrs": [{{"name": "rf_id", "type": "uint64", "value": {node.record}}},'
        f'{{"name": "fw_parent", "type": "uint64", "value": {parent}}},'
        f'{{"name": "seq_id", "type": "int64", "value": {node.sequence}}},'
        f'{{"name": "scope", "type": "uint64", "value": {node.scope}}},'
        f'{{"name": "tid", "type": "uint64", "value": {node.thread}}},'
        f'{{"name": "fw_tid", "type": "uint64", "value": {number}}},'
        f'{{"name": "op_schema", "type": "string", "value": {_quoted("" if node.schema is None else schema_text(node.schema.text))}}},'
        '{"name": "kernel_backend", "type": "string", "value": ""},'
        '{"name": "kernel_file", "type": "string", "value": ""},'
        f'{{"name": "tensor_range", "type": "string", "value": {_quoted(ranges)}}}]\n      }}'
    )


_DEFAULT = re.compile(r"([^\s(]+) (\w+)=(\[[^\]]*\]|[^,)]+)")


@functools.cache
def schema_text(text: str) -> str:
    """A schema as torch prints it: defaults of lists written out, of floats with all their digits."""
    return _DEFAULT.sub(_default, text)


def _default(found: re.Match[str]) -> str:
    kind, name, value = found.groups()
    length = re.match(r"SymInt\[(\d)\]|int\[(1)\]", kind)
    if value.startswith("["):
        value = "[" + ", ".join(part.strip() for part in value[1:-1].split(",")) + "]"
    elif length and value not in ("None", "[]"):
        value = "[" + ", ".join([value] * int(length[1] or 1)) + "]"
    elif (
        kind.startswith(("float", "Scalar"))
        and (kind[0] == "f" or "." in value)
        and value not in ("None", "inf")
    ):
        value = f"{float(value):.17g}"
        value += "" if "e" in value or "." in value else "."
    elif value[0] == "'":
        value = f'"{value[1:-1]}"'
    return f"{kind} {name}={_NUMBERED.get(value, value)}"


_NUMBERED = {"contiguous_format": "0", "long": "4"}


def _quoted(text: str) -> str:
    try:
        return orjson.dumps(text).decode()
    except orjson.JSONEncodeError:  # half of a surrogate pair
        return orjson.dumps(text.encode("utf-8", "replace").decode()).decode()


def _values(values: tuple) -> str:
    shown, shapes, types, strides = [], [], [], []
    for value in values:
        text, shape, kind, stride = _shown(value)
        shown.append(text)
        shapes.append(shape)
        types.append(_quoted(kind))
        strides.append(stride)
    return (
        f'{{"values": [{",".join(shown)}], "shapes": [{",".join(shapes)}], '
        f'"types": [{",".join(types)}], "strides": [{",".join(strides)}]}}'
    )


def _shown(value: Any) -> tuple[str, str, str, str]:
    """The text of a value, of its shape, its type and its strides."""
    if value.__class__ is _Tensor:
        place = ",".join(map(str, value.place[:5]))
        return (
            f'[{place},"{value.place[5]}"]',
            _listed(value.shape),
            f"Tensor({value.dtype})",
            _listed(value.strides),
        )
    kind, plain = value
    if plain.__class__ is list:
        parts = [_shown(item) for item in plain]
        return (
            _joined([p[0] for p in parts]),
            _joined([p[1] for p in parts]),
            f"{kind}[{','.join([p[2] for p in parts])}]",
            _joined([p[3] for p in parts]),
        )
    return _plain(plain), "[]", kind, "[]"


def _plain(value: Any) -> str:
    if value is True:
        return "true"
    if value is False:
        return "false"
    if isinstance(value, float):
        return repr(value) if value - value == 0 else f'"{value}"'  # inf and nan are no JSON
    if isinstance(value, int):
        return str(value)
    if isinstance(value, complex):
        return '"<ComplexDouble>"'
    return _quoted(value)


def _listed(numbers: Any) -> str:
    return "[" + ",".join(map(str, numbers)) + "]"


def _joined(parts: list[str]) -> str:
    return "[" + ",".join(parts) + "]"
