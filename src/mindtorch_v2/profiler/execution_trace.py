"""Execution traces: ops and ranges as they happen in, the nodes of a Chakra execution trace out, as torch writes them.

Nodes are stored as numbers and short tuples; JSON is written at the end. No tensor is kept alive: tensors and storages get ids at their
first use, which are forgotten when they are freed.
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

from mindtorch_prof.json_text import safe_ends
from mindtorch_prof.trace import Trace
from mindtorch_prof.tree import thread_slices

from .. import _dispatch, _dtype, _overrides
from .. import _recording_hooks as hooks
from .._graph import grad_state, storage_of
from .record.op_inputs import ELEMENT_NAMES, number_of
from .record_function import KeywordValues

SCHEMA = "1.1.1-chakra.0.0.4"
PROCESS = "[pytorch|profiler|execution_trace|process]"
THREAD = "[pytorch|profiler|execution_trace|thread]"
ENGINE = "autograd::engine::"

_BACKWARD, _USER = 1, 7  # scopes
_record_ids = itertools.count(1)  # unique in this process, across all traces
_thread_numbers = itertools.count(1)
_NO_STORAGE = (0, 0, 0, 0, "")  # of tensors without one storage, such as sparse ones


class _Thread(threading.local):
    """The number of a thread. Unlike `threading.get_ident()`, it is not reused after a thread has ended."""

    def __init__(self) -> None:
        self.number = next(_thread_numbers)
        self.stacks: dict[int, _Stack] = {}


_this_thread = _Thread()


class _Stack:
    """The open nodes of one thread in one trace, outermost first; the first is the node of the thread itself."""

    __slots__ = ("number", "nodes", "ops")

    def __init__(self, number: int, root: int) -> None:
        self.number = number
        self.nodes = [root]
        self.ops: list[Any] = [None]  # by node: its op, or None


class _Reference(weakref.ref):
    """A weak reference with the `id()` of its object."""

    __slots__ = ("address",)
    address: int


class _Ids:
    """Ids of live objects: always the same for one object, a new one if `id()` is reused."""

    def __init__(self, count: Any) -> None:
        self.count = count
        self.by_address: dict[int, tuple[int, Any]] = {}

    def __call__(self, value: Any) -> int:
        address = id(value)
        entry = self.by_address.get(address)
        if entry is not None and entry[1]() is value:
            return entry[0]
        number = next(self.count)
        reference = _Reference(value, self._forget)
        reference.address = address
        self.by_address[address] = (number, reference)
        return number

    def _forget(self, reference: Any) -> None:
        entry = self.by_address.get(reference.address)
        if entry is not None and entry[1] is reference:
            del self.by_address[reference.address]


class _Tensor:
    """The description of a tensor in a trace."""

    __slots__ = ("fields", "shape", "strides", "dtype")

    def __init__(self, fields: tuple, shape: Any, strides: Any, dtype: str) -> None:
        self.fields = fields  # tensor id, storage id, offset, number of elements, bytes per element, device
        self.shape = shape
        self.strides = strides
        self.dtype = dtype


class _Node:
    """An op or a range."""

    __slots__ = ("id", "name", "parent", "inputs", "record", "sequence", "scope", "thread", "forward", "op",
                 "integers")  # fmt: skip

    id: int
    name: str
    parent: int
    inputs: tuple
    record: int  # the record function id, which ties a node to an event of a profile; 0: none
    sequence: int
    scope: int
    thread: int
    forward: tuple[int, int]  # of a backward node: the thread and the open node of its forward op
    op: Any  # None: a range
    integers: dict[str, list[int]] | None  # by input: its smallest and largest integer


class ExecutionTrace:
    """One trace: records between `start` and `stop`, any number of times, and is written once."""

    def __init__(self, *, ranges_of_integers: bool = False, saved_ops: tuple[str, ...] = ()) -> None:
        self.time = time.strftime("%Y-%m-%d %H:%M:%S")
        self.started_ms = time.monotonic_ns() // 1_000_000
        self.ids = itertools.count(1)
        self.process = next(self.ids)
        self.tensor_ids = _Ids(self.ids)
        self.storage_ids = _Ids(self.ids)
        self.nodes: list[tuple] = []  # (node, outputs), in the order in which they ended
        self.stacks: dict[int, _Stack] = {}  # by identity of the thread
        self.ranges_of_integers = ranges_of_integers
        self.saved_ops = saved_ops  # names of the ops whose integer inputs are saved in `data`
        self.data: list[tuple[int, int, bytes]] = []  # node, number of the tensor among the inputs, bytes
        self.open: list[_Node] = []
        self.running = False
        self.window = 0  # the number of nodes when recording last started

    # ------------------------------------------------------------------------------------------------ start and stop

    def start(self) -> None:
        """Record from now on, on every thread."""
        if not self.running:
            self.running = True
            self.window = len(self.nodes)
            hooks.add_observer(self)

    def stop(self) -> None:
        """Stop recording; open nodes end here."""
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
        """The values of `_dispatch.recorder` and `ranges` that record here and pass on to these, which may be None."""
        return _dispatch.Hook(self._op_hook(recorder)), _Ranges(self, ranges)

    # ------------------------------------------------------------------------------------------------ while recording

    def _op_hook(self, recorder: Any) -> Any:
        begin, end, state = self._begin, self._end, grad_state

        def run_recorded(op: Any, *arguments: Any) -> Any:
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

        return run_recorded

    def _stack(self) -> _Stack:
        """The open nodes of this thread."""
        stack = _this_thread.stacks.get(id(self))
        if stack is None or self.stacks.get(threading.get_ident()) is not stack:
            root = next(self.ids)
            stack = _this_thread.stacks[id(self)] = _Stack(_this_thread.number, root)
            self.stacks[threading.get_ident()] = stack
            node = _Node()
            node.id, node.name, node.parent, node.inputs, node.record = root, THREAD, self.process, (), 0
            node.sequence, node.scope, node.thread, node.forward = -1, _USER, stack.number, (0, 0)
            node.op, node.integers = None, None
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
            node.op = None
            node.inputs = tuple([self._value(value) for value in arguments])
        else:
            node.op = op
            above = stack.ops[-1]
            if above is not None and above.name == "empty_like" and stack.ops[-2] is not None:
                above = stack.ops[-2]  # the factory that called `empty_like`
            node.inputs = self._inputs(op, arguments, above)
        if self.ranges_of_integers or self.saved_ops:
            self._integers(node, arguments)
        stack.nodes.append(node.id)
        stack.ops.append(op)
        self.open.append(node)
        return node

    def _end(self, node: _Node, result: Any) -> None:
        """End a node. If recording has stopped since its begin, the node has ended already."""
        try:
            self.open.remove(node)
        except ValueError:
            return
        stack = self._stack()
        if node.id in stack.nodes:
            index = stack.nodes.index(node.id)
            del stack.nodes[index], stack.ops[index]
        several = result.__class__ is not list and isinstance(result, tuple)
        outputs = () if result is None else result if several else (result,)
        if node.op and node.op.schema.returns[:1] and node.op.schema.returns[0].endswith("[]"):
            outputs = (list(outputs),)
        self.nodes.append((node, tuple([self._value(value) for value in outputs])))

    def _forward(self, thread: int, stack: _Stack) -> tuple[int, int]:
        """The thread that created a backward node, and its innermost open node; this thread if that one is not in the trace."""
        forward_stack = self.stacks.get(thread, stack)
        return forward_stack.number, forward_stack.nodes[-1]

    def _inputs(self, op: Any, arguments: tuple, caller: Any) -> tuple:
        """The inputs of an op, with the values that torch fills in for omitted arguments. caller: the op that calls it, or None."""
        inputs: list[Any] = []
        declared, has_tensors = _arguments(op)
        tensor_class = _dispatch.Tensor
        if caller is not None and caller.name in ("ones", "ones_like") and op.name == "fill_":
            arguments = (arguments[0], 1.0)
        elif caller is not None and caller.name in _WITHOUT_OFFSET and op.name == "as_strided":
            arguments = (*arguments[:3], None)
        for argument, value in zip(declared, arguments):
            if value.__class__ is tensor_class:
                inputs.append(self._tensor(value))
                continue
            if argument.kind == "Tensor" and value.__class__ in _dispatch.NUMBERS:
                inputs.append(self._number_as_tensor(value))
                continue
            if value is None and (caller is None or caller.name in _FACTORIES):
                if argument.name == "pin_memory":
                    value = False
                elif argument.name == "layout" and op.name == "empty_strided":
                    value = 0
                elif argument.name == "device" and not has_tensors:
                    inputs.append(("Device", "cpu"))
                    continue
            elif value is None and op.name == "empty_strided" and argument.name in ("layout", "device"):
                inputs.append(("Int", 0) if argument.name == "layout" else ("Device", "cpu"))
                continue
            inputs.append(self._value(value, argument))
        return tuple(inputs)

    def _number_as_tensor(self, value: Any) -> _Tensor:
        """The 0-dim tensor that torch makes of a number for a tensor argument."""
        dtype = _dtype.number_dtype(value)
        if dtype._name == "float32":
            dtype = _dtype.float64
        fields = (next(self.ids), next(self.ids), 0, 1, dtype.itemsize, "cpu")
        return _Tensor(fields, (), (), ELEMENT_NAMES[dtype._np.num])

    def _value(self, value: Any, argument: Any = None) -> Any:
        """A value as it is stored: a `_Tensor`, (type, value), or (type of list, [values])."""
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
            list_type = "Tuple" if argument is None and isinstance(value, tuple) else "GenericList"
            return (list_type, [self._value(item) for item in value])
        return _other(value)

    def _tensor(self, tensor: Any) -> _Tensor:
        tensor_id = self.tensor_ids(tensor)
        plain_class = tensor.__class__ is _dispatch.Tensor or tensor.__class__ in _overrides.plain_types
        if plain_class and not tensor._array_missing and not tensor._is_sparse_layout:
            try:
                array = tensor._array
            except ValueError:  # an uninitialized parameter
                return _Tensor((tensor_id, *_NO_STORAGE), (), (), "nullptr (uninitialized)")
            storage = storage_of(tensor)
            storage_id = self.storage_ids(storage if storage._keeps is None else storage._keeps)
            offset = 0 if storage._root is array else tensor.storage_offset()
            shape, size, itemsize = array.shape, array.size, array.itemsize
            same_strides = size and 1 not in shape  # otherwise torch's strides may differ from NumPy's
            strides = tuple([step // itemsize for step in array.strides]) if same_strides else tensor.stride()
            element_name = ELEMENT_NAMES[array.dtype.num]
            fields = (tensor_id, storage_id, offset, size, itemsize, "cpu")
            return _Tensor(fields, shape, strides, element_name)
        with _overrides.overrides_limited(_overrides.ALL_OFF):
            return self._other_tensor(tensor, tensor_id)

    def _other_tensor(self, tensor: Any, tensor_id: int) -> _Tensor:
        """A tensor that is sparse, has no memory, or is of a class with overrides."""
        dtype = tensor.dtype
        element_name = ELEMENT_NAMES[dtype._np.num]
        shape = tuple(tensor.shape)
        if tensor._is_sparse_layout:
            return _Tensor((tensor_id, *_NO_STORAGE), shape, (0,) * len(shape), element_name)
        if tensor._array_missing:
            storage_id, offset = self.storage_ids(tensor._array_description), 0
        else:
            storage = storage_of(tensor)
            storage_id = self.storage_ids(storage if storage._keeps is None else storage._keeps)
            offset = tensor.storage_offset()
        fields = (tensor_id, storage_id, offset, tensor.numel(), dtype.itemsize, str(tensor.device))
        return _Tensor(fields, shape, tensor.stride(), element_name)

    def _integers(self, node: _Node, arguments: tuple) -> None:
        """Note the smallest and the largest integer of each input tensor, and save the integers of `saved_ops`."""
        extremes: dict[str, list[int]] = {}
        for number, tensor in enumerate(_dispatch._tensors_in(arguments)):
            array = getattr(tensor, "_array", None)
            if array is None or array.dtype.kind not in "iu" or not array.size:
                continue
            if self.ranges_of_integers:
                extremes[str(number)] = [int(array.min()), int(array.max())]
            if node.name in self.saved_ops:
                self.data.append((node.id, number, array.tobytes()))
        node.integers = extremes or None

    def record_ids(self, trace: Trace) -> np.ndarray:
        """By event of a profile recorded in the same window: the record function id of its node, which both files contain. 0 if the
        event is synthetic, or the thread's events differ from this trace's."""
        ids = np.zeros(len(trace), np.int64)
        recorded = np.arange(len(trace)) if trace.synthetic is None else np.flatnonzero(trace.synthetic == 0)
        nodes: dict[int, list[_Node]] = {}
        for node, _ in self.nodes[self.window :]:
            if node.record:
                nodes.setdefault(node.thread, []).append(node)
        for first, last in thread_slices(trace.thread[recorded]):
            rows = recorded[first:last]
            stack = self.stacks.get(int(trace.thread[rows[0]]))
            of_thread = sorted(nodes.get(0 if stack is None else stack.number, ()), key=lambda node: node.id)
            names = [trace.names[number] for number in trace.name[rows].tolist()]
            if [node.name for node in of_thread] == names:
                ids[rows] = [node.record for node in of_thread]
        return ids

    # ------------------------------------------------------------------------------------------------ the file

    def write(self, out: IO[bytes]) -> None:
        """Write the trace as JSON, in torch's layout."""
        head = f'{{\n  "schema": "{SCHEMA}", "pid": {os.getpid()}, "time": "{self.time}", "start_ts": {self.started_ms},\n  "nodes": ['
        out.write(head.encode())
        for node, outputs in self.nodes:
            out.write(_text(node, outputs).encode())
            out.write(b",")
        process = _Node()
        process.id = process.parent = self.process
        process.name, process.inputs, process.record, process.sequence = PROCESS, (), 0, -1
        process.scope, process.thread, process.forward, process.op = _USER, 0, (0, 0), None
        process.integers = None
        out.write(_text(process, ()).encode())
        out.write(f'\n  ],\n  "finish_ts": {time.monotonic_ns() // 1_000_000}\n}}'.encode())


