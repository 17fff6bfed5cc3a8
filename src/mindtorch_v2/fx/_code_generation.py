"""Python source from the nodes of a graph: nodes in, source text and the objects it names out."""

from __future__ import annotations

import enum
import re
import types
import typing
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import mindtorch_v2 as torch
from mindtorch_v2.utils import _pytree as pytree

from .. import _function_names
from ._namespace import _custom_builtins, _Namespace
from .node import Node, _get_qualified_name, _type_repr

reflectable_magic_methods = {
    "add": "{} + {}", "sub": "{} - {}", "mul": "{} * {}", "floordiv": "{} // {}", "truediv": "{} / {}", "div": "{} / {}",
    "mod": "{} % {}", "pow": "{} ** {}", "lshift": "{} << {}", "rshift": "{} >> {}", "and_": "{} & {}", "or_": "{} | {}",
    "xor": "{} ^ {}", "getitem": "{}[{}]", "matmul": "{} @ {}",
}  # fmt: skip
magic_methods = {
    "eq": "{} == {}", "ne": "{} != {}", "lt": "{} < {}", "gt": "{} > {}", "le": "{} <= {}", "ge": "{} >= {}", "pos": "+{}",
    "neg": "-{}", "invert": "~{}", **reflectable_magic_methods,
}  # fmt: skip
inplace_methods = {
    "iadd": "{} += {}", "iand": "{} &= {}", "ifloordiv": "{} //= {}", "ilshift": "{} <<= {}", "imod": "{} %= {}", "imul": "{} *= {}",
    "imatmul": "{} @= {}", "ior": "{} |= {}", "ipow": "{} **= {}", "irshift": "{} >>= {}", "isub": "{} -= {}", "itruediv": "{} /= {}",
    "ixor": "{} ^= {}", "setitem": "{}[{}] = {}",
}  # fmt: skip

# The names in typing of builtin classes, which annotations such as `List[int]` are written with.
_TYPING_NAMES: dict[Any, Any] = {
    list: typing.List, dict: typing.Dict, set: typing.Set, frozenset: typing.FrozenSet, tuple: typing.Tuple,  # noqa: UP006
}  # fmt: skip
_DTYPE_ABBREVIATIONS = {
    "bfloat16": "bf16", "float64": "f64", "float32": "f32", "float16": "f16", "float8_e4m3fn": "f8e4m3fn", "float8_e5m2": "f8e5m2",
    "complex32": "c32", "complex64": "c64", "complex128": "c128", "int8": "i8", "int16": "i16", "int32": "i32", "int64": "i64",
    "bool": "b8", "uint8": "u8", "uint16": "u16", "uint32": "u32", "uint64": "u64",
}  # fmt: skip
_STACK_FRAME = re.compile(r'File "(?P<file>.+)", line (?P<lineno>\d+), in (?P<name>.+)\n\s*(?P<code>.+)')


@dataclass
class PythonCode:
    """Generated source, the objects its global names stand for, and the node of each line."""

    src: str
    globals: dict[str, Any]
    _lineno_map: dict[int, int | None] | None = field(default=None)
    _prologue_start: int = 0


class _PyTreeInfo(NamedTuple):
    """The structure of the arguments and of the result around a graph on flat values."""

    orig_args: list[str]
    in_spec: pytree.TreeSpec
    out_spec: pytree.TreeSpec | None


def _is_from_torch(obj: Any) -> bool:
    """Whether generated code reaches an object through the name `torch`."""
    module = getattr(obj, "__module__", None) or ""
    package = _function_names._PACKAGE
    if module == package or module.startswith(package + "."):
        return True
    return id(obj) in _function_names.qualified_names()


def _format_target(base: str, target: str) -> str:
    """Attribute access along a dotted path; parts that are no identifiers through `getattr`."""
    text = base
    for part in target.split("."):
        text = f"{text}.{part}" if part.isidentifier() else f'getattr({text}, "{part}")'
    return text


