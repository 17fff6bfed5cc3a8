"""The path of every op call: recorder, autograd, kernel.

An op is declared once with `@op`, `@view` or `@composite`. From its schema and kernel a function is generated that does only what this
op needs. Functions are compiled at their first call, so that declaring a thousand of them costs little. Their globals are this module,
so `recorder` below is one plain global for all of them: None while nothing records.
"""

from __future__ import annotations

import functools
import re
import threading
import types
from operator import index as as_index
from typing import Any, NoReturn

import numpy as np

from . import _dtype, _schema
from ._dtype import INTEGRAL_NUMS, Default  # noqa: F401  (used by the generated functions)
from ._graph import (  # noqa: F401  (used by the generated functions)
    INFERENCE,
    RELEASED,
    WITHOUT_SEQUENCE,
    Node,
    SavedResult,
    Switches,
    edge,
    grad_state,
    is_inference,
    pack_saved,
    refuse_write,
    storage_of,
    unpack,
    version_of,
)
from ._promotion import (  # noqa: F401  (used by the generated functions)
    LOW_NUMS,
    promote_all,
    promote_factor,
    promote_number,
    promote_number_to_subtract,
    promote_pair,
    promote_pair_to_subtract,
    to_float,
)
from ._storage import UntypedStorage

# The slots of recordings. Only `_recording_hooks` assigns them; besides the functions here and in `_codegen`, only the profiler reads them.
# While something records: `recorder[op.uid](*arguments)` runs the op and records the call. It returns what `op.run(*arguments)` returns;
# arguments are in the order of the schema. A list of probes (see `install_probes`), or a `Hook` if one function records all ops.
recorder: Any = None

# While something records: an object with `enter(name, scope, sequence_nr, forward_thread, arguments) -> token` and `exit(token)`, for
# ranges: the engine's nodes and annotations; and `stepped(optimizer)`.
ranges: Any = None
FUNCTION_SCOPE, BACKWARD_SCOPE = 0, 1  # torch's RecordScope, of ops and of nodes

# While Python calls are traced: the core of the recording, whose `call_untraced` and `call_traced` call a function of the library or,
# from inside such a call or an op, of the user.
calls: Any = None

# While autocast is on in some thread: a callable `autocast(op, arguments)` that ops of torch's autocast lists call first. It
# returns their result on cast arguments, or None if this thread does not cast.
autocast: Any = None

Tensor: Any = None  # the Tensor class, set by _tensor
ndarray = np.ndarray
asarray = np.asarray
get_ident = threading.get_ident
new_tensor: Any = None  # new_tensor(cls): see `_tensor_slots`; set by _tensor
new_plain_view: Any = None  # new_plain_view(source, array): see `_tensor_slots`; set by _tensor
add_view: Any = None  # add_view(base, view): see `_tensor_slots`; set by _tensor
new_plain_result: Any = (
    None  # new_plain_result(array, *operands): see `wrap_result`, its twin; set by _tensor
)
laid_out: Any = None  # see `_ops._layout`; set by _codegen
# `new_tensor`, `new_plain_view` and `new_plain_result`, or while some thread is in inference mode `new_in_inference`,
# `new_view_in_inference` and `wrap_result`.
new: Any = None
new_view: Any = None
new_result: Any = None
new_node = object.__new__
# Called off the fast path of the generated functions; set by _op_errors.
recover: Any = None
unknown_operand: Any = None
missing_dim: Any = None
no_derivative: Any = None
bad_argument: Any = None
not_a_method: Any = None
MISSING = type("MISSING", (), {"__repr__": lambda self: "<missing>"})()
NUMBERS = frozenset(
    (
        int,
        float,
        bool,
        complex,
        np.float32,
        np.float64,
        np.float16,
        np.int64,
        np.int32,
        np.int16,
        np.int8,
        np.uint8,
        np.bool_,
        np.complex64,
        np.complex128,
        np.uint16,
        np.uint32,
        np.uint64,
    )
)

