"""`__torch_function__`: calls of torch's functions that arguments or modes want to answer themselves.

Nothing of this costs anything before it is used. The first class that answers for itself, or the first mode, puts a guard in front of
every public function: its code is exchanged in place, so that whoever holds the function already meets the guard too. Methods and
properties that are written in Tensor's body are guarded in a hidden base class of such classes, not in Tensor.
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
from ._graph import Switches
from ._size import Size

_PACKAGE = __name__.rpartition(".")[0]
ENABLED, SUBCLASSES_OFF, ALL_OFF = range(3)


class _Here(threading.local):
    """Per thread: what is switched off, and the modes that are on, innermost last."""

    off = ENABLED
    skip = False
    dispatch_off = False  # nobody is asked about ops

    def __init__(self) -> None:
        self.modes: list[Any] = []
        self.dispatch_modes: list[Any] = []


class _Process:
    """For all threads, so that a guard asks one plain attribute: how many modes are on, and whether classes dispatch."""

    modes = 0
    dispatch = 0
    guarded = False  # the public functions
    routed = False  # the ops' own functions, for `__torch_dispatch__`
    dispatch_classes = False


here = _Here()
process = _Process()


def disabled_function(func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
    """`__torch_function__` of classes that let every function treat them as plain tensors."""
    with switched(SUBCLASSES_OFF):
        return func(*args, **(kwargs or {}))


def disabled_dispatch(func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
    """`__torch_dispatch__` of classes that let every op treat them as plain tensors."""
    from ._torch_dispatch import unasked

    with unasked():
        return func(*args, **(kwargs or {}))


disabled_function.__name__ = disabled_function.__qualname__ = "_disabled_torch_function_impl"
disabled_dispatch.__name__ = disabled_dispatch.__qualname__ = "_disabled_torch_dispatch_impl"



class _Classes(set[type]):
    """A set with an identity, so that code which has it among its constants can be hashed (profilers keep code in dicts)."""

    __hash__ = object.__hash__  # type: ignore[assignment]


# classes of arguments that answer nothing themselves and hold nothing that could; tensors of the library's own join them
safe = _Classes((
    int, float, bool, complex, str, bytes, type(None), type(Ellipsis), slice, np.ndarray, Size, *_dispatch.NUMBERS,
    _dtype.dtype, _dtype.layout, _dtype.memory_format, _device.device,
))  # fmt: skip


@contextmanager
def switched(off: int) -> Iterator[None]:
    """Nobody answers inside: no class (SUBCLASSES_OFF), no mode either (ALL_OFF)."""
    before = here.off
    here.off = max(before, off)
    try:
        yield
    finally:
        here.off = before


def quietly(function: Any, *arguments: Any) -> bool:
    """Call a function of the library's inside, where nobody is asked; False, and no call, if nobody is asked anyway."""
    if here.off == ALL_OFF:
        return False
    with switched(ALL_OFF):
        function(*arguments)
    return True


# ---------------------------------------------------------------------------------------------------- asking


def answers(cls: type) -> bool:
    """Whether objects of a class answer calls of torch's functions."""
    if cls in safe or cls is _dispatch.Tensor:
        return False
    found = getattr(cls, "__torch_function__", None)
    return found is not None and found is not disabled_function


def overloaded(arguments: Any) -> list[Any]:
    """The arguments that answer, one of each class, in the order in which they are asked: from left to right, a class before its bases."""
    found: list[Any] = []
    kinds: list[type] = []
    for argument in arguments:
        cls = type(argument)
        if cls in kinds or not answers(cls):
            continue
        place = next((i for i, kind in enumerate(kinds) if issubclass(cls, kind)), len(kinds))
        found.insert(place, argument)
        kinds.insert(place, cls)
    return found


def _spread(args: tuple, kwargs: dict) -> Iterator[Any]:
    for value in (*args, *kwargs.values()) if kwargs else args:
        cls = value.__class__
        if cls is tuple or cls is list:
            yield from value
        elif cls not in safe:
            yield value


def call(function: Any, plain: Any, args: tuple, kwargs: dict) -> Any:
    """Call a function of torch's: the innermost mode answers, or else the arguments, or else the function itself, which is `plain`."""
    state = here
    if state.off != ALL_OFF and not state.skip:
        if state.modes:
            return _ask_mode(function, args, kwargs)
        if state.off == ENABLED:
            found = overloaded(_spread(args, kwargs))
            if found:
                return ask(function, found, args, kwargs)
    elif state.skip:
        state.skip = False
    return plain(*args, **kwargs)


