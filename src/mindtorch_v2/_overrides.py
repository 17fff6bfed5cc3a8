"""`__torch_function__`: overrides of torch's public functions by argument classes and by modes.

Before the first override exists, functions are called directly and nothing here costs anything. The first
class that defines `__torch_function__`, or the first mode, installs a guard in every public function: the
function's `__code__` is replaced in place, so that references taken earlier run the guard too. A guard
calls the original function directly if all arguments are of plain types and no mode is on; otherwise it
calls the innermost mode's handler, then the handlers of the arguments, then the original. Ops get their
guards in their own functions; methods and properties written in Tensor's class body get guarded copies in
a hidden base class of overriding subclasses, and in Tensor itself while a mode is on. `_torch_dispatch`
does the same one level lower, for single ops.
"""

from __future__ import annotations

import functools
import sys
import threading
import types
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from . import _device, _dispatch, _dtype
from ._function_names import named_arguments, normal_arguments, python_function_names
from ._graph import Switches
from ._size import Size

_PACKAGE = __name__.rpartition(".")[0]
ENABLED, SUBCLASSES_OFF, ALL_OFF = range(3)


class _ThreadState(threading.local):
    """Per thread: which overrides are disabled, and the active modes, innermost last."""

    function_overrides = ENABLED
    dispatch_disabled = False
    in_method = (
        False  # handlers are called for an operator or, while a program is traced, for a method of Tensor
    )

    def __init__(self) -> None:
        self.function_modes: list[Any] = []
        self.dispatch_modes: list[Any] = []


class _ProcessState:
    """For all threads, so that a guard reads one plain attribute."""

    n_function_modes = 0
    n_dispatch_users = 0  # active dispatch modes and live tensors whose class defines `__torch_dispatch__`
    functions_guarded = False  # the public functions, for `__torch_function__`
    ops_guarded = False  # each op's `run`, for `__torch_dispatch__`
    has_dispatch_classes = False


thread_state = _ThreadState()
process_state = _ProcessState()