OPS: dict[str, Op] = {}  # "add.Tensor" -> Op
BY_UID: list[Op] = []
WITH_CHILDREN: dict[tuple[str, str], Op] = {}  # by name and overload: the ops that declare children
OUT_FORMS: dict[tuple[int, int], Op] = {}  # by uid and number of outputs: the `out=` form of an op
_PROBES: list[tuple[Any, list[Any]]] = []  # how to make a probe, and the probes by uid, see `install_probes`
FUNCTIONS: dict[str, Any] = {}  # name -> function of the `torch` namespace
METHODS: dict[str, Any] = {}  # name -> method of Tensor
OPERATORS: dict[str, Op] = {}  # "__add__" -> the op whose `operator` is that method
_GLOBALS = globals()
_PLAIN = re.compile(r"\(a!?(?: -> \*)?\)")


# ---------------------------------------------------------------------------------------------------- declaring


class Op:
    """One overload of an aten op."""

    def __init__(self, text: str, kernel: Any, body: str, options: dict[str, Any]) -> None:
        self.text = text
        self.namespace, self.name, self.overload = _schema.head(text)
        self.full_name = self.name + ("." + self.overload if self.overload else "")
        self.qualified_name = f"{self.namespace}::{self.name}"
        self.kernel = kernel
        self.body = body  # "arrays", "tensors" or "composite"
        self.is_view = options.get("view", False)
        self.promote = options.get("promote")  # None, "same", "float" or "compare"
        self.pointwise = options.get("pointwise", bool(self.promote))
        self.numbers = bool(self.promote) and options.get("numbers", True)
        self.flops = options.get("flops")
        self.inplace_of: Op | None = options.get("inplace_of")
        self.has_out = options.get("out", False)
        self.nondifferentiable = options.get("nondifferentiable", False)
        self.node_name = options.get("node")
        self.return_type = options.get("returns")
        self.outputs = options.get("outputs", 0)
        self.rules: dict[str, Any] = {}
        self.joint: Any = None
        self.joint_wrt: tuple[str, ...] | None = None
        self.values_for: dict[str, str] = {}
        self.node: Any = None
        self.children_rule: Any = None  # what torch shows inside this op, see `_ops/_children.py`
        self.children_need_settings = False  # whether the rule takes the settings of the trace
        self.meta: Any = None  # for meta tensors, where running the kernel on zeros would not do
        self._parsed: _schema.Schema | None = None
        self.uid = len(BY_UID)
        BY_UID.append(self)
        cell = types.CellType(self)
        self.entry: Any = types.FunctionType(_ENTRY_STUB, _GLOBALS, self.name, None, (cell,))
        self.run = types.FunctionType(_RUN_STUB, _GLOBALS, self.name, None, (cell,))
        self.operator = types.FunctionType(_OPERATOR_STUB, _GLOBALS, self.name, None, (cell,))
        # by name, the bodies of those of the three functions that `_overrides` or `_torch_dispatch` guard
        self.bodies: dict[str, Any] = {}
        for function in (self.entry, self.run, self.operator):
            function.__module__ = "mindtorch_v2"
        self.entry.__qualname__ = self.name
        self.entry.op = self  # type: ignore[attr-defined]
        self.entry.derivative = self.derivative  # type: ignore[attr-defined]
        self.entry.backward = self.backward  # type: ignore[attr-defined]
        self.entry.children = self.children  # type: ignore[attr-defined]
        if options.get("listed", True):
            OPS[self.full_name] = self
        for make, probes in _PROBES:
            probes.append(make(self))

    @functools.cached_property
    def n_arguments(self) -> int:
        """How many arguments `run` takes."""
        return sum(not (a.written and a.name.startswith("out")) for a in self.schema.arguments)

    @property
    def schema(self) -> _schema.Schema:
        if self._parsed is None:
            self._parsed = _schema.parse(self.text)
        return self._parsed

    @functools.cached_property
    def allocates(self) -> int:
        """Whether results are new memory: 0 no, 1 always, 2 unless they are an argument or a view (a body of tensors)."""
        returns = self.schema.returns
        if self.is_view or self.inplace_of is not None or self.body == "composite" or not returns:
            return 0
        if not returns[0].startswith("Tensor") or "(a" in returns[0]:
            return 0
        return 1 if self.body == "arrays" else 2

    @property
    def operator_defaults(self) -> tuple[Any, ...]:
        """The arguments of `run` after the two operands, when `operator` calls it."""
        return tuple([argument.default for argument in self.schema.arguments[2 : self.n_arguments]])

    @functools.cached_property
    def describe(self) -> Any:
        """A function that describes the arguments of a call as one flat, hashable tuple (see `_codegen.describe`)."""
        from ._codegen import describe

        return describe(self)

    @functools.cached_property
    def describe_with_ids(self) -> Any:
        """The same with the ids of the tensors; None if there are lists of tensors among the arguments."""
        from ._codegen import describe

        return None if "L" in self.tensor_places else describe(self, with_ids=True)

    @functools.cached_property
    def tensor_places(self) -> str:
        """A letter for each argument: T a tensor, N a tensor, a number or None, L a list of tensors, - anything else."""
        from ._codegen import Plan

        plan = Plan(self)
        letters = ""
        for argument in plan.arguments:
            if argument.kind == "Tensor":
                letters += "N" if plan.may_be_number(argument) else "T"
            else:
                letters += {"Tensor?": "N", "Tensor[]": "L", "Tensor?[]": "L"}.get(argument.kind, "-")
        return letters

    @functools.cached_property
    def sequenced(self) -> bool:
        """Whether a profile shows the thread's next sequence number with this op: not with factories, which autograd skips."""
        is_factory = self.name.endswith(("_like", "_strided")) and self.nondifferentiable
        has_tensors = any(a.kind.startswith("Tensor") for a in self.schema.arguments)
        return has_tensors and not is_factory

    def derivative(op, /, **rules: Any) -> None:  # noqa: N805  (torch calls an argument `self`)
        """Gradient rules by argument. A rule's parameters name what is saved: `g` (or `grads`), arguments, `out`, `x_shape`."""
        op.rules = rules

    def backward(self, *wrt: str, values_for: dict[str, str] | None = None) -> Any:
        """Decorator: one rule for several arguments. It returns a gradient for each of `wrt`, in order; `needs` tells which are needed.

        values_for: saved argument -> the one of `wrt` whose gradient needs its values. If that gradient is not needed, only the shape
        and strides of the saved tensor are used, and it may have been written to since.
        """
        self.values_for = values_for or {}

        def declare(rule: Any) -> Any:
            self.joint, self.joint_wrt = rule, wrt or None
            return rule

        return declare

    def children(self, rule: Any) -> Any:
        """Decorator: a function of the described arguments that gives the ops which torch shows inside this one (`_ops/_children.py`)."""
        code = rule.__code__
        first = code.co_argcount  # keyword parameters follow those that can be given by position
        self.children_rule = rule
        self.children_need_settings = "settings" in code.co_varnames[first : first + code.co_kwonlyargcount]
        WITH_CHILDREN[self.qualified_name, self.overload] = self
        return rule

    def build(self) -> None:
        """Generate and compile this op's functions."""
        from ._codegen import build

        build(self)

    def __repr__(self) -> str:
        return f"<op {self.namespace}::{self.full_name}>"