class _Globals:
    """The global names that generated code uses."""

    def __init__(self, namespace: _Namespace) -> None:
        self._namespace = namespace
        self.names: dict[str, Any] = {}
        for name, builtin in _custom_builtins.items():
            self.add(name, builtin.obj)

    def add(self, name_hint: str, obj: Any) -> str:
        """The text by which the code names an object."""
        if _is_from_torch(obj) and obj is not torch.device:
            return _get_qualified_name(obj)
        hint = name_hint.replace(".", "_")
        if self.names.get(hint, self) is obj:
            return hint
        name = self._namespace.create_name(hint, obj)
        if name in self.names:
            if self.names[name] != obj:  # equal ones share a name: two ForwardRef("Any"), say
                raise AssertionError(f"Global name {name} is already used for another object")
            return name
        self.names[name] = obj
        return name

    def type_text(self, annotation: Any) -> str:
        """A type as source text; parts of it that are objects become global names."""
        if annotation == ():
            return "()"
        if annotation is ...:
            return self.add("_", annotation)
        if isinstance(annotation, types.UnionType):
            return "|".join(self.type_text(part) for part in annotation.__args__)
        typename = _type_repr(annotation)
        origin = getattr(annotation, "__origin__", None)
        if origin is None or isinstance(annotation, str):
            return self.add(typename, annotation)
        arguments = getattr(annotation, "__args__", ())
        if not isinstance(annotation, types.GenericAlias) and (arguments or "[" in typename):
            origin = _TYPING_NAMES.get(origin, origin)
        name = self.add(_type_repr(origin), origin)
        return f"{name}[{','.join(self.type_text(part) for part in arguments)}]" if arguments else name

    def value_text(self, value: Any) -> str:
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            name = self.add(_get_qualified_name(type(value)), type(value))
            return f"{name}{tuple(value)!r}"
        if isinstance(value, (torch.ops.OpOverload, torch.ops.OpOverloadPacket)):
            name = _get_qualified_name(value)
            return self.add(name, value)
        if isinstance(value, enum.Enum):
            self.add(type(value).__name__, type(value))
            return str(value)
        if isinstance(value, slice):
            parts = ", ".join(self.value_text(part) for part in (value.start, value.stop, value.step))
            return f"slice({parts})"
        if isinstance(value, tuple) and type(value) is not tuple:
            value = tuple(value)
        if type(value) is tuple:
            return f"({', '.join(self.value_text(v) for v in value)}{',' if len(value) == 1 else ''})"
        if isinstance(value, list):
            return f"[{', '.join(self.value_text(v) for v in value)}]"
        if isinstance(value, dict):
            return "{" + ", ".join(f"{k!r}: {self.value_text(v)}" for k, v in value.items()) + "}"
        return repr(value)

    def arguments_text(self, args: Sequence[Any], kwargs: dict[str, Any]) -> str:
        texts = [self.value_text(value) for value in args]
        return ", ".join(texts + [f"{name} = {self.value_text(value)}" for name, value in kwargs.items()])


def _last_uses(nodes: Iterable[Node]) -> dict[Node, list[Node]]:
    """The values that are not used after a node, by that node."""
    last_user: dict[Node, Node] = {}
    uses: dict[Node, list[Node]] = {}
    for user in reversed(list(nodes)):
        for value in user._input_nodes:
            if value not in last_user:
                last_user[value] = user
                uses.setdefault(user, []).append(value)
    return uses


class CodeGen:
    """Writes the source of a graph's `forward`. Subclasses change its signature, its inputs and its result."""

    def __init__(self) -> None:
        self._body_transformer: Callable[[list[str]], list[str]] | None = None
        self._func_name = "forward"

    def gen_fn_def(
        self, free_vars: list[str], maybe_return_annotation: str, *, expanded_def: bool = False
    ) -> str:
        """The line with `def`."""
        names = (
            free_vars if free_vars and free_vars[0].split(":")[0].strip() == "self" else ["self", *free_vars]
        )
        if expanded_def:
            arguments = "".join(f"\n    {name}," for name in names) + "\n"
        else:
            arguments = ", ".join(names)
        return f"def {self._func_name}({arguments}){maybe_return_annotation}:"

    def generate_output(
        self,
        output_args: Any,
        *,
        descs: Sequence[str] | None = None,
        repr_fn: Callable[[object], str] | None = None,
    ) -> str:
        """The line with `return`."""
        return f"return {(repr_fn or repr)(output_args)}"

    def process_inputs(self, *args: Any) -> Any:
        """The values of the placeholders for the arguments of a call."""
        return args

    def process_outputs(self, outputs: Any) -> Any:
        """The result of a call for the value of the output node."""
        return outputs

    def additional_globals(self) -> list[tuple[str, Any]]:
        """Further global names that the code uses, with their objects."""
        return []

    def _gen_python_code(
        self,
        nodes: Any,
        root_module: str,
        namespace: _Namespace,
        *,
        verbose: bool = False,
        include_stride: bool = False,
        include_device: bool = False,
        colored: bool = False,
        expanded_def: bool = False,
        record_func: bool = False,
        additional_meta: list[str] | None = None,
    ) -> PythonCode:
        writer = _BodyWriter(self, nodes, root_module, namespace, verbose, include_stride, include_device)
        for node in nodes:
            writer.write(node)
        body = writer.body or ["pass\n"]
        if self._body_transformer is not None:
            body = self._body_transformer(body)
        for name, value in self.additional_globals():
            writer.globals.add(name, value)
        prologue = self.gen_fn_def(writer.free_vars, writer.return_annotation, expanded_def=expanded_def)
        wraps = "\n".join(f'torch.fx._symbolic_trace.wrap("{name}")' for name in writer.wrapped)
        code = "\n".join("    " + line for line in "".join(body).lstrip("\n").split("\n"))
        head = f"\n{wraps}\n\n" if wraps else "\n\n\n"
        src = f"{head}{prologue}\n{code}"
        first_line = src[: src.index(prologue)].count("\n") + 1
        return PythonCode(src, writer.globals.names, writer.line_numbers(), first_line)


