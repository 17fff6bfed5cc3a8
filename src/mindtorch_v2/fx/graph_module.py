"""torch.fx.graph_module: `GraphModule`, a module whose `forward` is generated from a graph."""

from __future__ import annotations

import contextlib
import copy
import itertools
import linecache
import os
import sys
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import mindtorch_v2 as torch
from mindtorch_v2.nn import Module

from .. import _function_names
from ._code_generation import PythonCode, _PyTreeCodeGen
from ._namespace import _custom_builtins
from .graph import Graph

__all__ = ["reduce_graph_module", "reduce_package_graph_module", "GraphModule"]

FX_GRAPH_MODULE_FILE_PREFIX = "fx_generated_"
_USER_PRESERVED_ATTRIBUTES_KEY = "_user_preserved_attributes"
_eval_count = itertools.count()


def _exec_with_source(src: str, globals: dict[str, Any], co_fields: dict[str, Any] | None = None) -> None:
    """Run generated source under a file name of its own, so that tracebacks show its lines."""
    name = f"<eval_with_key>.{next(_eval_count)}"
    linecache.cache[name] = (len(src), None, src.splitlines(keepends=True), name)
    exec(compile(src, name, "exec"), globals)  # noqa: S102  (the source was generated from a graph)


def _forward_from_src(src: str, globals: dict[str, Any], co_fields: dict[str, Any] | None = None) -> Callable:
    return _method_from_src("forward", src, globals, co_fields)


def _method_from_src(
    method_name: str, src: str, globals: dict[str, Any], co_fields: dict[str, Any] | None = None
) -> Callable:
    names = dict(globals)
    _exec_with_source(src, names, co_fields)
    return names.pop(method_name)


# ---------------------------------------------------------------------------------------------------- attributes by path


def _parent_of(module: Module, target: str) -> tuple[Any, str]:
    *path, field = target.split(".")
    parent: Any = module
    for part in path:
        parent = getattr(parent, part)
    return parent, field


def _copy_attr(from_module: Module, to_module: Module, target: str) -> None:
    """Put the attribute at a path of one module at the same path of another; modules on the way are created empty."""
    *path, field = target.split(".")
    source: Any = from_module
    destination: Any = to_module
    for part in path:
        source = getattr(source, part)
        if getattr(destination, part, None) is source:
            return  # the whole submodule was copied already
        if not hasattr(destination, part):
            setattr(destination, part, Module())
        destination = getattr(destination, part)
    _set_attribute(destination, field, getattr(source, field))


def _set_attribute(module: Any, name: str, value: Any) -> None:
    if isinstance(value, torch.Tensor) and not isinstance(value, torch.nn.Parameter):
        module.register_buffer(name, value)
    else:
        setattr(module, name, value)


def _assign_attr(from_obj: Any, to_module: Module, target: str) -> None:
    """Set the attribute at a path; modules on the way are created empty."""
    *path, field = target.split(".")
    destination: Any = to_module
    for part in path:
        if not hasattr(destination, part):
            setattr(destination, part, Module())
        destination = getattr(destination, part)
    _set_attribute(destination, field, from_obj)


def _get_attr(model: Module, attr_name: str) -> Any:
    return _get_attr_via_attr_list(model, attr_name.split("."))


def _get_attr_via_attr_list(model: Module, attr_list: list[str]) -> Any:
    value: Any = model
    for part in attr_list:
        value = getattr(value, part)
    return value


def _del_attr(model: Module, attr_name: str) -> None:
    parent, field = _parent_of(model, attr_name)
    delattr(parent, field)


def _has_attr(model: Module, attr_name: str) -> bool:
    value: Any = model
    for part in attr_name.split("."):
        if not hasattr(value, part):
            return False
        value = getattr(value, part)
    return True


# ---------------------------------------------------------------------------------------------------- pickling


def _format_import_statement(name: str, obj: Any) -> str:
    """The import by which saved code gets one of its global names."""
    if name in _custom_builtins:
        return _custom_builtins[name].import_str
    if name == "getattr" or getattr(sys.modules["builtins"], name, None) is obj:
        return ""
    if isinstance(obj, str) or obj is ...:  # an annotation that was not evaluated
        return f"{name} = {obj!r}"
    module = _function_names.torch_module_name(obj.__module__)
    attribute = getattr(obj, "__name__", name)
    return (
        f"from {module} import {attribute} as {name}" if attribute != name else f"from {module} import {name}"
    )