def _stubs() -> tuple[types.CodeType, ...]:
    OP: Any = None

    def entry(*args: Any, **kwargs: Any) -> Any:
        OP.build()
        return OP.entry(*args, **kwargs)

    def run(*args: Any) -> Any:
        OP.build()
        return OP.run(*args)

    def operator(*args: Any) -> Any:
        OP.build()
        return OP.operator(*args)

    return entry.__code__, run.__code__, operator.__code__


_ENTRY_STUB, _RUN_STUB, _OPERATOR_STUB = _stubs()


def install_probes(make: Any) -> list[Any]:
    """A list of probes by uid, for all ops, and for those that are declared later: `make(op)(*arguments)` runs the op and records it."""
    probes = list(map(make, BY_UID))
    _PROBES.append((make, probes))
    return probes


class Hook:
    """One function `run_recorded(op, *arguments)` instead of a list of probes."""

    __slots__ = ("run_recorded",)

    def __init__(self, run_recorded: Any) -> None:
        self.run_recorded = run_recorded

    def __getitem__(self, uid: int) -> Any:
        return functools.partial(self.run_recorded, BY_UID[uid])


def taken(value: Any) -> Any:
    """The number in a tensor that was passed for a number, read before the op is recorded."""
    return value.item()


def call_user(function: Any, *arguments: Any, **named: Any) -> Any:
    """Call a function of the user from inside an op or a function of the library: traced like any other call of the program."""
    if calls is None:
        return function(*arguments, **named)
    return calls.call_traced(functools.partial(function, **named) if named else function, *arguments)


