"""Ops of one's own: made by torch.library, called, differentiated, refused, and seen by modes and profiles."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any

import numpy as np


def _library(torch: Any) -> Any:
    return importlib.import_module(f"{torch.__name__}.library")


def _tree(torch: Any, show: Any, call: Any) -> None:
    """Names and shapes of events, indented; what torch's kernels show of their own bookkeeping is left out."""
    with torch.profiler.profile(record_shapes=True) as prof:
        call()

    def walk(event: Any, depth: int) -> None:
        if event.name in ("aten::to", "aten::as_strided") or (event.name == "aten::fill_" and depth == 1):
            return
        show("  " * depth + event.name, event.input_shapes)
        for child in event.cpu_children:
            walk(child, depth + 1)

    for event in prof.events():
        if event.cpu_parent is None:
            walk(event, 0)


def _annotated(torch: Any, function: Any, result: Any, **kinds: Any) -> Any:
    function.__annotations__ = {**kinds, "return": result}
    return function


def _sine(torch: Any, show: Any) -> Any:
    def numpy_sin(x: Any, scale: Any = 1.0) -> Any:
        show("called", torch.is_grad_enabled(), x.requires_grad)
        return torch.from_numpy(np.sin(x.detach().numpy()) * np.float32(scale))

    typed = _annotated(torch, numpy_sin, torch.Tensor, x=torch.Tensor, scale=float)
    return _library(torch).custom_op("library_cases::numpy_sin", mutates_args=())(typed)


def functions_as_ops(torch: Any, show: Any) -> None:
    sine, x = _sine(torch, show), torch.ones(2, 2)
    op = torch.ops.library_cases.numpy_sin
    show(sine, sine(x), sine(x, 2.0), op(x), op.default(x, scale=3.0))
    show(
        op,
        op.default,
        op.default._schema,
        torch.ops.library_cases,
        "numpy_sin" in dir(torch.ops.library_cases),
    )
    _tree(torch, show, lambda: sine(x))
    _tree(torch, show, lambda: op(x))
    for arguments in ((), (3,), (x, 1.0, 2.0)):
        show.raises(sine, *arguments)
    show.raises(sine, x, nope=1)
    show.raises(getattr, torch.ops.library_cases, "nothing")
    sine.register_kernel("cpu")(lambda x, scale=1.0: x * 100)
    show(sine(x))