class _Ranges:
    """Records ranges, and passes them on to the recorder's ranges, if any."""

    __slots__ = ("trace", "inner")

    def __init__(self, trace: ExecutionTrace, inner: Any) -> None:
        self.trace = trace
        self.inner = inner

    def enter(
        self,
        name: str,
        scope: int,
        sequence: int,
        forward_thread: int,
        arguments: tuple,
    ) -> tuple:
        inner, shown = self.inner, arguments
        if (
            scope == 0 and sequence >= 0
        ):  # an autograd.Function: torch shows only the tensors among its arguments
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

    def stepped(self, optimizer: Any) -> None:
        if self.inner is not None:
            self.inner.stepped(optimizer)

    def exit(self, token: tuple) -> None:
        node, token = token
        if self.inner is not None:
            self.inner.exit(token)
        self.trace._end(node, None)


@functools.cache
def _arguments(op: Any) -> tuple[tuple, bool]:
    """An op's declared arguments, and whether tensors are among them."""
    arguments = op.schema.arguments
    return arguments, any(a.kind.startswith("Tensor") for a in arguments)


# factories that pass on omitted options; torch fills them in
_FACTORIES = frozenset(
    "zeros ones full rand randn randint randperm eye normal ones_like zeros_like full_like _to_copy".split()
)
# views that call `as_strided` without a storage offset
_WITHOUT_OFFSET = frozenset("transpose expand permute unsqueeze squeeze movedim broadcast_to".split())
_PLAIN = {int: "Int", float: "Double", bool: "Bool", str: "String", complex: "ComplexDouble"}


