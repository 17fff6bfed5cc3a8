"""torch.fx.symbolic_trace: a module or function in, a `GraphModule` of the operations it performs out."""

from __future__ import annotations

import builtins
import collections
import copy
import functools
import inspect
import math
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import CodeType, FunctionType, ModuleType
from typing import Any

import mindtorch_v2 as torch
from mindtorch_v2._C import ScriptObject  # noqa: F401  (torch has the name here)
from mindtorch_v2.nn import Module
from mindtorch_v2.utils import _pytree as pytree

from .. import _dispatch, _overrides
from .._function_names import torch_module_name
from ._code_generation import _PyTreeCodeGen, _PyTreeInfo
from ._compatibility import compatibility  # noqa: F401  (torch has the name here)
from .graph import Graph
from .graph_module import GraphModule
from .node import Argument, map_aggregate
from .proxy import ParameterProxy, Proxy, Scope, ScopeContextManager, TracerBase

HAS_VARSTUFF = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS

_proxyable_classes: dict[type, None] = {}
_wrapped_fns_to_patch: dict[tuple[int, str], dict[str, Any]] = {}  # the globals in which a name is wrapped
_wrapped_methods_to_patch: list[tuple[type, str]] = []
_is_fx_tracing_flag = False
# torch's names, for tracers of packages that write `trace` anew
_orig_module_call: Callable[..., Any] = Module.__call__
_orig_module_getattr: Callable[..., Any] = Module.__getattr__


def is_fx_tracing() -> bool:
    """Whether a function is being traced."""
    return _is_fx_tracing_flag


is_fx_symbolic_tracing = is_fx_tracing


class ProxyableClassMeta(type):
    """A metaclass whose classes can be constructed with proxies in a traced program: the construction becomes a node."""

    def __init__(cls, name: str, bases: Any, attrs: Any) -> None:
        _proxyable_classes.setdefault(cls)
        super().__init__(name, bases, attrs)

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        instance = cls.__new__(cls)  # type: ignore[call-overload]
        if not is_fx_tracing():
            cls.__init__(instance, *args, **kwargs)
            return instance
        proxies: list[Proxy] = []

        def note(value: Any) -> Any:
            if isinstance(value, Proxy):
                proxies.append(value)
            return value

        map_aggregate((args, kwargs), note)
        if proxies:
            return proxies[0].tracer.create_proxy("call_function", cls, args, kwargs)
        cls.__init__(instance, *args, **kwargs)
        return instance


class PHBase:
    """Marks an argument that stays an input in `concrete_args`."""

    def __repr__(self) -> str:
        return "PH"


class PHWithMeta(PHBase):
    """The same with a key for the tracer."""

    def __init__(self, ph_key: str | None = None) -> None:
        super().__init__()
        self.ph_key = ph_key


PH = PHBase()


def _assert_is_none(value: Any, msg: str) -> None:
    if value is not None:
        raise AssertionError(msg)


def _patch_function(fn: FunctionType, nargs: int) -> FunctionType:
    """A copy of a function that takes keyword-only, `*` and `**` parameters by position, so that each can be one proxy."""
    code: CodeType = fn.__code__
    code = code.replace(
        co_flags=code.co_flags & ~HAS_VARSTUFF, co_argcount=nargs, co_kwonlyargcount=0, co_posonlyargcount=0
    )
    return FunctionType(code, fn.__globals__, fn.__name__, fn.__defaults__, fn.__closure__)