def call_untraced(function: Any, *arguments: Any) -> Any:
    """Call a function of the library: what it calls is not traced, except through `call_user`."""
    if calls is None:
        return function(*arguments)
    return calls.call_untraced(function, *arguments)


def in_range(describe: Any, function: Any, subject: Any, argument: Any) -> Any:
    """Call `function(subject, argument)` as a range of a profile. `describe(subject, argument)` gives what `ranges.enter` takes; it is
    called only while something records. (A fixed number of arguments: the interpreter passes them on without packing.)"""
    listener = ranges
    if listener is None:
        return function(subject, argument)
    token = listener.enter(*describe(subject, argument))
    try:
        return function(subject, argument)
    finally:
        listener.exit(token)


# The two ranges of each node of a backward pass, without the calls and the tuple of `in_range`: 0.2 us each while something records.


def in_evaluation_range(function: Any, node: Node, running: Any) -> Any:
    """Call `function(node, running)` as all that the engine does for a node."""
    listener = ranges
    if listener is None:
        return function(node, running)
    sequence = node.seq if node.seq < WITHOUT_SEQUENCE else -1
    token = listener.enter(evaluation_name(node.name()), FUNCTION_SCOPE, sequence, node.forward_thread, ())
    try:
        return function(node, running)
    finally:
        listener.exit(token)


def in_node_range(function: Any, node: Node, gradients: Any) -> Any:
    """Call `function(node, gradients)` as a node that gets these gradients."""
    listener = ranges
    if listener is None:
        return function(node, gradients)
    sequence = node.seq if node.seq < WITHOUT_SEQUENCE else -1
    # No local refers to the recorded gradients, so that they are freed as soon as they are used. A `del` would not do: under a profile
    # function written in Python, Python 3.10 keeps a dict of the frame's locals, and the engine would copy a gradient that it finds shared.
    token = listener.enter(
        node.name(), BACKWARD_SCOPE, sequence, node.forward_thread, recorded_gradients(gradients)
    )
    try:
        return function(node, gradients)
    finally:
        listener.exit(token)


recorded_gradients: Any = (
    tuple  # what a range shows of gradients; `_sparse` sets one that knows sparse tensors
)


@functools.cache
def evaluation_name(node: str) -> str:
    """The name of the range around a node: the same object each time, which the recorder recognises."""
    return f"autograd::engine::evaluate_function: {node}"


def stepped(optimizer: Any) -> None:
    """Let an active recording read the parameters and the state of an optimizer after its step."""
    if ranges is not None:
        ranges.stepped(optimizer)


def record(op: Op, *arguments: Any) -> Any:
    """Run an op, and record it if something records."""
    probes = recorder
    return op.run(*arguments) if probes is None else probes[op.uid](*arguments)