def call_factory(function: Any, plain: Any, args: tuple, kwargs: dict) -> Any:
    """The same for functions about which modes alone are asked."""
    if here.modes and here.off != ALL_OFF:
        return _ask_mode(function, args, kwargs)
    with switched(SUBCLASSES_OFF):
        return plain(*args, **kwargs)


def _ask_mode(function: Any, args: tuple, kwargs: dict, kinds: tuple | None = None) -> Any:
    modes = here.modes
    mode = modes.pop()
    try:
        found = overloaded(_spread(args, kwargs)) if here.off == ENABLED else []
        kinds = tuple(type(o) for o in found) if kinds is None else kinds
        result = mode.__torch_function__(function, kinds, args, kwargs or None)
        if result is NotImplemented and found:
            return ask(function, found, args, kwargs)
    finally:
        modes.append(mode)
    if result is NotImplemented:
        raise TypeError(_unanswered(function, [], mode))
    return result


def ask(function: Any, found: list[Any], args: tuple, kwargs: dict) -> Any:
    """The first answer that is not NotImplemented."""
    kinds = tuple(type(o) for o in found)
    for asked in found:
        handler = asked.__torch_function__
        if getattr(handler, "__self__", None) is asked:
            warnings.warn(
                "Defining your `__torch_function__` as a plain method is deprecated and will be an error in future, please define it as a "
                "classmethod.",
                stacklevel=3,
            )
        result = handler(function, kinds, args, kwargs)
        if result is not NotImplemented:
            return result
    raise TypeError(_unanswered(function, found, None))


def _unanswered(function: Any, found: list[Any], mode: Any) -> str:
    from .overrides import resolve_name

    name = resolve_name(function) or f"{function.__module__}.{function.__name__}"
    if name.startswith("torch.nn."):
        kinds = ", ".join(repr(type(o)) for o in found)
        return f"no implementation found for '{name}' on types that implement __torch_function__: [{kinds}]"
    lines = [f"  - tensor subclass {type(o)!r}\n" for o in found]
    if mode is not None:
        lines.insert(0, f"  - mode object {mode!r}\n")
    return (
        f"Multiple dispatch failed for '{name}'; all __torch_function__ handlers returned NotImplemented:\n\n{''.join(lines)}\n"
        "For more information, try re-running with TORCH_LOGS=not_implemented"
    )


def default_function(cls: type, func: Any, types: tuple, args: tuple = (), kwargs: Any = None) -> Any:
    """Tensor's own answer: call the function on plain tensors, and make its tensors instances of `cls`."""
    if not all(issubclass(cls, kind) for kind in types):
        return NotImplemented
    with switched(SUBCLASSES_OFF):
        result = func(*args, **(kwargs or {}))
    return result if func in unconverted() else converted(result, cls)


@functools.cache
def unconverted() -> frozenset:
    """Getters whose tensors stay what they are."""
    Tensor = _dispatch.Tensor
    return frozenset(
        vars(Tensor)[name].__get__ for name in ("grad",) if isinstance(vars(Tensor)[name], property)
    )


def converted(result: Any, cls: type) -> Any:
    """A result with its tensors as instances of `cls`."""
    if cls is _dispatch.Tensor:
        return result
    if isinstance(result, _dispatch.Tensor):
        return result if isinstance(result, cls) else result.as_subclass(cls)
    if isinstance(result, (tuple, list)):
        return type(result)([converted(item, cls) for item in result])
    return result


# ---------------------------------------------------------------------------------------------------- guards


# `cells` makes as many free variables as the guarded function has; names in quotes stand for objects that are put in their place
_GUARD = """
def make():
    {cells} = None
    def guard(*args, **kwargs):
        for value in args:
            if value.__class__ not in '<safe>': break
        else:
            if not kwargs and not '<process>'.modes: return '<plain>'(*args)
        return '<call>'('<function>', '<plain>', args, kwargs)
        {cells}
    return guard
"""
_OPERATOR_GUARD = """
def make():
    {cells} = None
    def guard(a, b):
        if a.__class__ in '<safe>' and b.__class__ in '<safe>' and not '<process>'.modes: return '<plain>'(a, b)
        return '<call>'('<function>', '<plain>', (a, b))
        {cells}
    return guard
"""
_UNARY_GUARD = (
    _OPERATOR_GUARD.replace("(a, b)", "(a)")
    .replace(" and b.__class__ in '<safe>'", "")
    .replace("(a))", "(a,))")
)
_RUN_GUARD = """
def make():
    {cells} = None
    def guard(*args):
        if '<process>'.dispatch: return '<call>'('<function>', '<plain>', args)
        return '<plain>'(*args)
        {cells}
    return guard
"""