def _other(value: Any) -> tuple[str, Any]:
    """A value that is neither plain nor a list: dtypes, layouts and memory formats as their number, others by their type."""
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
    if item is not None:  # a NumPy scalar
        plain = item()
        return (_PLAIN.get(plain.__class__, kind), plain)
    return (kind, f"<{kind}>")


# ---------------------------------------------------------------------------------------------------- JSON


def _text(node: _Node, outputs: tuple) -> str:
    ranges = "" if node.integers is None else orjson.dumps(node.integers).decode()
    forward_thread, forward_parent = node.forward
    return (
        f'\n      {{\n        "id": {node.id}, "name": {_quoted(node.name)}, "ctrl_deps": {node.parent},\n'
        f'        "inputs": {_values(node.inputs)},\n'
        f'        "outputs": {_values(outputs)},\n'
        f'        "attrs": [{{"name": "rf_id", "type": "uint64", "value": {node.record}}},'
        f'{{"name": "fw_parent", "type": "uint64", "value": {forward_parent}}},'
        f'{{"name": "seq_id", "type": "int64", "value": {node.sequence}}},'
        f'{{"name": "scope", "type": "uint64", "value": {node.scope}}},'
        f'{{"name": "tid", "type": "uint64", "value": {node.thread}}},'
        f'{{"name": "fw_tid", "type": "uint64", "value": {forward_thread}}},'
        f'{{"name": "op_schema", "type": "string", "value": {_quoted("" if node.op is None else schema_text(node.op.text))}}},'
        '{"name": "kernel_backend", "type": "string", "value": ""},'
        '{"name": "kernel_file", "type": "string", "value": ""},'
        f'{{"name": "tensor_range", "type": "string", "value": {_quoted(ranges)}}}]\n      }}'
    )


_DEFAULT = re.compile(r"([^\s(]+) (\w+)=(\[[^\]]*\]|[^,)]+)")


@functools.cache
def schema_text(text: str) -> str:
    """A schema as torch prints it: defaults of lists in full, of floats with 17 digits."""
    return _DEFAULT.sub(_default, text)


def _default(match: re.Match[str]) -> str:
    kind, name, value = match.groups()
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
        return safe_ends(orjson.dumps(text).decode())
    except orjson.JSONEncodeError:  # half of a surrogate pair
        return safe_ends(orjson.dumps(text.encode("utf-8", "replace").decode()).decode())


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
    """The JSON of a value, of its shape, its type and its strides."""
    if value.__class__ is _Tensor:
        numbers = ",".join(map(str, value.fields[:5]))
        return (
            f'[{numbers},"{value.fields[5]}"]',
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