class Tracer(TracerBase):
    """Runs a module's `forward` on proxies and records the graph. Subclasses decide what is a leaf."""

    def __init__(
        self,
        autowrap_modules: tuple[ModuleType, ...] = (math,),
        autowrap_functions: tuple[Callable, ...] = (),
        param_shapes_constant: bool = False,
    ) -> None:
        super().__init__()
        self._autowrap_function_ids: set[int] = {
            id(value)
            for module in autowrap_modules
            for name, value in module.__dict__.items()
            if not name.startswith("_") and callable(value)
        }
        self._autowrap_function_ids.update(id(function) for function in autowrap_functions)
        self._autowrap_search: list[ModuleType] = list(autowrap_modules)
        self.param_shapes_constant = param_shapes_constant
        self.submodule_paths: dict[Module, str] | None = None
        self.root_module_name = ""
        self.scope = Scope("", None)
        self.module_stack: collections.OrderedDict[str, Any] = collections.OrderedDict()
        self.num_calls: dict[str, int] = {}
        self.node_name_to_scope: dict[str, tuple[str, type]] = {}
        self._qualname_counter: dict[str, int] = collections.defaultdict(int)

    def get_fresh_qualname(self, prefix: str) -> str:
        """A name that the root module does not have yet."""
        if not hasattr(self.root, prefix):
            self._qualname_counter[prefix] = 0
            return prefix
        index = self._qualname_counter[prefix]
        while True:
            name = f"{prefix}{index}"
            index += 1
            if not hasattr(self.root, name):
                break
        self._qualname_counter[prefix] = index
        return name

    # ------------------------------------------------------------------------------ arguments

    def create_arg(self, a: Any) -> Argument:
        """A value of the traced program as an argument of a node: parameters, buffers and constants become attributes."""
        if isinstance(a, torch.nn.Parameter):
            for name, parameter in self.root.named_parameters():
                if a is parameter:
                    return self.create_node("get_attr", name, (), {})
            raise NameError("parameter is not a member of this module")
        if isinstance(a, torch.Tensor):
            for name, buffer in self.root.named_buffers():
                if a is buffer:
                    return self.create_node("get_attr", name, (), {})
        elif isinstance(a, Module):
            for name, module in self.root.named_modules():
                if a is module:
                    return self.create_node("get_attr", name, (), {})
        if isinstance(a, tuple) and hasattr(a, "_fields"):
            return self.create_node("call_function", type(a), tuple(self.create_arg(item) for item in a), {})
        if isinstance(a, torch.Tensor):
            return self.create_node("get_attr", self._constant_name(a), (), {})
        if type(a) in _proxyable_classes:
            name = self.get_fresh_qualname(f"_{type(a).__name__}_constant_")
            setattr(self.root, name, a)
            return self.create_node("get_attr", name, (), {})
        return super().create_arg(a)

    def _constant_name(self, tensor: Any) -> str:
        """The attribute of the root module that holds a constant tensor; a new one if there is none."""
        name = self.tensor_attrs.get(tensor)
        if name is None:
            index = 0
            while hasattr(self.root, f"_tensor_constant{index}"):
                index += 1
            name = f"_tensor_constant{index}"
            self.tensor_attrs[tensor] = name
            setattr(self.root, name, tensor)
        return name

    def create_args_for_root(
        self,
        root_fn: Callable[..., Any],
        is_module: bool,
        concrete_args: dict[str, Any] | tuple[Any, ...] | None = None,
    ) -> tuple[Any, list[Any]]:
        """The function to call and its arguments: a placeholder for each parameter without a concrete value."""
        fn = inspect.unwrap(root_fn)
        code = fn.__code__
        n_named = code.co_argcount + code.co_kwonlyargcount
        names = iter(code.co_varnames)
        if is_module:
            if n_named == 0:
                raise RuntimeError("``self`` argument cannot be part of *args expansion!")
            next(names)
        skipped = 1 if is_module else 0
        args: list[Any] = [self.root] if is_module else []
        signature = inspect.signature(fn)
        if isinstance(concrete_args, tuple):
            arg_names = [next(names) for _ in range(skipped, n_named)]
            if len(concrete_args) != len(arg_names):
                raise RuntimeError(
                    f"Tracing expected {len(arg_names)} arguments but got {len(concrete_args)} concrete arguments"
                )
            concrete_args = dict(zip(arg_names, concrete_args))
        else:
            arg_names = [next(names) for _ in range(skipped, n_named)]
        self._concrete_counts: dict[str, int] = collections.Counter()
        args.extend(self._proxy_placeholder(name, concrete_args, signature, fn) for name in arg_names)
        if code.co_kwonlyargcount > 0 or code.co_flags & HAS_VARSTUFF:
            if code.co_flags & inspect.CO_VARARGS:
                args.append(self._proxy_placeholder("*" + next(names), concrete_args, signature, fn))
            if code.co_flags & inspect.CO_VARKEYWORDS:
                args.append(self._proxy_placeholder("**" + next(names), concrete_args, signature, fn))
            root_fn = _patch_function(fn, len(args))
        if concrete_args is not None:
            return self._flattened_root(root_fn, args, skipped, arg_names)
        return root_fn, args

    def _flattened_root(
        self, root_fn: Callable, args: list[Any], skipped: int, arg_names: list[str]
    ) -> tuple[Any, list[Any]]:
        """If concrete arguments are containers: a function on their flat values, and the codegen that flattens."""
        flat, in_spec = pytree.tree_flatten(tuple(args))
        if all(child.is_leaf() for child in in_spec.children()):
            return root_fn, args
        names = fn_argument_names(root_fn)[: len(args)]
        self.graph._codegen = _PyTreeCodeGen(
            _PyTreeInfo(names, self._in_spec_without_self(args, skipped), None)
        )

        def flatten_fn(*flat_args: Any) -> Any:
            tree = pytree.tree_unflatten(list(flat_args), in_spec)
            result = root_fn(*tree)
            out, out_spec = pytree.tree_flatten(result)
            info = self.graph._codegen.pytree_info
            self.graph._codegen.pytree_info = info._replace(out_spec=out_spec)
            return out

        return flatten_fn, flat

    @staticmethod
    def _in_spec_without_self(args: list[Any], skipped: int) -> Any:
        return pytree.tree_flatten(list(args[skipped:]))[1]

    def _proxy_placeholder(
        self,
        name: str,
        concrete_args: dict[str, Any] | None,
        sig: inspect.Signature,
        fn_for_analysis: Callable,
    ) -> Any:
        if concrete_args is not None and name in concrete_args:
            counter = 0

            def replace(value: Any) -> Any:
                nonlocal counter
                counter += 1
                return self._concrete_placeholder(f"{name}_{counter}", name, value, sig)

            return pytree.tree_map(replace, concrete_args[name])
        default: tuple[Any, ...] = ()
        if not name.startswith("*"):
            parameter = sig.parameters[name]
            default = () if parameter.default is inspect.Parameter.empty else (parameter.default,)
        type_expr = _annotation(fn_for_analysis, name)
        return self.create_proxy("placeholder", name, default, {}, type_expr=type_expr)

    def _concrete_placeholder(self, name: str, argument: str, value: Any, sig: inspect.Signature) -> Any:
        """An input for one leaf of a concrete argument: a proxy if it is `PH`, else the value, which the graph checks."""
        if value is PH:
            return self.create_proxy("placeholder", name, (), {})
        if isinstance(value, PHWithMeta):
            return self.create_proxy("placeholder", value.ph_key or name, (), {})
        default = sig.parameters[argument].default
        args = () if default is inspect.Parameter.empty else (default,)
        out = self.create_proxy("placeholder", name, args, {})
        message = f"{argument} has been specialized to have value {value} but got another value"
        if isinstance(value, (bool, int, float)) and not isinstance(value, torch.Tensor):
            torch._assert(out == value, message)
        elif value is None:
            self.create_proxy("call_function", _assert_is_none, (out, message), {})
        else:
            warnings.warn(
                f"Was not able to add assertion to guarantee correct input {argument} to specialized function. It is up to the user to make sure "
                "that your inputs match the inputs you specialized the function with.",
                stacklevel=4,
            )
        return value

    # ------------------------------------------------------------------------------ modules

    def is_leaf_module(self, m: Module, module_qualified_name: str) -> bool:
        """Whether a call of the module becomes one node: torch's own modules do, except Sequential."""
        home = torch_module_name(m.__module__)
        own = home.startswith(("torch.nn", "torch.ao.nn"))
        return own and not isinstance(m, torch.nn.Sequential)

    def path_of_module(self, mod: Module) -> str:
        """The qualified name of a module inside the root."""
        if self.submodule_paths:
            path = self.submodule_paths.get(mod)
            if path is None:
                raise NameError("module is not installed as a submodule")
            return path
        for name, module in self.root.named_modules():
            if mod is module:
                return name
        raise NameError("module is not installed as a submodule")

    def call_module(
        self, m: Module, forward: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """What a call of a submodule does: one node if it is a leaf, else its `forward` is traced too."""
        path = self.path_of_module(m)
        with ScopeContextManager(self.scope, Scope(path, type(m))):
            calls = self.num_calls.get(path, 0)
            key = f"{path}@{calls}" if calls else path
            self.module_stack[key] = (path, type(m))
            self.num_calls[path] = calls + 1
            try:
                if self.is_leaf_module(m, path):
                    return self.create_proxy("call_module", path, args, kwargs)
                return forward(*args, **kwargs)
            finally:
                self.module_stack.popitem(last=True)

    def getattr(self, attr: str, attr_val: Any, parameter_proxy_cache: dict[str, Any]) -> Any:
        """What reading an attribute of a module gives: a proxy for parameters, and for buffers if the tracer wants it."""
        if isinstance(attr_val, torch.nn.Parameter):
            return self._attribute_proxy(attr_val, self.root.named_parameters(), parameter_proxy_cache)
        if self.proxy_buffer_attributes and isinstance(attr_val, torch.Tensor):
            return self._attribute_proxy(attr_val, self.root.named_buffers(), parameter_proxy_cache)
        return attr_val

    def _attribute_proxy(self, value: Any, members: Any, cache: dict[str, Any]) -> Any:
        for name, member in members:
            if value is not member:
                continue
            if name not in cache:
                options: dict[str, Any] = {}
                if "proxy_factory_fn" in inspect.signature(self.create_proxy).parameters:
                    options["proxy_factory_fn"] = (
                        (lambda node, name=name: ParameterProxy(self, node, name, value))
                        if self.param_shapes_constant
                        else None
                    )
                cache[name] = self.create_proxy("get_attr", name, (), {}, **options)
            return cache[name]
        return value

    # ------------------------------------------------------------------------------ tracing

    def trace(self, root: Module | Callable[..., Any], concrete_args: dict[str, Any] | None = None) -> Graph:
        """The graph of a module's `forward` (or of another method: `traced_func_name`), or of a function."""
        global _is_fx_tracing_flag
        before, _is_fx_tracing_flag = _is_fx_tracing_flag, True
        try:
            fn = self._start(root)
            fn_globals = fn.__globals__  # of the function itself, before arguments are flattened
            root_fn, args = self.create_args_for_root(fn, isinstance(root, Module), concrete_args)
            with self._patched(fn_globals):
                result = root_fn(*args)
                self.create_node(
                    "output",
                    "output",
                    (self.create_arg(result),),
                    {},
                    type_expr=_annotation(fn, "return"),
                )
            self.submodule_paths = None
        finally:
            _is_fx_tracing_flag = before
        return self.graph

    def _start(self, root: Module | Callable[..., Any]) -> Any:
        """Set up an empty graph, and return the function to trace."""
        if isinstance(root, Module):
            self.root = root
            if not hasattr(type(root), self.traced_func_name):
                raise AssertionError(
                    f"traced_func_name={self.traced_func_name} doesn't exist in {type(root).__name__}"
                )
            fn = getattr(type(root), self.traced_func_name)
            self.root_module_name = root._get_name()
            self.submodule_paths = {module: name for name, module in root.named_modules()}
        else:
            self.root = Module()
            fn = root
        self.graph = Graph(tracer_cls=getattr(self, "__class__", None))
        if hasattr(fn, "__code__"):
            self.graph._co_fields = {
                "co_name": fn.__code__.co_name,
                "co_filename": fn.__code__.co_filename,
                "co_firstlineno": fn.__code__.co_firstlineno,
            }
        self.tensor_attrs: dict[Any, str] = {}
        for path, module in self.root.named_modules():
            for name, value in module.__dict__.items():
                if isinstance(value, torch.Tensor):
                    self.tensor_attrs.setdefault(value, f"{path}.{name}" if path else name)
        if not isinstance(fn, FunctionType):
            fn = fn.__call__.__func__ if hasattr(fn, "__call__") and not inspect.ismethod(fn) else fn  # noqa: B004
            if not isinstance(fn, FunctionType):
                raise AssertionError(f"fn must be a function, got {type(fn)}")
        return fn

    @contextmanager
    def _patched(self, fn_globals: dict[str, Any]) -> Iterator[None]:
        """While the program runs: modules, wrapped functions and the functions of autowrap modules report to this tracer."""
        cache: dict[str, Any] = {}
        original_getattr, original_call = Module.__getattr__, Module.__call__

        @functools.wraps(original_getattr)
        def module_getattr(module: Any, attribute: str) -> Any:
            return self.getattr(attribute, original_getattr(module, attribute), cache)

        @functools.wraps(original_call)
        def module_call(module: Any, *args: Any, **kwargs: Any) -> Any:
            def forward(*args: Any, **kwargs: Any) -> Any:
                return original_call(module, *args, **kwargs)

            _autowrap_check(patcher, module_globals(module), self._autowrap_function_ids)
            return self.call_module(module, forward, args, kwargs)

        with _Patcher() as patcher:
            patcher.patch_method(Module, "__getattr__", module_getattr, deduplicate=False)
            patcher.patch_method(Module, "__call__", module_call, deduplicate=False)
            _patch_wrapped_functions(patcher)
            _autowrap_check(patcher, fn_globals, self._autowrap_function_ids)
            for module in self._autowrap_search:
                _autowrap_check(patcher, module.__dict__, self._autowrap_function_ids)
            yield

    def __deepcopy__(self, memo: dict[int, Any]) -> Tracer:
        new = Tracer.__new__(type(self))
        for name, value in self.__dict__.items():
            new.__dict__[name] = value if name == "_autowrap_search" else copy.deepcopy(value, memo)
        return new


def _annotation(fn: Any, name: str) -> Any:
    """The type of a parameter or of the result. This library's own annotations are text, and `Any` where torch has none."""
    annotation = fn.__annotations__.get(name, None)
    if isinstance(annotation, str) and torch_module_name(fn.__module__ or "").startswith("torch."):
        return torch.Tensor if annotation == "Tensor" else None
    return annotation


def fn_argument_names(fn: Any) -> list[str]:
    """The names of a function's parameters, `self` included."""
    code = inspect.unwrap(fn).__code__
    return list(code.co_varnames[: code.co_argcount])


def module_globals(module: Module) -> dict[str, Any]:
    """The global names that a module's `forward` reads."""
    forward = getattr(type(module), "forward", None)
    return getattr(inspect.unwrap(forward) if forward else forward, "__globals__", {})


# ---------------------------------------------------------------------------------------------------- wrapped functions


class _Patcher:
    """Context manager: methods and global names replaced inside it, restored at its end. Tracers of packages use it, too."""

    def __init__(self) -> None:
        self._undo: list[Callable[[], None]] = []
        self._visited: set[int] = set()

    def __enter__(self) -> _Patcher:
        return self

    def __exit__(self, *exception: object) -> None:
        while self._undo:
            self._undo.pop()()
        self._visited.clear()

    def visit_once(self, thing: object) -> bool:
        """Whether this object is seen for the first time."""
        first = id(thing) not in self._visited
        self._visited.add(id(thing))
        return first

    def patch_method(
        self, cls: type, name: str, new_fn: Callable[..., Any], deduplicate: bool = True
    ) -> None:
        """Replace a method; with `deduplicate`, unless it is replaced already."""
        before = getattr(cls, name)
        if deduplicate and hasattr(before, "__fx_already_patched"):
            return
        setattr(cls, name, new_fn)
        self._undo.append(functools.partial(setattr, cls, name, before))

    def patch(
        self, frame_dict: dict[str, Any], name: str, new_fn: Callable[..., Any], deduplicate: bool = True
    ) -> None:
        """Replace a global name; with `deduplicate`, it is marked as replaced."""
        if deduplicate:
            new_fn.__fx_already_patched = True  # type: ignore[attr-defined]
        if name in frame_dict:
            self._undo.append(functools.partial(frame_dict.__setitem__, name, frame_dict[name]))
        else:
            self._undo.append(functools.partial(frame_dict.pop, name, None))
        frame_dict[name] = new_fn


@functools.cache
def _traced_methods() -> dict[str, Callable]:
    """Methods of Tensor whose functions also are functions of torch, marked as methods while they run.

    `tensor.add(proxy)` and `torch.add(tensor, proxy)` call one function here; a graph tells them apart.
    """

    def traced(function: Any) -> Callable:
        @functools.wraps(function)
        def method(*args: Any, **kwargs: Any) -> Any:
            state = _overrides.thread_state
            outer, state.in_method = state.in_method, _find_proxy(args, kwargs) is not None
            try:
                return function(*args, **kwargs)
            finally:
                state.in_method = outer

        return method

    shared = {n: f for n, f in _dispatch.METHODS.items() if f is _dispatch.FUNCTIONS.get(n)}
    return {name: traced(function) for name, function in shared.items() if not name.startswith("__")}


def _find_proxy(*objects: Any) -> Proxy | None:
    """The first proxy inside values, or None."""
    proxies: list[Proxy] = []

    def note(value: Any) -> Any:
        if isinstance(value, Proxy):
            proxies.append(value)
        return value

    map_aggregate(objects, note)
    return proxies[0] if proxies else None


def _create_wrapped_func(orig_fn: Callable) -> Callable:
    """A function whose calls with a proxy become one node."""

    @functools.wraps(orig_fn)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        proxy = _find_proxy(args, kwargs)
        if proxy is None:
            return orig_fn(*args, **kwargs)
        result = proxy.tracer.create_proxy("call_function", orig_fn, args, kwargs)
        result.node.meta["is_wrapped"] = True
        return result

    return wrapped


def _create_wrapped_method(cls: type, name: str) -> Callable:
    original = getattr(cls, name)

    @functools.wraps(original)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        proxy = _find_proxy(args, kwargs)
        if proxy is None:
            return original(*args, **kwargs)
        return proxy.tracer.create_proxy("call_method", name, args, kwargs)

    return wrapped


def _patch_wrapped_functions(patcher: _Patcher) -> None:
    """Replace the functions given to `wrap`, in the namespaces where it was called, and the methods that are functions of torch, too."""
    for name, method in _traced_methods().items():
        patcher.patch_method(torch.Tensor, name, method, deduplicate=False)
    for (_, name), namespace in _wrapped_fns_to_patch.items():
        if name not in namespace and hasattr(builtins, name):
            original = getattr(builtins, name)
        else:
            original = namespace[name]
        if not hasattr(original, "__fx_already_patched"):
            patcher.patch(namespace, name, _create_wrapped_func(original))
    for cls, name in _wrapped_methods_to_patch:
        patcher.patch_method(cls, name, _create_wrapped_method(cls, name), deduplicate=False)


def _autowrap_check(patcher: _Patcher, frame_dict: dict[str, Any], function_ids: set[int]) -> None:
    """Replace autowrapped functions that a namespace holds."""
    if patcher.visit_once(frame_dict):
        for name, value in list(frame_dict.items()):
            if not name.startswith("_") and callable(value) and id(value) in function_ids:
                patcher.patch(frame_dict, name, _create_wrapped_func(value))


def wrap(fn_or_name: str | Callable) -> Any:
    """Register a function of the calling module, by itself or by name: traced calls of it become one node. Also a decorator."""
    if not callable(fn_or_name) and not isinstance(fn_or_name, str):
        raise RuntimeError("Unsupported type for global function! Must be either a callable or string name")
    if callable(fn_or_name):
        if isinstance(fn_or_name, str):
            raise AssertionError("a name cannot be called")
        name = fn_or_name.__name__
    else:
        name = fn_or_name
    frame = sys._getframe(1)
    if frame.f_code.co_name != "<module>":
        raise NotImplementedError("wrap must be called at the top level of a module")
    _wrapped_fns_to_patch[(id(frame.f_globals), name)] = frame.f_globals
    return fn_or_name


def symbolic_trace(
    root: Module | Callable[..., Any], concrete_args: dict[str, Any] | None = None
) -> GraphModule:
    """Trace a module or a function. `concrete_args` gives arguments fixed values."""
    tracer = Tracer()
    graph = tracer.trace(root, concrete_args)
    name = type(root).__name__ if isinstance(root, Module) else root.__name__
    return GraphModule(tracer.root, graph, name)