def gradients_of_ops(torch: Any, show: Any) -> None:
    sine = _sine(torch, show)
    y = torch.ones(2, 2, requires_grad=True)
    result = sine(y)
    show(result.requires_grad, type(result.grad_fn).__name__)
    show.raises(lambda: result.sum().backward())

    def set_up(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(inputs[0])
        ctx.scale = inputs[1]

    def backward(ctx: Any, g: Any) -> Any:
        return g * ctx.saved_tensors[0].cos() * ctx.scale, None

    sine.register_autograd(backward, setup_context=set_up)
    sine(y, 2.0).sum().backward()
    show(y.grad)
    _tree(torch, show, lambda: sine(y).sum().backward())
    sine.register_fake(lambda x, scale=1.0: torch.empty_like(x))
    show(sine(torch.empty(3, device="meta")).shape)


def lists_and_writes(torch: Any, show: Any) -> None:
    library, tensor = _library(torch), torch.Tensor
    x = torch.ones(2)

    def many(xs: Any, k: Any) -> Any:
        return [t * k for t in xs]

    op = library.custom_op("library_cases::many", mutates_args=())(
        _annotated(torch, many, list[tensor], xs=list[tensor], k=float)
    )
    show(op([x, x], 2.0), op._opoverload._schema)

    def summed(xs: Any, k: Any) -> Any:
        return sum(t * k for t in xs)

    op = library.custom_op("library_cases::summed", mutates_args=())(
        _annotated(torch, summed, tensor, xs=list[tensor], k=float)
    )
    op.register_autograd(
        lambda ctx, g: ([g * ctx.k] * ctx.n, None),
        setup_context=lambda ctx, inputs, output: (
            setattr(ctx, "k", inputs[1]),
            setattr(ctx, "n", len(inputs[0])),
        ),
    )
    a, b = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
    op([a, b], 3.0).sum().backward()
    show(a.grad, b.grad)

    def increase(x: Any, by: Any) -> Any:
        x.add_(by)

    op = library.custom_op("library_cases::increase", mutates_args={"x"})(
        _annotated(torch, increase, None, x=tensor, by=float)
    )
    z = torch.zeros(2)
    show(op(z, 2.0), z, z._version, op._opoverload._schema)
    twice = library.custom_op("library_cases::same", mutates_args=())(
        _annotated(torch, lambda x: x, tensor, x=tensor)
    )
    try:
        twice(x)
    except RuntimeError as error:
        show(str(error).partition("): ")[2])
    plain = library.custom_op(
        "library_cases::plain", lambda x: x + 1, mutates_args=(), schema="(Tensor x) -> Tensor"
    )
    show(plain(x), plain._opoverload._schema)


def schemas_from_annotations(torch: Any, show: Any) -> None:
    library, tensor = _library(torch), torch.Tensor

    def pair(
        x: Any, n: Any, ws: Any, flag: Any = True, name: Any = "a", opt: Any = None, k: Any = None
    ) -> Any:
        return x, x

    kinds = {"x": tensor, "n": int, "ws": Sequence[int], "flag": bool, "name": str, "opt": tensor | None}
    pair = _annotated(torch, pair, tuple[tensor, tensor], **kinds, k=Sequence[int] | None)
    show(library.infer_schema(pair, mutates_args=()))
    show(library.infer_schema(pair, mutates_args={"x"}, op_name="a::b"))
    show(library.infer_schema(pair, mutates_args="unknown"))
    show.raises(library.infer_schema, pair, mutates_args={"q"})

    def bare(x):
        return x

    show.raises(library.infer_schema, bare, mutates_args=())
    show.raises(library.infer_schema, _annotated(torch, lambda x: x, None, x=tensor), mutates_args=())
    try:
        library.infer_schema(_annotated(torch, lambda y: y, tensor, y=dict), mutates_args=())
    except ValueError as error:
        show(str(error)[:90])


def definitions_and_implementations(torch: Any, show: Any) -> None:
    library, x = _library(torch), torch.ones(2)
    library.define("library_low::add_two", "(Tensor x) -> Tensor")
    op = torch.ops.library_low.add_two
    try:
        op(x)
    except NotImplementedError as error:
        show(str(error)[:66])
    library.impl("library_low::add_two", "cpu")(lambda x: x + 2)
    show(op(x))
    _tree(torch, show, lambda: op(x))
    library.register_autograd("library_low::add_two", lambda ctx, g: g * 7)
    y = x.clone().requires_grad_()
    op(y).sum().backward()
    show(y.grad)
    show.raises(library.define, "nons", "(Tensor x) -> Tensor")
    lib = library.Library("library_old", "DEF")
    show(lib, lib.define("mul3(Tensor x, Scalar a=3) -> Tensor"))
    lib.impl("mul3", lambda x, a=3: x * a, "CPU")
    show(
        torch.ops.library_old.mul3(x),
        torch.ops.library_old.mul3(x, 5),
        torch.ops.library_old.mul3.default._schema,
    )
    lib.define("mul4(Tensor x) -> Tensor")
    lib.impl("mul4", lambda x: x * 4, "CompositeImplicitAutograd")
    result = torch.ops.library_old.mul4(y)
    show(result.requires_grad, type(result.grad_fn).__name__)
    show.raises(lib.define, "nonsense")
    show.raises(lib.impl, "mul3", lambda x: x, "Nokey")
    show.raises(library.Library, "x", "NOPE")
    with library._scoped_library("library_scoped", "DEF") as scoped:
        scoped.define("relu(Tensor x) -> Tensor")
        scoped.impl("relu", lambda x: x + 1, "CPU")
        show(torch.ops.library_scoped.relu(x), torch.relu(x))


def ops_that_modes_see(torch: Any, show: Any) -> None:
    base = importlib.import_module(f"{torch.__name__}.utils._python_dispatch").TorchDispatchMode
    library = _library(torch)
    sine = _sine(torch, show)
    library.define("library_seen::neg", "(Tensor x) -> Tensor")
    library.impl("library_seen::neg", "CompositeImplicitAutograd")(lambda x: -x)

    class Log(base):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            show("  ", func, len(args))
            return func(*args, **(kwargs or {}))

    x, y = torch.ones(2), torch.ones(2, requires_grad=True)
    with Log():
        sine(x)
        sine(y)
        torch.ops.library_seen.neg(x)