class _BodyWriter:
    """The statements of a function's body, one node after the other."""

    def __init__(
        self,
        codegen: CodeGen,
        nodes: Iterable[Node],
        root_module: str,
        namespace: _Namespace,
        verbose: bool,
        include_stride: bool,
        include_device: bool,
    ) -> None:
        self._codegen, self._root, self._verbose = codegen, root_module, verbose
        self._include_stride, self._include_device = include_stride, include_device
        self.globals = _Globals(namespace)
        self._uses = _last_uses(nodes)
        self.body: list[str] = []
        self.free_vars: list[str] = []
        self.return_annotation = ""
        self.wrapped: dict[str, None] = {}
        self._last_stack: str | None = None
        self._n_nodes = 0

    def line_numbers(self) -> dict[int, int | None]:
        """The index of the node by the number of the line, counted from the `def`."""
        return {line: line for line in range(1, self._n_nodes + 1)}

    def write(self, node: Node) -> None:
        self._n_nodes += 1
        if self._verbose:
            self._write_stack(node)
        annotation = f" : {self.globals.type_text(node.type)}" if node.type is not None else ""
        if self._verbose and node.op != "output":
            annotation = self._metadata_text(node) or annotation
        getattr(self, f"_{node.op}")(node, annotation)
        self._drop_unused(node)

    def _write_stack(self, node: Node) -> None:
        if node.op in ("placeholder", "output"):
            return
        stack = node.stack_trace or ""
        if stack == self._last_stack:
            return
        self._last_stack = stack
        frames = list(_STACK_FRAME.finditer(stack))
        if frames:
            frame = frames[-1].groupdict()
            self.body.append(
                f"\n# File: {frame['file']}:{frame['lineno']} in {frame['name']}, code: {frame['code']}\n"
            )
        else:
            self.body.append("\n# No stacktrace found for following nodes\n")

    def _metadata_text(self, node: Node) -> str:
        value: Any = node.meta.get("val", node.meta.get("tensor_meta"))
        dtype, shape = getattr(value, "dtype", None), getattr(value, "shape", None)
        if dtype is None or shape is None:
            return ""
        name = _DTYPE_ABBREVIATIONS.get(str(dtype).removeprefix("torch."), str(dtype))
        text = f"{name}[{', '.join(map(str, shape))}]"
        if self._include_stride:
            stride = value.stride() if callable(value.stride) else value.stride
            text += f"[{', '.join(map(str, stride))}]"
        if self._include_device and hasattr(value, "device"):
            text += str(value.device)
        return f': "{text}"'

    def _drop_unused(self, node: Node) -> None:
        """Release values after their last use, so that memory is freed as in the original program."""
        if node.op == "placeholder":
            return
        if node.op == "output":
            self.body.append("\n")
            return
        unused = list(self._uses.get(node, ()))
        if not node.users:
            unused.append(node)
        if unused:
            self.body.append(f";  {' = '.join([*map(repr, unused), 'None'])}\n")
        else:
            self.body.append("\n")

    def _placeholder(self, node: Node, annotation: str) -> None:
        default = f" = {self.globals.value_text(node.args[0])}" if node.args else ""
        self.free_vars.append(f"{node.target}{annotation}{default}")
        raw_name = node.target.replace("*", "")
        if raw_name != repr(node):
            self.body.append(f"{node!r} = {raw_name}\n")

    def _call_method(self, node: Node, annotation: str) -> None:
        target = _format_target(self.globals.value_text(node.args[0]), node.target)
        arguments = self.globals.arguments_text(node.args[1:], node.kwargs)
        self.body.append(f"{node!r}{annotation} = {target}({arguments})")

    def _call_function(self, node: Node, annotation: str) -> None:
        target, args = node.target, node.args
        name = getattr(target, "__name__", "")
        if getattr(target, "__module__", "") == "_operator":
            texts = [self.globals.value_text(value) for value in args]
            if name in magic_methods and not node.kwargs:
                self.body.append(f"{node!r}{annotation} = {magic_methods[name].format(*texts)}")
                return
            if name in inplace_methods:
                self.body.append(
                    f"{inplace_methods[name].format(*texts)};  {node!r}{annotation} = {texts[0]}"
                )
                return
        global_name = self.globals.add(_get_qualified_name(target), target)
        if (
            global_name == "getattr"
            and len(args) == 2
            and isinstance(args[1], str)
            and args[1].isidentifier()
        ):
            self.body.append(
                f"{node!r}{annotation} = {_format_target(self.globals.value_text(args[0]), args[1])}"
            )
            return
        self.body.append(
            f"{node!r}{annotation} = {global_name}({self.globals.arguments_text(args, node.kwargs)})"
        )
        if node.meta.get("is_wrapped", False):
            self.wrapped.setdefault(global_name)

    def _call_module(self, node: Node, annotation: str) -> None:
        arguments = self.globals.arguments_text(node.args, node.kwargs)
        self.body.append(f"{node!r}{annotation} = {_format_target(self._root, node.target)}({arguments})")

    def _get_attr(self, node: Node, annotation: str) -> None:
        self.body.append(f"{node!r}{annotation} = {_format_target(self._root, node.target)}")

    def _output(self, node: Node, annotation: str) -> None:
        if node.type is not None:
            self.return_annotation = f" -> {self.globals.type_text(node.type)}"
        self.body.append(self._codegen.generate_output(node.args[0], repr_fn=self.globals.value_text))