def _register(op: Op, options: dict[str, Any]) -> Any:
    names = options.get("expose", "both")
    if names in ("both", "function"):
        FUNCTIONS.setdefault(op.name, op.entry)
    if names in ("both", "method") and "(Tensor self" in _PLAIN.sub("", op.text):
        METHODS.setdefault(op.name, op.entry)
    for operator in options.get("operators", ()):
        METHODS[operator], OPERATORS[operator] = op.operator, op
    if options.get("inplace"):
        text = options["inplace"] + op.text[op.text.index("(") :]
        text = text.replace("Tensor self", "Tensor(a!) self", 1)
        text = text[: text.rindex("->")] + "-> Tensor(a!)"
        inherited = {
            k: v for k, v in options.items() if k in ("promote", "numbers", "node", "nondifferentiable")
        }
        op.inplace = Op(text, op.kernel, op.body, {**inherited, "inplace_of": op})  # type: ignore[attr-defined]
        op.entry.inplace = op.inplace.entry  # type: ignore[attr-defined]
        if names in ("both", "function"):
            FUNCTIONS.setdefault(op.name + "_", op.inplace.entry)  # type: ignore[attr-defined]
        METHODS.setdefault(op.name + "_", op.inplace.entry)  # type: ignore[attr-defined]
        for operator in options.get("inplace_operators", ()):
            METHODS[operator], OPERATORS[operator] = op.inplace.operator, op.inplace  # type: ignore[attr-defined]
    return op.entry


def op(text: str, **options: Any) -> Any:
    """Declare an op whose kernel takes arrays and returns new arrays (`on="tensors"`: tensors, run below autograd).

    promote: convert the tensor arguments to one dtype first ("same"; "float": integers become the default dtype; "compare").
    numbers=False: the second operand must be a tensor.
    pointwise: the one result follows the memory layout of the tensor arguments; the default where `promote` is given.
    inplace: the name of the in-place form to declare too, such as "aten::mul_.Tensor". out: also take `out=`.
    operators, inplace_operators: dunder names. node: the backward node's name. nondifferentiable: results never need gradients.
    returns: a result type for several outputs; outputs: how many of them (the first ones) have gradients, where that is not clear
    from their names. expose: "both", "function", "method" or "no". flops: `flops(*arguments)`. A kernel may take `out=` to write in place.
    """

    def declare(kernel: Any) -> Any:
        body = "tensors" if options.get("on") == "tensors" else "arrays"
        return _register(Op(text, kernel, body, options), options)

    return declare


def view(text: str, **options: Any) -> Any:
    """Declare an op whose kernel returns a view (or a list of views) of its first argument's array."""
    return op(text, view=True, **options)


def composite(text: str, **options: Any) -> Any:
    """Declare an op implemented by calling other ops: its body takes and returns tensors, the ops it calls record gradients."""

    def declare(body: Any) -> Any:
        return _register(Op(text, body, "composite", options), options)

    return declare


def function(name: str | None = None, *, expose: str = "both") -> Any:
    """Expose a Python function that chooses between overloads, as torch.<name> and as a method (`expose` narrows it)."""

    def declare(body: Any) -> Any:
        exposed_name = name or body.__name__
        if expose in ("both", "function"):
            FUNCTIONS[exposed_name] = body
        if expose in ("both", "method"):
            METHODS[exposed_name] = body
        return body

    return declare


# ---------------------------------------------------------------------------------------------------- used by generated functions


def wrap(array: Any) -> Any:
    """A tensor around a new array, without a gradient function."""
    if array.__class__ is not ndarray:
        array = asarray(array)
    tensor = new(Tensor)
    tensor._array = array
    return tensor


def wrap_result(array: Any, *operands: Any) -> Any:
    """A tensor around what a kernel returned, in the layout of a pointwise result if its operands are given."""
    return wrap(laid_out(array, *operands) if operands else array)


def as_view(base: Any, array: np.ndarray) -> Any:
    """A tensor around a view of `base`'s memory, without a gradient function."""
    tensor = new_view(base, array)
    storage = tensor._storage = storage_of(base)
    if base._base is not None:
        inherit_view(tensor, base)
    if storage._version:
        tensor._seen_version = storage._version
    if base._rg and not grad_state.enabled:
        mark_view(tensor)
    return tensor


def mark_view(view: Any) -> None:
    """Mark a view that was created with gradients off, of a tensor that requires them: it requires gradients but passes none on."""
    if grad_state.below:  # the op that runs this one sets the gradient function
        return
    view._rg = True
    view._view_made_in = "inference" if grad_state.inference else "no_grad"