def disabled_torch_function(func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
    """`__torch_function__` of classes without overrides: functions treat their objects as plain tensors."""
    with overrides_limited(SUBCLASSES_OFF):
        return func(*args, **(kwargs or {}))


def disabled_torch_dispatch(func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
    """`__torch_dispatch__` of classes without overrides: ops treat their objects as plain tensors."""
    from ._torch_dispatch import no_dispatch

    with no_dispatch():
        return func(*args, **(kwargs or {}))


disabled_torch_function.__name__ = disabled_torch_function.__qualname__ = "_disabled_torch_function_impl"
disabled_torch_dispatch.__name__ = disabled_torch_dispatch.__qualname__ = "_disabled_torch_dispatch_impl"


class _TypeSet(set[type]):
    """A set hashed by identity: code objects that have it among their constants stay hashable.

    Profilers use code objects as dict keys.
    """

    __hash__ = object.__hash__  # type: ignore[assignment]


# Classes of arguments that have no overrides and contain nothing that could. `Tensor` and the library's own
# subclasses are added later.
plain_types = _TypeSet((
    int, float, bool, complex, str, bytes, type(None), type(Ellipsis), slice, np.ndarray, Size, *_dispatch.NUMBERS,
    _dtype.dtype, _dtype.layout, _dtype.memory_format, _device.device,
))  # fmt: skip


@contextmanager
def overrides_limited(level: int) -> Iterator[None]:
    """Disable the overrides of classes (SUBCLASSES_OFF), or of classes and modes (ALL_OFF)."""
    before = thread_state.function_overrides
    thread_state.function_overrides = max(before, level)
    try:
        yield
    finally:
        thread_state.function_overrides = before


def run_without_overrides(function: Any, *arguments: Any) -> bool:
    """Call a function with all overrides disabled. If they already are, return False without calling it."""
    if thread_state.function_overrides == ALL_OFF:
        return False
    with overrides_limited(ALL_OFF):
        function(*arguments)
    return True


# ---------------------------------------------------------------------------------------------------- calling handlers


def has_override(cls: type) -> bool:
    """Whether a class overrides torch's functions."""
    if cls in plain_types or cls is _dispatch.Tensor:
        return False
    handler = getattr(cls, "__torch_function__", None)
    return handler is not None and handler is not disabled_torch_function


def overloaded_arguments(arguments: Any) -> list[Any]:
    """The arguments with overrides, one per class, in calling order: left to right, a class before its bases."""
    overloaded: list[Any] = []
    classes: list[type] = []
    for argument in arguments:
        cls = type(argument)
        if cls in classes or not has_override(cls):
            continue
        index = next((i for i, earlier in enumerate(classes) if issubclass(cls, earlier)), len(classes))
        overloaded.insert(index, argument)
        classes.insert(index, cls)
    return overloaded


def _flattened(args: tuple, kwargs: dict) -> Iterator[Any]:
    """Arguments that may have overrides; lists and tuples are flattened one level deep, as in torch."""
    for value in (*args, *kwargs.values()) if kwargs else args:
        cls = value.__class__
        if cls is tuple or cls is list:
            yield from value
        elif cls not in plain_types:
            yield value


def call_function(function: Any, original: Any, args: tuple, kwargs: dict) -> Any:
    """Call the innermost mode's handler, else the arguments' handlers, else `original`, the unguarded function."""
    state = thread_state
    if state.function_overrides != ALL_OFF:
        if state.function_modes:
            return _call_mode(function, args, kwargs)
        if state.function_overrides == ENABLED:
            overloaded = overloaded_arguments(_flattened(args, kwargs))
            if overloaded:
                return call_handlers(function, overloaded, args, kwargs)
    return original(*args, **kwargs)


def call_python_function(function: Any, original: Any, args: tuple, kwargs: dict) -> Any:
    """The same for functions that torch writes in Python: handlers get their arguments in a normal form."""
    state = thread_state
    overridden = state.function_overrides != ALL_OFF and (
        state.function_modes
        or (state.function_overrides == ENABLED and overloaded_arguments(_flattened(args, kwargs)))
    )
    if not overridden:
        return original(*args, **kwargs)
    if function.__module__ == f"{_PACKAGE}.nn.init":
        args, kwargs = named_arguments(original, args, kwargs)
    else:
        args, kwargs = normal_arguments(original, args, kwargs)
    if kwargs.get("return_indices") is True and id(function) in _with_indices:
        function = _with_indices[id(function)]
    return call_function(function, getattr(function, "__wrapped__", original), args, kwargs)


def call_factory(function: Any, original: Any, args: tuple, kwargs: dict) -> Any:
    """The same for functions that only modes and objects that are no tensors (sizes and devices of proxies) can override."""
    if thread_state.function_modes and thread_state.function_overrides != ALL_OFF:
        return _call_mode(function, args, kwargs)
    if thread_state.function_overrides == ENABLED:
        overloaded = overloaded_arguments(_flattened(args, kwargs))
        if any(not isinstance(argument, _dispatch.Tensor) for argument in overloaded):
            return call_handlers(function, overloaded, args, kwargs)
    with overrides_limited(SUBCLASSES_OFF):
        return original(*args, **kwargs)


def _call_mode(function: Any, args: tuple, kwargs: dict, classes: tuple | None = None) -> Any:
    """Call the innermost mode's handler with that mode off; if it declines, the arguments' handlers."""
    modes = thread_state.function_modes
    mode = modes.pop()
    try:
        subclasses_on = thread_state.function_overrides == ENABLED
        overloaded = overloaded_arguments(_flattened(args, kwargs)) if subclasses_on else []
        classes = tuple(type(o) for o in overloaded) if classes is None else classes
        result = mode.__torch_function__(function, classes, args, kwargs or None)
        if result is NotImplemented and overloaded:
            return call_handlers(function, overloaded, args, kwargs)
    finally:
        modes.append(mode)
    if result is NotImplemented:
        raise TypeError(_not_implemented_message(function, [], mode))
    return result


def call_handlers(function: Any, overloaded: list[Any], args: tuple, kwargs: dict) -> Any:
    """The first handler result that is not NotImplemented."""
    classes = tuple(type(o) for o in overloaded)
    for argument in overloaded:
        handler = argument.__torch_function__
        if getattr(handler, "__self__", None) is argument:
            warnings.warn(
                "Defining your `__torch_function__` as a plain method is deprecated and will be an error in future, please define it as a "
                "classmethod.",
                stacklevel=3,
            )
        result = handler(function, classes, args, kwargs)
        if result is not NotImplemented:
            return result
    raise TypeError(_not_implemented_message(function, overloaded, None))


def _not_implemented_message(function: Any, overloaded: list[Any], mode: Any) -> str:
    from .overrides import resolve_name

    name = resolve_name(function) or f"{function.__module__}.{function.__name__}"
    if name.startswith("torch.nn."):
        classes = ", ".join(repr(type(o)) for o in overloaded)
        return f"no implementation found for '{name}' on types that implement __torch_function__: [{classes}]"
    lines = [f"  - tensor subclass {type(o)!r}\n" for o in overloaded]
    if mode is not None:
        lines.insert(0, f"  - mode object {mode!r}\n")
    return (
        f"Multiple dispatch failed for '{name}'; all __torch_function__ handlers returned NotImplemented:\n\n{''.join(lines)}\n"
        "For more information, try re-running with TORCH_LOGS=not_implemented"
    )


def default_torch_function(cls: type, func: Any, types: tuple, args: tuple = (), kwargs: Any = None) -> Any:
    """Tensor's own `__torch_function__`: call without subclass overrides, return tensors as instances of `cls`."""
    if not all(issubclass(cls, other) for other in types):
        return NotImplemented
    with overrides_limited(SUBCLASSES_OFF):
        result = func(*args, **(kwargs or {}))
    return result if func in nowrap_functions() else wrap_tensors(result, cls)


@functools.cache
def nowrap_functions() -> frozenset:
    """Property getters whose results the default handler does not convert to the subclass."""
    Tensor = _dispatch.Tensor
    return frozenset(
        vars(Tensor)[name].__get__ for name in ("grad",) if isinstance(vars(Tensor)[name], property)
    )


def wrap_tensors(result: Any, cls: type) -> Any:
    """`result` with its tensors converted to `cls`."""
    if cls is _dispatch.Tensor:
        return result
    if isinstance(result, _dispatch.Tensor):
        return result if isinstance(result, cls) else result.as_subclass(cls)
    if isinstance(result, (tuple, list)):
        return type(result)([wrap_tensors(item, cls) for item in result])
    return result


# ---------------------------------------------------------------------------------------------------- guards


# Templates of guards. `{cells}` creates as many free variables as the guarded function has: Python requires it
# to replace `__code__`. Quoted names stand for objects that `guard` puts among the code's constants.
_GUARD = """
def make():
    {cells} = None
    def guard(*args, **kwargs):
        for value in args:
            if value.__class__ not in '<plain_types>': break
        else:
            if not kwargs and not '<process_state>'.n_function_modes: return '<original>'(*args)
        return '<call>'('<function>', '<original>', args, kwargs)
        {cells}
    return guard
"""
_OPERATOR_GUARD = """
def make():
    {cells} = None
    def guard(a, b):
        if a.__class__ in '<plain_types>' and b.__class__ in '<plain_types>' and not '<process_state>'.n_function_modes:
            return '<original>'(a, b)
        return '<call>'('<function>', '<original>', (a, b))
        {cells}
    return guard
"""
_UNARY_GUARD = (
    _OPERATOR_GUARD.replace("(a, b)", "(a)")
    .replace(" and b.__class__ in '<plain_types>'", "")
    .replace("(a))", "(a,))")
)
RUN_GUARD = """
def make():
    {cells} = None
    def guard(*args):
        if '<process_state>'.n_dispatch_users: return '<call>'('<function>', '<original>', args)
        return '<original>'(*args)
        {cells}
    return guard
"""


@functools.cache
def _guard_code(template: str, n_cells: int) -> types.CodeType:
    """A guard's code with `n_cells` free variables."""
    namespace: dict[str, Any] = {}
    source = template.replace("{cells}", "[" + ", ".join(f"cell{i}" for i in range(n_cells)) + "]")
    source = source.replace("= None", f"= [None] * {n_cells}")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)  # the templates call strings
        exec(compile(source, "<op guard>", "exec"), namespace)  # noqa: S102  (text written above)
    return namespace["make"]().__code__


def guard(function: types.FunctionType, template: str, caller: Any, shown: Any = None) -> types.FunctionType:
    """Replace a function's code by a guard, in place, and return a copy of the function as it was.

    The guard passes calls that may be overridden to `caller`. `shown` is the function that handlers get,
    where it is not `function` itself.
    """
    original = types.FunctionType(
        function.__code__,
        function.__globals__,
        function.__name__,
        function.__defaults__,
        function.__closure__,
    )
    original.__kwdefaults__, original.__module__, original.__qualname__ = (
        function.__kwdefaults__, function.__module__, function.__qualname__,
    )  # fmt: skip
    original.__annotations__ = function.__annotations__
    objects = {
        "<plain_types>": plain_types,
        "<process_state>": process_state,
        "<original>": original,
        "<call>": caller,
        "<function>": shown or function,
    }
    code = _guard_code(template, len(function.__closure__ or ()))
    consts = tuple(objects.get(c, c) if isinstance(c, str) else c for c in code.co_consts)
    function.__code__ = code.replace(co_consts=consts, co_name=function.__code__.co_name)
    function.__defaults__ = function.__kwdefaults__ = None
    function.__wrapped__ = original  # type: ignore[attr-defined]  # `inspect.signature` reads it
    return original


def _call_operator(function: Any, original: Any, args: tuple) -> Any:
    """Call an operator's handlers; if all decline, return NotImplemented: Python then tries the other operand."""
    state = thread_state
    level = state.function_overrides
    if level == ALL_OFF or not (
        state.function_modes or (level == ENABLED and overloaded_arguments(_flattened(args, {})))
    ):
        return original(*args)
    outer, state.in_method = state.in_method, True
    try:
        return call_function(function, original, args, {})
    except TypeError:
        return NotImplemented
    finally:
        state.in_method = outer


# Functions without overrides, and functions that only modes can override, by torch's lists.
IGNORED = frozenset(
    "as_subclass is_tensor _make_subclass broadcast_shapes __delitem__ __dir__ __hash__ __new__ __torch_function__".split()
)
FACTORIES = frozenset(
    "arange as_tensor asarray bartlett_window blackman_window empty empty_permuted empty_strided eye fill from_dlpack from_file from_numpy "
    "frombuffer full hamming_window hann_window kaiser_window linspace logspace normal ones rand randint randn randperm range result_type "
    "scalar_tensor sparse_bsc_tensor sparse_bsr_tensor sparse_compressed_tensor sparse_coo_tensor sparse_csc_tensor sparse_csr_tensor "
    "tensor tril_indices triu_indices vander zeros".split()
)
INITIALIZERS = ("constant_", "kaiming_uniform_", "normal_", "uniform_")  # in torch.nn.init, with overrides
# The function that handlers get for an operator.
_OPERATOR_FUNCTIONS = {
    "__add__": "add", "__radd__": "add", "__iadd__": "add_", "__sub__": "sub", "__isub__": "sub_", "__mul__": "mul", "__rmul__": "mul",
    "__imul__": "mul_", "__truediv__": "div", "__itruediv__": "div_", "__rtruediv__": "__rdiv__", "__mod__": "remainder", "__neg__": "neg",
    "__pow__": "pow", "__abs__": "abs", "__lt__": "lt", "__le__": "le", "__gt__": "gt", "__ge__": "ge", "__ne__": "ne", "__matmul__": "matmul",
}  # fmt: skip


def guard_public_functions() -> None:
    """Install a guard in every public function, once per process."""
    if process_state.functions_guarded:
        return
    process_state.functions_guarded = True
    Switches.quietly = run_without_overrides
    Tensor = _dispatch.Tensor
    plain_types.add(Tensor)
    _rename_functions()
    operators = _operator_names()
    named = {
        id(f) for table in (_dispatch.METHODS, _dispatch.FUNCTIONS) for n, f in table.items() if n[:2] != "__"
    }
    ops = {id(op.entry): (op, "entry") for op in _dispatch.OPS.values()}
    ops |= {id(op.operator): (op, "operator") for op in _dispatch.OPS.values()}
    seen: set[int] = set()
    python_functions = python_function_names()
    for function in _public_functions():
        if id(function) in seen:
            continue
        seen.add(id(function))
        name = operators.get(id(function))
        if name is not None and id(function) not in named and name not in ("__getitem__", "__setitem__"):
            shown = _dispatch.METHODS.get(_OPERATOR_FUNCTIONS.get(name, ""), vars(Tensor).get(name, function))
            unary = id(function) not in ops and function.__code__.co_argcount == 1
            original = guard(function, _UNARY_GUARD if unary else _OPERATOR_GUARD, _call_operator, shown)
        else:
            caller = call_factory if function.__name__ in FACTORIES else call_function
            if id(function) in python_functions or function.__module__ == f"{_PACKAGE}.nn.init":
                caller = call_python_function
            original = guard(function, _GUARD, caller)
        if id(function) in ops:
            op, part = ops[id(function)]
            op.bodies[part] = original
        else:
            _functions_by_code.setdefault(original.__code__, []).append(function)
    _with_indices.update(_pools_with_indices())


def _pools_with_indices() -> dict[int, Any]:
    """The function that torch calls for `return_indices=True`, by the id of the pooling function."""
    from .nn import functional

    names = [name for name in vars(functional) if name.endswith("_with_indices")]
    pools = {name: name.removesuffix("_with_indices") for name in names}
    return {id(getattr(functional, pool)): getattr(functional, name) for name, pool in pools.items()}


def _operator_names() -> dict[int, str]:
    """Dunder names of the functions behind Tensor's operators, by the function's id."""
    names: dict[int, str] = {}
    for dunder, function in _dispatch.METHODS.items():
        if dunder.startswith("__") and (id(function) not in names or dunder in _OPERATOR_FUNCTIONS):
            names[id(function)] = dunder
    return names


def _rename_functions() -> None:
    """Set `__name__` of functions to their public name: handlers read it."""
    tables = (_dispatch.METHODS, _dispatch.FUNCTIONS)
    for table in tables:
        for name, function in table.items():
            if not isinstance(function, types.FunctionType) or function.__name__ == name:
                continue
            if not any(t.get(function.__name__) is function for t in tables):
                function.__name__ = function.__qualname__ = name


def _public_functions() -> Iterator[types.FunctionType]:
    """Every function with overrides: torch's, Tensor's methods that are ops, and those of `torch.nn.functional` etc."""
    from importlib import import_module

    for table in (_dispatch.METHODS, _dispatch.FUNCTIONS):
        for name, function in table.items():
            if isinstance(function, types.FunctionType) and name not in IGNORED:
                yield function
    for path in ("nn.functional", "functional", "linalg", "fft", "special", "nn.init"):
        module = import_module(f"{_PACKAGE}.{path}")
        for name in INITIALIZERS if path == "nn.init" else dir(module):
            function = None if name.startswith("_") or name in IGNORED else getattr(module, name)
            if not isinstance(function, types.FunctionType):
                continue
            if (function.__module__ or "").startswith(_PACKAGE):
                yield function


_with_indices: dict[int, Any] = {}
# Guarded functions that are no ops, by their original code.
_functions_by_code: dict[types.CodeType, list[Any]] = {}


def call_first_override(op: Any, arguments: tuple) -> Any:
    """The first call with an overriding argument that is no tensor: install the guards, then call its handler.

    The function is already running without a guard. The frames of this package tell which public function
    the program called, and with which arguments.
    """
    guard_public_functions()
    frame: Any = sys._getframe(2)  # above `recover` or `unknown_operand`: the op's own function
    function: Any = op.entry if hasattr(op.entry, "__wrapped__") else None
    function = function or _dispatch.FUNCTIONS.get(op.name) or _dispatch.METHODS[op.name]
    args, kwargs = arguments, {}
    while frame is not None and frame.f_globals.get("__name__", "").startswith(_PACKAGE):
        code = frame.f_code
        outer = next((f for f in _functions_by_code.get(code, ()) if _is_call_of(frame, f)), None)
        if outer is not None:
            n_positional = code.co_argcount
            function, args = outer, tuple(frame.f_locals[n] for n in code.co_varnames[:n_positional])
            names = code.co_varnames[n_positional : n_positional + code.co_kwonlyargcount]
            keyword_defaults = outer.__wrapped__.__kwdefaults__ or {}
            kwargs = {n: v for n in names if (v := frame.f_locals[n]) is not keyword_defaults.get(n)}
        frame = frame.f_back
    original = function.__wrapped__
    defaults = original.__defaults__ or ()
    # handlers do not get trailing arguments that were left at their defaults
    while defaults and args and args[-1] is defaults[-1]:
        args, defaults = args[:-1], defaults[:-1]
    return call_function(function, original, args, kwargs)


def _is_call_of(frame: Any, function: Any) -> bool:
    """Whether a frame is a call of this function and not of another one with the same code: compares closures."""
    names = frame.f_code.co_freevars
    cells = function.__wrapped__.__closure__ or ()
    return all(frame.f_locals.get(name) is cell.cell_contents for name, cell in zip(names, cells))


# ------------------------------------------------------------------------- methods and properties in Tensor's class body


IGNORED_MEMBERS = IGNORED | frozenset(
    "__setstate__ __array_wrap__ __init_subclass__ __torch_dispatch__ _make_wrapper_subclass _only_item __iter__ __copy__ __index__".split()
)


# Methods that torch treats as functions of several arguments: a mode's `types` does not contain the tensor's class.
_VARIADIC_METHODS = frozenset("size stride is_contiguous numpy requires_grad_ type".split())


def _call_member(function: Any, original: Any, args: tuple, kwargs: dict) -> Any:
    """`call_function` for members of one tensor: a mode's `types` is that tensor's class, overriding or not."""
    if thread_state.function_modes and thread_state.function_overrides != ALL_OFF:
        return _call_mode(function, args, kwargs, (type(args[0]),))
    return call_function(function, original, args, kwargs)


def _guarded_method(name: str, original: Any) -> Any:
    caller = call_function if name in _VARIADIC_METHODS else _call_member

    @functools.wraps(original)
    def method(*args: Any, **kwargs: Any) -> Any:
        return caller(getattr(_dispatch.Tensor, name), original, args, kwargs)

    return method


def _guarded_property(name: str, original: property) -> property:
    getter, setter = original.fget, original.fset

    def fget(self: Any) -> Any:
        return _call_member(vars(_dispatch.Tensor)[name].__get__, getter, (self,), {})

    def fset(self: Any, value: Any) -> None:
        _call_member(vars(_dispatch.Tensor)[name].__set__, setter, (self, value), {})

    fget.__name__ = fget.__qualname__ = name
    return property(fget, None if setter is None else fset, original.fdel, original.__doc__)


@functools.cache
def guarded_members() -> dict[str, Any]:
    """Guarded copies of Tensor's methods and properties that are no ops, by name."""
    members: dict[str, Any] = {}
    for name, value in vars(_dispatch.Tensor).items():
        if name in IGNORED_MEMBERS:
            continue
        if isinstance(value, property):
            members[name] = _guarded_property(name, value)
        elif isinstance(value, types.FunctionType) and name not in _dispatch.METHODS and _is_own(value):
            members[name] = _guarded_method(name, value)
    return members


def _is_own(function: types.FunctionType) -> bool:
    """Whether this package defines a function. A method that a program added to Tensor is called as it is, as in torch."""
    return (function.__globals__.get("__package__") or "").partition(".")[0] == _PACKAGE


@functools.cache
def original_members() -> dict[str, Any]:
    """The unguarded members of the same names."""
    return {name: vars(_dispatch.Tensor)[name] for name in guarded_members()}


@functools.cache
def overridable_base() -> type:
    """The hidden base class of overriding subclasses of Tensor."""
    original_members()
    namespace = {
        **guarded_members(),
        "__module__": _PACKAGE,
        "__doc__": "A tensor whose class overrides torch's functions.",
    }
    return type("Tensor", (_dispatch.Tensor,), namespace)


def register_subclass(cls: type) -> None:
    """Enable the overrides of a new subclass of Tensor, unless it is the library's own or disables them."""
    Tensor = _dispatch.Tensor
    if Tensor is None or cls.__module__.startswith(_PACKAGE + ".") or cls.__module__ == _PACKAGE:
        plain_types.add(cls)
        return
    dispatches = getattr(cls, "__torch_dispatch__", disabled_torch_dispatch) is not disabled_torch_dispatch
    process_state.has_dispatch_classes = process_state.has_dispatch_classes or dispatches
    if dispatches and getattr(cls.__torch_function__, "__func__", None) is Tensor.__torch_function__.__func__:
        cls.__torch_function__ = disabled_torch_function  # type: ignore[attr-defined]
    if cls.__torch_function__ is disabled_torch_function and not dispatches:
        plain_types.add(cls)
        return
    guard_public_functions()
    base = overridable_base()
    if not issubclass(cls, base) and Tensor in cls.__bases__:
        cls.__bases__ = tuple(base if b is Tensor else b for b in cls.__bases__)


# ---------------------------------------------------------------------------------------------------- modes


def push_mode(mode: Any) -> None:
    """Activate a `__torch_function__` mode on this thread."""
    guard_public_functions()
    thread_state.function_modes.append(mode)
    process_state.n_function_modes += 1
    if process_state.n_function_modes == 1:
        original_members()
        for name, value in guarded_members().items():
            setattr(_dispatch.Tensor, name, value)


def pop_mode() -> Any:
    """Deactivate the innermost `__torch_function__` mode."""
    if not thread_state.function_modes:
        raise RuntimeError("trying to pop from empty mode stack")
    mode = thread_state.function_modes.pop()
    process_state.n_function_modes -= 1
    if process_state.n_function_modes == 0:
        for name, value in original_members().items():
            setattr(_dispatch.Tensor, name, value)
    return mode