@functools.cache
def _code(text: str, cells: int) -> types.CodeType:
    """A guard's code with so many free variables."""
    made: dict[str, Any] = {}
    text = text.replace("{cells}", "[" + ", ".join(f"cell{i}" for i in range(cells)) + "]")
    text = text.replace("= None", f"= [None] * {cells}")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)  # strings that are called
        exec(compile(text, "<op guard>", "exec"), made)  # noqa: S102  (text written above)
    return made["make"]().__code__


def guard(function: types.FunctionType, text: str, ask: Any, shown: Any = None) -> types.FunctionType:
    """Put a guard in front of a function, in place; gives the function as it was. `shown`: what those who are asked get to see."""
    plain = types.FunctionType(
        function.__code__,
        function.__globals__,
        function.__name__,
        function.__defaults__,
        function.__closure__,
    )
    plain.__kwdefaults__, plain.__module__, plain.__qualname__ = (
        function.__kwdefaults__, function.__module__, function.__qualname__,
    )  # fmt: skip
    plain.__annotations__ = function.__annotations__
    objects = {
        "<safe>": safe, "<process>": process, "<plain>": plain, "<call>": ask, "<function>": shown or function,
    }  # fmt: skip
    code = _code(text, len(function.__closure__ or ()))
    consts = tuple(objects.get(c, c) if isinstance(c, str) else c for c in code.co_consts)
    function.__code__ = code.replace(co_consts=consts, co_name=function.__code__.co_name)
    function.__defaults__ = function.__kwdefaults__ = None
    function.__wrapped__ = plain  # type: ignore[attr-defined]  # its signature
    return plain


def _call_operator(function: Any, plain: Any, args: tuple) -> Any:
    """An operator: where nobody can answer, the other operand's turn comes."""
    state = here
    if state.off == ALL_OFF or not (state.modes or (state.off == ENABLED and overloaded(_spread(args, {})))):
        return plain(*args)
    try:
        return call(function, plain, args, {})
    except TypeError:
        return NotImplemented


# Functions that nobody is asked about, and those about which modes alone are, by torch's list.
_IGNORED = frozenset(
    "as_subclass is_tensor _make_subclass broadcast_shapes __delitem__ __dir__ __hash__ __new__ __torch_function__".split()
)
FACTORIES = frozenset(
    "arange as_tensor asarray bartlett_window blackman_window empty empty_permuted empty_strided eye fill from_dlpack from_file from_numpy "
    "frombuffer full hamming_window hann_window kaiser_window linspace logspace normal ones rand randint randn randperm range result_type "
    "scalar_tensor sparse_bsc_tensor sparse_bsr_tensor sparse_compressed_tensor sparse_coo_tensor sparse_csc_tensor sparse_csr_tensor "
    "tensor tril_indices triu_indices vander zeros".split()
)
_INITIALIZERS = ("constant_", "kaiming_uniform_", "normal_", "uniform_")  # those of torch.nn.init that are asked about
# What is asked about when an operator is used.
_SHOWN = {
    "__add__": "add", "__radd__": "add", "__iadd__": "add_", "__sub__": "sub", "__isub__": "sub_", "__mul__": "mul", "__rmul__": "mul",
    "__imul__": "mul_", "__truediv__": "div", "__itruediv__": "div_", "__rtruediv__": "__rdiv__", "__mod__": "remainder", "__neg__": "neg",
    "__pow__": "pow", "__abs__": "abs", "__lt__": "lt", "__le__": "le", "__gt__": "gt", "__ge__": "ge", "__ne__": "ne", "__matmul__": "matmul",
}  # fmt: skip