def inherit_view(view: Any, source: Any) -> None:
    """A view of a view that must not be written to must not be written to either."""
    if source._multi_view:
        view._multi_view = True
    if source._view_made_in is not None:
        view._view_made_in = source._view_made_in


def new_in_inference(cls: Any) -> Any:
    """Replaces `new` while some thread is in inference mode: marks the tensors of that thread."""
    tensor = new_tensor(cls)
    if grad_state.inference and cls is Tensor:
        tensor._spoiled = INFERENCE
    return tensor


def new_view_in_inference(source: Any, array: np.ndarray) -> Any:
    """Replaces `new_view`, as `new_in_inference` replaces `new`."""
    view = new_plain_view(source, array)
    if grad_state.inference:
        view._spoiled = INFERENCE
    return view


def ints(value: Any, length: int = 0) -> Any:
    """A tuple of ints from an int, a sequence or a tensor; None stays None."""
    if value is None:
        return None
    if value.__class__ is int:
        return (value,) * (length or 1)
    if isinstance(value, (tuple, list)):
        return tuple([v if v.__class__ is int else as_index(v) for v in value])
    if hasattr(value, "__index__"):
        return (as_index(value),) * (length or 1)
    return tuple(int(v) for v in value)


def number(value: Any) -> Any:
    """A Python number from a number or a one-element tensor."""
    if isinstance(value, Tensor):
        return value._array.item()
    return value


PLAIN = frozenset((int, float, bool, str, complex, type(None)))


# A form is a tensor's shape, strides (in bytes) and type. Each has a number in this process, which the tensor caches in `_form`. The
# forms by number; 0 is none.
FORMS: list[Any] = [None]
_FORM_NUMBERS: dict[Any, int] = {}
_FORMS_LOCK = threading.Lock()


def form_of(tensor: Any) -> int:
    """The number of a tensor's form."""
    if tensor._is_sparse_layout:  # no strides
        form: Any = (tuple(tensor.shape), (), tensor.dtype._np.num)
    else:
        array = tensor._array
        form = (array.shape, array.strides, array.dtype.num)
    number = _FORM_NUMBERS.get(form)
    if number is None:
        with _FORMS_LOCK:
            number = _FORM_NUMBERS.get(form)
            if number is None:
                number = len(FORMS)
                FORMS.append(form)
                _FORM_NUMBERS[form] = number
    if not tensor._is_sparse_layout:
        tensor._form = number
    return number


def plain_value(value: Any) -> Any:
    """A hashable copy of an argument that is no tensor; tensors in lists are described by (shape, strides, type number)."""
    if value.__class__ in PLAIN:
        return value
    if isinstance(value, (list, tuple)):
        return tuple([_numbers_of(item) for item in value])
    return (
        "Storage" if isinstance(value, UntypedStorage) or hasattr(value, "_untyped_storage") else str(value)
    )


def _numbers_of(value: Any) -> Any:
    array = getattr(value, "_array", None)
    if array is not None:
        return (array.shape, array.strides, array.dtype.num)
    if isinstance(value, Tensor):  # sparse, or a meta tensor: no strides
        return (tuple(value.shape), (), value.dtype._np.num)
    return plain_value(value)


def _tensors_in(arguments: Any) -> Any:
    for value in arguments:
        if isinstance(value, Tensor):
            yield value
        elif isinstance(value, (tuple, list)):
            for item in value:
                if isinstance(item, Tensor):
                    yield item


def mark_node(node: Node) -> None:
    """While something records: note the thread that creates this node."""
    node.forward_thread = get_ident()


def save_result(tensor: Any, number: int = 0) -> SavedResult:
    """An output, for its own node to save: an alias, which does not refer back to the node."""
    alias = new(Tensor)
    alias._array = tensor._array
    storage = alias._storage = storage_of(tensor)
    return SavedResult(alias, storage._version, number)