def _format_import_block(globals: dict[str, Any]) -> str:
    return "\n".join(sorted(filter(None, (_format_import_statement(n, o) for n, o in globals.items()))))


def reduce_graph_module(body: dict[str, Any], import_block: str) -> Module:
    """A pickled `GraphModule`: its code is run again and traced."""
    names: dict[str, Any] = {"torch": torch}
    with _torch_importable():
        exec(compile(import_block, "<imports of a pickled GraphModule>", "exec"), names)  # noqa: S102
    forward = _forward_from_src(body.get("_code") or body["code"], names)
    return _deserialize_graph_module(forward, body)


def reduce_package_graph_module(importer: Any, body: dict[str, Any], generated_module_name: str) -> Module:
    """A `GraphModule` from a `torch.package` archive: there are none in this library."""
    raise RuntimeError(
        "torch.package is not part of this library: save the GraphModule with torch.save instead"
    )


@contextlib.contextmanager
def _torch_importable() -> Iterator[None]:
    """The imports of saved code name torch: give them this package, unless something already stands for torch."""
    if "torch" in sys.modules:
        yield
        return
    from .._as_torch import as_torch

    with as_torch():
        yield


class _CodeOnlyModule(Module):
    """The attributes of a pickled module, with its generated `forward`."""

    def __init__(self, body: dict[str, Any]) -> None:
        super().__init__()
        self.__dict__ = body


def _deserialize_graph_module(
    forward: Callable, body: dict[str, Any], graph_module_cls: type | None = None
) -> Module:
    from ._symbolic_trace import Tracer

    tracer_cls = body.get("_tracer_cls") or Tracer
    cls_name = body.get("_graphmodule_cls_name", "GraphModule")
    _CodeOnlyModule.forward = forward  # type: ignore[attr-defined]

    class KeepModules(tracer_cls):  # type: ignore[misc, valid-type]
        """Every submodule is a leaf: only the generated code is traced."""

        def is_leaf_module(self, _: Module, __: str) -> bool:
            return True

    com = _CodeOnlyModule(body)
    extras = body.get("_tracer_extras", {}) or {}
    graph = KeepModules().trace(com, **extras)
    graph._tracer_cls = tracer_cls
    codegen = body.get("_graph_codegen")
    if codegen is not None:
        graph._codegen = codegen
    module = (graph_module_cls or GraphModule)(com, graph, class_name=cls_name)
    for name, value in body.items():
        if not hasattr(module, name):
            setattr(module, name, value)
    return module


# ---------------------------------------------------------------------------------------------------- calling