def activate() -> None:
    """Guard every public function, once."""
    if process.guarded:
        return
    process.guarded = True
    Switches.quietly = quietly
    Tensor = _dispatch.Tensor
    safe.add(Tensor)
    _name_functions()
    operators: dict[int, str] = {}
    for dunder, f in _dispatch.METHODS.items():
        if dunder.startswith("__") and (id(f) not in operators or dunder in _SHOWN):
            operators[id(f)] = dunder
    named = {
        id(f) for table in (_dispatch.METHODS, _dispatch.FUNCTIONS) for n, f in table.items() if n[:2] != "__"
    }
    owners = {id(op.entry): (op, "entry") for op in _dispatch.OPS.values()}
    owners |= {id(op.operator): (op, "operator") for op in _dispatch.OPS.values()}
    seen: set[int] = set()
    for function in _public():
        if id(function) in seen:
            continue
        seen.add(id(function))
        name = operators.get(id(function))
        binary = name is not None and id(function) not in named and name not in ("__getitem__", "__setitem__")
        if binary:
            shown = _dispatch.METHODS.get(_SHOWN.get(name or "", ""), function)
            unary = id(function) not in owners and function.__code__.co_argcount == 1
            plain = guard(function, _UNARY_GUARD if unary else _OPERATOR_GUARD, _call_operator, shown)
        else:
            plain = guard(function, _GUARD, call_factory if function.__name__ in FACTORIES else call)
        if id(function) in owners:
            op, part = owners[id(function)]
            op.bodies[part] = plain
        else:
            _by_code.setdefault(plain.__code__, []).append(function)


def _name_functions() -> None:
    """Give functions the names under which they are known: those who are asked see them."""
    tables = (_dispatch.METHODS, _dispatch.FUNCTIONS)
    for table in tables:
        for name, function in table.items():
            if not isinstance(function, types.FunctionType) or function.__name__ == name:
                continue
            if not any(t.get(function.__name__) is function for t in tables):
                function.__name__ = function.__qualname__ = name


def _public() -> Iterator[types.FunctionType]:
    """Every function that is asked about: torch's, Tensor's methods that are ops, and those of the modules beside them."""
    from importlib import import_module

    for table in (_dispatch.METHODS, _dispatch.FUNCTIONS):
        for name, function in table.items():
            if isinstance(function, types.FunctionType) and name not in _IGNORED:
                yield function
    for path in ("nn.functional", "functional", "linalg", "fft", "special", "nn.init"):
        module = import_module(f"{_PACKAGE}.{path}")
        for name in _INITIALIZERS if path == "nn.init" else dir(module):
            function = None if name.startswith("_") or name in _IGNORED else getattr(module, name)
            if not isinstance(function, types.FunctionType):
                continue
            if (function.__module__ or "").startswith(_PACKAGE):
                yield function


_by_code: dict[types.CodeType, list[Any]] = {}  # guarded functions that are no ops, by their code as it was


def meet(op: Any, arguments: tuple) -> Any:
    """The first time that something answers which is no tensor: guard the functions, and ask it about the one that was called."""
    activate()
    frame: Any = sys._getframe(2)  # behind `recover`: the op, and what called it
    function: Any = op.entry if hasattr(op.entry, "__wrapped__") else None
    function = function or _dispatch.FUNCTIONS.get(op.name) or _dispatch.METHODS[op.name]
    args, kwargs = arguments, {}
    while frame is not None and frame.f_globals.get("__name__", "").startswith(_PACKAGE):
        code = frame.f_code
        found = next((f for f in _by_code.get(code, ()) if _is_of(frame, f)), None)
        if found is not None:
            positional = code.co_argcount
            function, args = found, tuple(frame.f_locals[n] for n in code.co_varnames[:positional])
            names = code.co_varnames[positional : positional + code.co_kwonlyargcount]
            unsaid = found.__wrapped__.__kwdefaults__ or {}
            kwargs = {n: v for n in names if (v := frame.f_locals[n]) is not unsaid.get(n)}
        frame = frame.f_back
    plain = function.__wrapped__
    defaults = plain.__defaults__ or ()
    while defaults and args and args[-1] is defaults[-1]:  # what nobody gave
        args, defaults = args[:-1], defaults[:-1]
    return call(function, plain, args, kwargs)


def _is_of(frame: Any, function: Any) -> bool:
    """Whether a frame is a call of this function, among those that share its code."""
    names = frame.f_code.co_freevars
    cells = function.__wrapped__.__closure__ or ()
    return all(frame.f_locals.get(name) is cell.cell_contents for name, cell in zip(names, cells))