# Ops whose output may overlap their inputs in part, as in torch.
UNASKED = frozenset(
    "sum mean norm linalg_vector_norm std var prod tril triu mm matmul bmm addmv softmax _softmax log_softmax _log_softmax "
    "max min nonzero any all add_ sub_ mul_ div_ copy_ masked_fill_ masked_scatter_ index_put_ _index_put_impl_ addmm_ addmv_ "
    "baddbmm_ addbmm_ fill_ bernoulli_ normal_"
    .split()
)  # fmt: skip


# Ops whose output may not share memory with an input, not even as the same elements.
_APART = frozenset("gather masked_select take kthvalue index_select".split())


# Ops that accept an output where a gradient is needed; torch marks it as differentiable, and raises in the backward pass of most.
COPIED_TO_OUT = frozenset(
    "softmax log_softmax diag conj_physical inner alias_copy as_strided_copy diagonal_copy expand_copy permute_copy select_copy "
    "slice_copy squeeze_copy t_copy transpose_copy unfold_copy unsqueeze_copy view_copy".split()
)


def _check_written(op: Op, outs: Any, arguments: tuple) -> None:
    """Refuse an output whose elements share memory, with each other or with an input."""
    inputs = [t._array for t in _tensors_in(arguments) if not t._array_missing]
    for tensor in outs:
        if tensor._array_missing:
            continue
        array = tensor._array
        is_expanded = array.size and any(s == 0 and n > 1 for s, n in zip(array.strides, array.shape))
        if not array.flags.writeable or is_expanded:
            raise RuntimeError(
                "unsupported operation: more than one element of the written-to tensor refers to a single memory location. "
                "Please clone() the tensor before performing the operation."
            )
        if op.name in _APART:
            from ._ops._overlap import TEXT

            if any(np.may_share_memory(array, operand) for operand in inputs):
                raise RuntimeError(TEXT)
        elif array.base is not None and op.name not in UNASKED:
            ask_overlap(array, *inputs)


def ask_overlap(written: np.ndarray, *operands: Any) -> None:
    """Refuse operands that overlap in part with `written`, a view that is written to."""
    base = written.base
    for operand in operands:
        if (
            operand is not written
            and operand.__class__ is ndarray
            and (operand.base is base or operand is base)
        ):
            from ._ops._overlap import ask

            ask(written, operand)


def call(op: Op, arguments: tuple) -> Any:
    """Call an op through its `entry`, with arguments in the order of its schema."""
    plain = [a for a in op.schema.arguments if not (a.written and a.name.startswith("out"))]
    first = next((i for i, a in enumerate(plain) if a.keyword_only), len(plain))
    named = {a.name: value for a, value in zip(plain[first:], arguments[first:])}
    return op.entry(*arguments[:first], **named)


def made(entry: Any, out: Any, *arguments: Any) -> Any:
    """Call an op with arguments in the order of its schema, and write its result to `out` if there is one."""
    return call(entry.op, arguments) if out is None else call_out(entry.op, out, arguments)


def call_out(op: Op, out: Any, arguments: tuple) -> Any:
    """Run `op` and write its result to `out`."""
    outs = out if isinstance(out, (tuple, list)) else (out,)
    for tensor in outs:
        if not isinstance(tensor, Tensor):
            raise TypeError(f"{op.name}(): argument 'out' must be Tensor, not {type(tensor).__name__}")
    if grad_state.enabled and any(
        t._rg for t in (outs if op.nondifferentiable else (*_tensors_in(arguments), *outs))
    ):
        if op.name in COPIED_TO_OUT and not any(t._rg for t in outs):
            return copied_into_out(call(op, arguments), outs[0])
        refuse_gradient(op.name)
    _check_written(op, outs, arguments)
    form = OUT_FORMS.get((op.uid, len(outs)))
    if form is None:
        from ._out_forms import out_form

        form = OUT_FORMS[op.uid, len(outs)] = out_form(op, len(outs))
    record(form, *arguments, *outs)
    if len(op.schema.returns) < 2:
        return outs[0]
    return tuple(outs) if op.return_type is None else op.return_type(tuple(outs))