class _BoxedCodeGen(CodeGen):
    """A `forward` that takes its arguments in one list and empties it."""

    def gen_fn_def(
        self, free_vars: list[str], maybe_return_annotation: str, *, expanded_def: bool = False
    ) -> str:
        names = [name.split(":")[0].split("=")[0].strip() for name in free_vars]
        lines = [f"def {self._func_name}(self, args_list){maybe_return_annotation}:"]
        if names:
            lines.append(f"    {', '.join(names)}, = args_list")
            lines.append("    args_list.clear()")
        return "\n".join(lines)


class _PyTreeCodeGen(CodeGen):
    """A `forward` whose arguments are flattened, and whose result is put together again."""

    def __init__(self, pytree_info: _PyTreeInfo) -> None:
        super().__init__()
        self.pytree_info = pytree_info

    def process_inputs(self, *inputs: Any) -> Any:
        return pytree.arg_tree_leaves(*inputs)

    def process_outputs(self, out: Any) -> Any:
        if self.pytree_info is None or self.pytree_info.out_spec is None:
            return out
        values = out if isinstance(out, (list, tuple)) else [out]
        return pytree.tree_unflatten(values, self.pytree_info.out_spec)

    def gen_fn_def(
        self, free_vars: list[str], maybe_return_annotation: str, *, expanded_def: bool = False
    ) -> str:
        names = self.pytree_info.orig_args
        line = super().gen_fn_def(list(names), maybe_return_annotation, expanded_def=expanded_def)
        if not free_vars:
            return line
        plain = [name.split(":")[0].split("=")[0].strip() for name in free_vars]
        arguments = [name for name in names if name != "self"]
        return (
            f"{line}\n    {', '.join(plain)}, = "
            f"fx_pytree.tree_flatten_spec([{', '.join(arguments)}], self._in_spec)"
        )

    def generate_output(
        self,
        output_args: Any,
        *,
        descs: Sequence[str] | None = None,
        repr_fn: Callable[[object], str] | None = None,
    ) -> str:
        text = (repr_fn or repr)(output_args)
        if self.pytree_info is not None and self.pytree_info.out_spec is not None:
            return f"return pytree.tree_unflatten({text}, self._out_spec)"
        return f"return {text}"