# ---------------------------------------------------------------------------------------------------- what stands in Tensor's body


_BODY_IGNORED = _IGNORED | frozenset(
    "__setstate__ __array_wrap__ __init_subclass__ __torch_dispatch__ _make_wrapper_subclass _only_item __iter__ __copy__ __index__".split()
)


# Methods of which torch's modes are told as of functions of several arguments: without the class of the tensor.
_OF_MANY = frozenset("size stride is_contiguous numpy requires_grad_ type".split())


def _call_own(function: Any, plain: Any, args: tuple, kwargs: dict) -> Any:
    """`call` for what belongs to one tensor: a mode is told the tensor's class, whatever it is."""
    if here.modes and here.off != ALL_OFF and not here.skip:
        return _ask_mode(function, args, kwargs, (type(args[0]),))
    return call(function, plain, args, kwargs)


def _guarded_method(name: str, plain: Any) -> Any:
    ask_about = call if name in _OF_MANY else _call_own

    @functools.wraps(plain)
    def method(*args: Any, **kwargs: Any) -> Any:
        return ask_about(getattr(_dispatch.Tensor, name), plain, args, kwargs)

    return method


def _guarded_property(name: str, plain: property) -> property:
    read, write = plain.fget, plain.fset

    def get(self: Any) -> Any:
        return _call_own(vars(_dispatch.Tensor)[name].__get__, read, (self,), {})

    def put(self: Any, value: Any) -> None:
        _call_own(vars(_dispatch.Tensor)[name].__set__, write, (self, value), {})

    get.__name__ = get.__qualname__ = name
    return property(get, None if write is None else put, plain.fdel, plain.__doc__)


@functools.cache
def body() -> dict[str, Any]:
    """Guarded twins of the methods and properties of Tensor that are no ops, by name."""
    made: dict[str, Any] = {}
    for name, value in vars(_dispatch.Tensor).items():
        if name in _BODY_IGNORED:
            continue
        if isinstance(value, property):
            made[name] = _guarded_property(name, value)
        elif isinstance(value, types.FunctionType) and name not in _dispatch.METHODS:
            made[name] = _guarded_method(name, value)
    return made


@functools.cache
def originals() -> dict[str, Any]:
    """What Tensor's body has under the same names."""
    return {name: vars(_dispatch.Tensor)[name] for name in body()}


@functools.cache
def overridable() -> type:
    """The hidden base of classes that answer for themselves."""
    originals()
    space = {
        **body(),
        "__module__": _PACKAGE,
        "__doc__": "A tensor whose class is asked how functions treat it.",
    }
    return type("Tensor", (_dispatch.Tensor,), space)


def joined(cls: type) -> None:
    """A subclass of Tensor has been made: let it answer for itself, unless it is the library's own or does not want to."""
    Tensor = _dispatch.Tensor
    if Tensor is None or cls.__module__.startswith(_PACKAGE + ".") or cls.__module__ == _PACKAGE:
        safe.add(cls)
        return
    dispatches = getattr(cls, "__torch_dispatch__", disabled_dispatch) is not disabled_dispatch
    process.dispatch_classes = process.dispatch_classes or dispatches
    if dispatches and getattr(cls.__torch_function__, "__func__", None) is Tensor.__torch_function__.__func__:
        cls.__torch_function__ = disabled_function  # type: ignore[attr-defined]
    if cls.__torch_function__ is disabled_function and not dispatches:
        safe.add(cls)
        return
    activate()
    base = overridable()
    if not issubclass(cls, base) and Tensor in cls.__bases__:
        cls.__bases__ = tuple(base if b is Tensor else b for b in cls.__bases__)


# ---------------------------------------------------------------------------------------------------- modes


def push_mode(mode: Any) -> None:
    """A mode for functions is on, on this thread."""
    activate()
    here.modes.append(mode)
    process.modes += 1
    if process.modes == 1:
        originals()
        for name, value in body().items():
            setattr(_dispatch.Tensor, name, value)


def pop_mode() -> Any:
    """The innermost mode for functions is off."""
    if not here.modes:
        raise RuntimeError("trying to pop from empty mode stack")
    mode = here.modes.pop()
    process.modes -= 1
    if process.modes == 0:
        for name, value in originals().items():
            setattr(_dispatch.Tensor, name, value)
    return mode