def refuse_gradient(name: str) -> NoReturn:
    """Raise torch's error for `out=` of an op whose gradient is needed."""
    raise RuntimeError(
        f"{name}(): functions with out=... arguments don't support automatic differentiation, but one of the arguments requires grad."
    )


def into_out(result: Any, out: Any) -> Any:
    """`result`, a tensor or a tuple of them; or `out`, filled with its values and in the form of `result`."""
    if out is None:
        return result
    several = isinstance(result, tuple)
    for target, value in zip(out, result) if several else ((out, result),):
        if not isinstance(target, Tensor):
            raise TypeError(f"argument 'out' must be Tensor, not {type(target).__name__}")
        if grad_state.enabled and (value._rg or target._rg):
            node = value.grad_fn
            refuse_gradient("out" if node is None else getattr(node, "op", node).name)
        give_out(target, value._array)
    return type(result)(tuple(out)) if several else out


def copied_into_out(result: Any, out: Any) -> Any:
    """Like `into_out` for what torch copies to `out` with its gradient: functions that are composed of others."""
    if out is None or not result._rg:
        return into_out(result, out)
    if out.shape != result.shape:
        out.resize_(result.shape)
    return out.copy_(result)


def give_out(out: Any, array: np.ndarray) -> None:
    """Write `array` to the tensor `out`, resizing it as torch does."""
    target = out._array
    source, wanted = _dtype.BY_NUM[array.dtype.num], _dtype.BY_NUM[target.dtype.num]
    if not _dtype.can_cast(source, wanted):
        raise RuntimeError(
            f"result type {source._abbr} can't be cast to the desired output type {wanted._abbr}"
        )
    if target.shape != array.shape:
        if target.size:
            import warnings

            warnings.warn(
                f"An output with one or more elements was resized since it had shape {list(target.shape)}, which does not match the "
                f"required output shape {list(array.shape)}. This behavior is deprecated, and in a future PyTorch release outputs "
                "will not be resized unless they have zero elements. You can explicitly reuse an out tensor t by resizing it, "
                "inplace, to zero elements with t.resize_(0).",
                UserWarning,
                stacklevel=3,
            )
        out.resize_(array.shape)
        target = out._array
    np.copyto(target, array, casting="unsafe")
    storage_of(out)._version += 1


def write_inplace(op: Op, tensor: Any, array: np.ndarray) -> None:
    """Copy an in-place op's result into its tensor. Raises torch's errors for a dtype or shape that does not fit."""
    target = tensor._array
    if array.dtype is not target.dtype:
        source, wanted = _dtype.BY_NUM[array.dtype.num], _dtype.BY_NUM[target.dtype.num]
        if not _dtype.can_cast(source, wanted):
            raise RuntimeError(
                f"result type {source._abbr} can't be cast to the desired output type {wanted._abbr}"
            )
    if array.shape != target.shape:
        try:
            fits = np.broadcast_shapes(array.shape, target.shape) == target.shape
        except ValueError:
            fits = False
        if not fits:
            raise RuntimeError(
                f"output with shape {list(target.shape)} doesn't match the broadcast shape {list(array.shape)}"
            )
    np.copyto(target, array, casting="unsafe")


def only_named(function: str, given: tuple, named: dict[str, Any], *names: str) -> Any:
    """The value of the one keyword argument of a function whose sizes can also be given one by one, under one of `names`."""
    for name in named:
        if name not in names or given:
            raise TypeError(f"{function}() got an unexpected keyword argument '{name}'")
    return next(iter(named.values()))


def unalias(function: Any, aliases: dict[str, Any], /, **given: Any) -> Any:
    """Call `function` again with NumPy's argument names (axis, keepdims) replaced by torch's (dim, keepdim)."""
    for name, value in aliases.items():
        wanted = {
            "axis": "dim",
            "keepdims": "keepdim",
            "x": "input",
            "a": "input",
            "x1": "input",
            "x2": "other",
        }.get(name)
        if wanted not in given or given[wanted] not in (MISSING, None, False, ()):
            raise TypeError(f"{function.__name__}() got an unexpected keyword argument '{name}'")
        given[wanted] = value
    return function(**given)