class _WrappedCall:
    """The call of a `GraphModule`: errors show the line of the generated code."""

    def __init__(self, cls: type, cls_call: Any) -> None:
        self.cls, self.cls_call = cls, cls_call

    @staticmethod
    def _generate_error_message(frame_summary: traceback.FrameSummary) -> str:
        """The lines of the generated code around the one that failed."""
        line_number = frame_summary.lineno or 0
        lines = linecache.getlines(frame_summary.filename)
        tail = "".join(traceback.format_exc()).rpartition("\n")[0]
        around = "".join(lines[max(line_number - 5, 0) : line_number])
        after = "".join(lines[line_number : line_number + 2])
        return (
            f"Call using an FX-traced Module, line {line_number} of the traced Module's generated forward function:\n"
            f"{around}\n    ~~~~~~~~~~~~~~~~~~~~~~~~~~~ <--- HERE\n{after}\n{tail}"
        )

    def __call__(self, obj: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            if self.cls_call is not None:
                return self.cls_call(obj, *args, **kwargs)
            return super(self.cls, obj).__call__(*args, **kwargs)  # type: ignore[misc, arg-type]
        except Exception as error:
            frames = list(traceback.walk_tb(error.__traceback__))
            top = traceback.StackSummary.extract(iter(frames))[-1]
            if "eval_with_key" not in top.filename:
                raise
            print(_WrappedCall._generate_error_message(top), file=sys.stderr)  # noqa: T201
            raise error.with_traceback(None)


class GraphModule(Module):
    """A module whose `forward` is generated from its `graph`. After a change of the graph, call `recompile()`."""

    def __new__(cls: type[GraphModule], *args: Any, **kwargs: Any) -> GraphModule:
        """Each instance has a class of its own, since its `forward` is."""
        # the class that was asked for, also when an instance's own class is called
        named = next(c for c in cls.__mro__ if c.__qualname__.rpartition(".")[2] != "GraphModuleImpl")

        class GraphModuleImpl(named):  # type: ignore[misc, valid-type]
            pass

        return super().__new__(GraphModuleImpl)

    def __init__(self, root: Module | dict[str, Any], graph: Graph, class_name: str = "GraphModule") -> None:
        super().__init__()
        self.__class__.__name__ = class_name
        if isinstance(root, Module):
            if hasattr(root, "training"):
                self.training = root.training
            for name in root.__dict__.get(_USER_PRESERVED_ATTRIBUTES_KEY, ()):
                setattr(self, name, getattr(root, name))
            for node in graph.nodes:
                if node.op in ("get_attr", "call_module"):
                    _copy_attr(root, self, node.target)
        elif isinstance(root, dict):
            targets = []
            for node in graph.nodes:
                if node.op in ("get_attr", "call_module"):
                    if node.target not in root:
                        raise RuntimeError(
                            f"Node {node} referenced target {node.target} but that target was not provided in ``root``!"
                        )
                    targets.append(node.target)
            for target in sorted(targets, key=lambda t: t.count(".")):
                _assign_attr(root[target], self, target)
        else:
            raise RuntimeError(f"Unsupported type {root} passed for root!")
        self._replace_hooks: list[Callable] = []
        self._create_node_hooks: list[Callable] = []
        self._erase_node_hooks: list[Callable] = []
        self._deepcopy_hooks: list[Callable] = []
        self.meta: dict[str, Any] = {}
        if isinstance(root, GraphModule):
            self.meta.update(root.meta)
        self.graph = graph
        self._tracer_cls = graph._tracer_cls
        self._tracer_extras = graph._tracer_extras or {}

    # ------------------------------------------------------------------------------ graph and code

    __jit_unused_properties__ = ["graph", "_boxed_call"]

    @property
    def graph(self) -> Graph:
        """The graph; assigning one copies it and generates the code."""
        return self._graph

    @graph.setter
    def graph(self, g: Graph) -> None:
        if not isinstance(g, Graph):
            raise AssertionError(f"Expected a Graph instance, but got {type(g)}")
        self._graph = copy.deepcopy(g) if g.owning_module is not None and g.owning_module is not self else g
        g.owning_module = g.owning_module if g.owning_module is not None else self
        self._graph.owning_module = self
        self.recompile()

    @property
    def code(self) -> str:
        """The generated source of `forward`."""
        if not hasattr(self, "_code"):
            raise RuntimeError("Code has not been generated! Please report a bug to PyTorch")
        return self._code

    @property
    def _boxed_call(self) -> bool:
        from .graph import _BoxedCodeGen

        return isinstance(self._graph._codegen, _BoxedCodeGen)

    def recompile(self) -> PythonCode:
        """Generate `forward` from the graph again."""
        codegen = self._graph._codegen
        if isinstance(codegen, _PyTreeCodeGen):
            self._in_spec = codegen.pytree_info.in_spec
            self._out_spec = codegen.pytree_info.out_spec
        python_code = self._graph.python_code(root_module="self")
        self._code = python_code.src
        self._lineno_map = python_code._lineno_map
        cls = type(self)
        cls.forward = _forward_from_src(self._code, python_code.globals, self._graph._co_fields)  # type: ignore[method-assign]
        cls_call = cls.__call__ if "__call__" in vars(cls) else None
        if "_wrapped_call" not in vars(cls):
            cls._wrapped_call = _WrappedCall(cls, cls_call)  # type: ignore[attr-defined]

            def call_wrapped(self: Any, *args: Any, **kwargs: Any) -> Any:
                return self._wrapped_call(self, *args, **kwargs)

            cls.__call__ = call_wrapped  # type: ignore[method-assign]
        return python_code

    def _recompile_submodules(self) -> list[tuple[str, PythonCode]]:
        return [
            (name, module.recompile())
            for name, module in self.named_modules()
            if isinstance(module, GraphModule)
        ]

    # ------------------------------------------------------------------------------ submodules

    def add_submodule(self, target: str, m: Module) -> bool:
        """Put a module at a path, creating modules on the way; whether that was possible."""
        *path, field = target.split(".")
        module: Any = self
        for part in path:
            child = getattr(module, part, None)
            if child is None and not hasattr(module, part):
                child = Module()
                setattr(module, part, child)
            if not isinstance(child, Module):
                return False
            module = child
        module.add_module(field, m)
        return True

    def delete_submodule(self, target: str) -> bool:
        """Remove the module at a path; whether there was one."""
        *path, field = target.split(".")
        module: Any = self
        for part in path:
            module = getattr(module, part, None)
            if not isinstance(module, Module):
                return False
        if not isinstance(getattr(module, field, None), Module):
            return False
        delattr(module, field)
        return True

    def delete_all_unused_submodules(self) -> None:
        """Remove the modules that no node uses."""
        used: set[str] = set()
        for node in self.graph.nodes:
            if node.op not in ("call_module", "get_attr"):
                continue
            parts = node.target.split(".")
            used.update(".".join(parts[:length]) for length in range(1, len(parts) + 1))
            if node.op == "call_module":
                with contextlib.suppress(AttributeError):
                    for name, _ in self.get_submodule(node.target).named_modules():
                        used.add(f"{node.target}.{name}" if name else node.target)
        for name in [name for name, _ in self.named_modules() if name and name not in used]:
            self.delete_submodule(name)

    # ------------------------------------------------------------------------------ copies

    def __reduce__(self) -> tuple[Any, ...]:
        body = self.__dict__.copy()
        python_code = self._graph.python_code(root_module="self")
        codegen = body.pop("_graph")._codegen
        if isinstance(codegen, _PyTreeCodeGen):
            body["_graph_codegen"] = codegen
        body["_graphmodule_cls_name"] = type(self).__name__
        for name in ("_replace_hooks", "_create_node_hooks", "_erase_node_hooks", "_deepcopy_hooks"):
            body[name] = []
        return reduce_graph_module, (body, _format_import_block(python_code.globals))

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        return self.__reduce__()

    def _deepcopy_init(self) -> Callable[..., None]:
        return GraphModule.__init__

    def __deepcopy__(self, memo: dict[int, Any]) -> GraphModule:
        copied = type(self).__new__(type(self))
        memo[id(self)] = copied
        skipped = ("_graph", "_replace_hooks", "_create_node_hooks", "_erase_node_hooks", "_deepcopy_hooks")
        root = Module()
        root.__dict__ = {n: copy.deepcopy(v, memo) for n, v in self.__dict__.items() if n not in skipped}
        graph = copy.deepcopy(self._graph, memo)
        self._deepcopy_init()(copied, root, graph)
        for name, value in root.__dict__.items():
            if name not in copied.__dict__:
                copied.__dict__[name] = value
        for name in ("_parameters", "_buffers", "_modules"):
            for key, value in root.__dict__[name].items():
                copied.__dict__[name].setdefault(key, value)
        for name, value in root.__dict__.items():
            if name.startswith(("_forward_", "_backward_", "_state_dict", "_load_state_dict", "_is_full")):
                copied.__dict__[name] = value
        copied.training = self.training
        copied.meta = copy.copy(self.meta)
        copied._deepcopy_hooks = list(self._deepcopy_hooks)
        for hook in self._deepcopy_hooks:
            hook(copied)
        return copied

    def __copy__(self) -> GraphModule:
        from ._lazy_graph_module import _make_graph_module

        copied = _make_graph_module(self, self.graph)
        copied.meta = self.meta
        return copied

    # ------------------------------------------------------------------------------ text and files

    def __str__(self) -> str:
        reminder = "# To see more debug info, please use `graph_module.print_readable()`"
        return "\n".join([super().__str__(), self._code, reminder])

    def print_readable(
        self,
        print_output: bool = True,
        include_stride: bool = False,
        include_device: bool = False,
        colored: bool = False,
        *,
        fast_sympy_print: bool = False,
        expanded_def: bool = False,
        additional_meta: list[str] | None = None,
    ) -> str:
        """The code with comments and shapes, of this module and of the graph modules in it."""
        text = _print_readable(self, self._get_name(), include_stride, include_device, expanded_def)
        if print_output:
            print(text)  # noqa: T201
        return text

    def to_folder(self, folder: str | os.PathLike[str], module_name: str = "FxModule") -> None:
        """Write the module as a Python package: `module.py`, its state, and its submodules."""
        target = Path(folder)
        target.mkdir(parents=True, exist_ok=True)
        torch.save(self.state_dict(), target / "state_dict.pt")
        lines = [
            "import torch",
            _format_import_block(self._graph.python_code("self").globals),
            "from torch.nn import *",
            f"class {module_name}(torch.nn.Module):",
            "    def __init__(self):",
            "        super().__init__()",
        ]
        for name, module in self.named_children():
            torch.save(module, target / f"{name}.pt")
            lines.append(f"        self.{name} = torch.load(r'{target / name}.pt', weights_only=False)")
        for name, buffer in self._buffers.items():
            if buffer is not None:
                lines.append(
                    f"        self.register_buffer('{name}', torch.empty({list(buffer.shape)}, dtype={buffer.dtype}))"
                )
        for name, parameter in self._parameters.items():
            if parameter is not None:
                lines.append(
                    f"        self.{name} = torch.nn.Parameter(torch.empty({list(parameter.shape)}, dtype={parameter.dtype}))"
                )
        lines.append(f"        self.load_state_dict(torch.load(r'{target}/state_dict.pt'))")
        lines.append(self._code.lstrip("\n").replace("\n", "\n    ").join(["    ", ""]))
        (target / "module.py").write_text("\n".join(lines) + "\n")
        (target / "__init__.py").write_text("from .module import *\n")

    # ------------------------------------------------------------------------------ hooks

    def _register_replace_node_hook(self, f: Callable[..., object]) -> None:
        self._replace_hooks.append(f)

    def _unregister_replace_node_hook(self, f: Callable[..., object]) -> None:
        self._replace_hooks.remove(f)

    def _register_create_node_hook(self, f: Callable[..., object]) -> None:
        self._create_node_hooks.append(f)

    def _unregister_create_node_hook(self, f: Callable[..., object]) -> None:
        self._create_node_hooks.remove(f)

    def _register_erase_node_hook(self, f: Callable[..., object]) -> None:
        self._erase_node_hooks.append(f)

    def _unregister_erase_node_hook(self, f: Callable[..., object]) -> None:
        self._erase_node_hooks.remove(f)

    def _register_deepcopy_hook(self, f: Callable[..., object]) -> None:
        self._deepcopy_hooks.append(f)

    def _unregister_deepcopy_hook(self, f: Callable[..., object]) -> None:
        self._deepcopy_hooks.remove(f)

    @contextlib.contextmanager
    def _set_replace_hook(self, f: Callable[..., object]) -> Iterator[None]:
        self._register_replace_node_hook(f)
        try:
            yield
        finally:
            self._unregister_replace_node_hook(f)


def _print_readable(
    module: GraphModule, module_name: str, include_stride: bool, include_device: bool, expanded_def: bool
) -> str:
    python_code = module._graph.python_code(
        "self",
        verbose=True,
        include_stride=include_stride,
        include_device=include_device,
        expanded_def=expanded_def,
    )
    code = python_code.src.lstrip("\n")
    body = "\n".join(f"    {line}" if line.strip() else "" for line in code.split("\n")).rstrip() + "\n"
    text = f"class {module_name}(torch.nn.Module):\n{body}"
    for name, child in module.named_children():
        if isinstance(child, GraphModule):
            inner = _print_readable(child, name, include_stride, include_device, expanded_def)
            indented = "\n".join(f"    {line}" if line else "" for line in inner.split("\n"))
            text += f"\n{indented.rstrip()}\n"
    return text
