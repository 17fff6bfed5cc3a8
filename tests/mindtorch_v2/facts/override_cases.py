"""What classes, objects and modes see of calls of torch's functions and ops, and what comes out."""

from __future__ import annotations

import copy
import importlib
import pickle
from typing import Any


def _importable(torch: Any, path: str) -> Any:
    return importlib.import_module(f"{torch.__name__}.{path}")


def _name(function: Any) -> str:
    return getattr(function, "__name__", str(function))


def _logging(torch: Any) -> tuple[type, list[Any]]:
    seen: list[Any] = []

    class Logged(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            seen.append([_name(func), [t.__name__ for t in types], len(args), sorted(kwargs or {})])
            return super().__torch_function__(func, types, args, kwargs or {})

    return Logged, seen


def _show_each(show: Any, seen: list[Any], expressions: str, names: dict[str, Any]) -> None:
    """What each expression gives, and what the class saw of it."""
    for text in expressions.strip().splitlines():
        seen.clear()
        result = eval(text, names)  # the lines below
        listed = isinstance(result, (tuple, list))
        show(text, [type(r).__name__ for r in result] if listed else type(result).__name__, *seen)


def operators(torch: Any, show: Any) -> None:
    cls, seen = _logging(torch)
    a, p = torch.ones(2, 3).as_subclass(cls), torch.ones(2, 3)
    _show_each(show, seen, OPERATORS, {"a": a, "p": p})
    b = a.clone()
    seen.clear()
    b += 1
    show(type(b).__name__, *seen)


def functions(torch: Any, show: Any) -> None:
    cls, seen = _logging(torch)
    a, p, i = torch.ones(2, 3).as_subclass(cls), torch.ones(2, 3), torch.tensor([0, 1])
    names = {"torch": torch, "F": torch.nn.functional, "a": a, "p": p, "i": i, "cls": cls, "pickle": pickle}
    _show_each(show, seen, FUNCTIONS, names)


OPERATORS = """
a + 1
1 + a
p + a
a + p
a - 1
1 - a
a * a
a / 2
a // 2
a % 2
-a
abs(a)
a == 1
a != 1
a < 1
1 < a
a @ p.T
2**a
~(a > 0)
"""
FUNCTIONS = """
torch.add(a, 1, alpha=2)
a.add(1)
F.linear(a, torch.ones(4, 3))
torch.cat([p, a])
torch.stack((a, a))
torch.chunk(a, 2)
a.max(dim=1)
torch.max(a)
torch.sum(a, dim=1)
a.mean()
torch.where(p > 0, a, p)
torch.matmul(a, p.T)
torch.einsum("ij->i", a)
a.clone()
a.detach()
a.to(torch.float64)
a.view(-1)
a.reshape(3, 2)
torch.zeros_like(a)
a.new_zeros(3)
a.topk(1)
torch.add(p, 1, out=a)
a[0]
a[i]
len(a)
a[0, 0].item()
a.tolist()
float(a[0, 0])
bool(a[0, 0])
1 in a
a.size()
a.dim()
a.numel()
a.stride()
a.type()
a.shape
a.dtype
a.T
a.requires_grad
a.grad
a.data
a.is_leaf
torch.ones(2)
torch.is_tensor(a)
torch.as_tensor(a)
torch.tensor(a)
torch.allclose(a, p)
torch.equal(a, p)
torch.nn.Linear(3, 2)(a)
torch.nn.Parameter(a)
p.as_subclass(cls)
cls([1.0, 2.0])
a.__setitem__(0, 1)
hash(a)
setattr(a, "requires_grad", False)
"""


def results_are_of_the_class(torch: Any, show: Any) -> None:
    class A(torch.Tensor):
        pass

    class B(A):
        pass

    class Other(torch.Tensor):
        pass

    class Off(torch.Tensor):
        __torch_function__ = torch._C._disabled_torch_function_impl

    a, b = torch.ones(2).as_subclass(A), torch.ones(2).as_subclass(B)
    show(type(a + b).__name__, type(b + a).__name__, type(torch.ones(2) + a).__name__, type(a.sum()).__name__)
    show(type(torch.ones(2).as_subclass(Off) + 1) is torch.Tensor)
    show.raises(lambda: a + torch.ones(2).as_subclass(Other))
    x = a.clone().requires_grad_()
    y = (x * 2).sum()
    show(type(y).__name__, type(y.grad_fn).__name__, y.requires_grad)
    y.backward()
    show(type(x.grad) is torch.Tensor, x.grad)
    show(repr(a), repr(torch.nn.Parameter(a.detach())), a.view(1, 2))
    with torch._C.DisableTorchFunctionSubclass():
        show(type(a + 1) is torch.Tensor, isinstance(a, torch.Tensor))
    show(type(torch.nn.Parameter(torch.ones(2)) * 1) is torch.Tensor)

    class P(torch.nn.Parameter):
        pass

    p = P(torch.ones(2))
    show(type(p).__name__, type(p * 1) is torch.Tensor, isinstance(p, torch.nn.Parameter))
    show(type(copy.copy(a)).__name__)


def attributes_of_a_class(torch: Any, show: Any) -> None:
    class Named(torch.Tensor):
        @staticmethod
        def __new__(cls: Any, data: Any, label: str) -> Any:
            made = torch.Tensor._make_subclass(cls, data)
            made.label = label
            return made

        def __init__(self, data: Any, label: str) -> None:
            pass

        def twice(self) -> Any:
            return self * 2

        def sum(self, *args: Any, **kwargs: Any) -> Any:
            return super().sum(*args, **kwargs) + 1

    x = Named(torch.ones(3), "here")
    show(x.label, x.twice(), hasattr(x.twice(), "label"), x.sum(), type(x.sum()).__name__, x.shape, x.dtype)
    show(
        Named.__mro__[-2:] == torch.Tensor.__mro__[-2:] or Named.__mro__[-1] is object,
        issubclass(Named, torch.Tensor),
    )


def answers_that_are_none(torch: Any, show: Any) -> None:
    class A(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return NotImplemented

    a = torch.ones(2).as_subclass(A)
    show.raises(torch.mul, a, 1)
    show.raises(lambda: a.shape)
    show.raises(torch.nn.functional.relu, a)
    show.raises(lambda: a + 1)


def objects_that_are_no_tensors(torch: Any, show: Any) -> None:
    handled: dict[Any, Any] = {}

    class Scaled:
        def __init__(self, n: int, value: float) -> None:
            self.n, self.value = n, value

        def __repr__(self) -> str:
            return f"Scaled({self.n}, {self.value})"

        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            if func not in handled or not all(issubclass(t, (torch.Tensor, Scaled)) for t in types):
                return NotImplemented
            return handled[func](*args, **(kwargs or {}))

    handled[torch.mean] = lambda x: x.value / x.n
    handled[torch.add] = lambda a, b, alpha=1: "added"
    handled[torch.cat] = lambda tensors, dim=0: "joined"
    handled[torch.nn.functional.relu] = lambda x, inplace=False: "relu"
    s = Scaled(2, 3.0)
    for _ in range(2):
        show(torch.mean(s), torch.add(s, s), torch.add(torch.ones(2), s), torch.add(s, 1, alpha=2))
        show(torch.cat([torch.ones(1), s]), torch.nn.functional.relu(s))
        show.raises(torch.mul, s, 3)
        show.raises(torch.mm, s, torch.ones(2, 2))


def questions(torch: Any, show: Any) -> None:
    overrides = _importable(torch, "overrides")

    class A(torch.Tensor):
        pass

    class Duck:
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return "answered"

    a, p, d = torch.ones(1).as_subclass(A), torch.ones(1), Duck()
    show(
        overrides.has_torch_function((a,)),
        overrides.has_torch_function((p, 3)),
        overrides.has_torch_function_unary(d),
    )
    show(overrides.has_torch_function_variadic(1, a), overrides.has_torch_function((torch.nn.Parameter(p),)))
    show(
        overrides.is_tensor_like(d),
        overrides.is_tensor_like(3),
        overrides.is_tensor_like(a),
        overrides.is_tensor_like("x"),
    )
    show(overrides.handle_torch_function(torch.add, (d,), 1, 2))
    show.raises(overrides.handle_torch_function, torch.add, (3,), 1, 2)
    wrapped = overrides.wrap_torch_function(lambda x: (x,))(lambda x: "plain")
    show(wrapped(3), wrapped(d))
    show(
        overrides.resolve_name(torch.add),
        overrides.resolve_name(torch.nn.functional.relu),
        overrides.resolve_name(len),
    )
    show(
        overrides.resolve_name(torch.Tensor.shape.__get__),
        overrides.is_tensor_method_or_property(torch.Tensor.shape.__get__),
    )
    show(
        overrides.is_tensor_method_or_property(torch.Tensor.size),
        overrides.is_tensor_method_or_property(torch.ones),
    )
    found = overrides.get_overridable_functions()
    show(torch.add in found[torch], torch.ones in found[torch], torch.Tensor.add in found[torch.Tensor])
    show(
        torch.nn.functional.relu in found[torch.nn.functional],
        torch.ones in overrides.get_ignored_functions(),
    )
    show(overrides.get_testing_overrides()[torch.add](1, 2), sorted(overrides.__all__))
    with torch._C.DisableTorchFunctionSubclass():
        show(overrides.has_torch_function((a,)))


def function_modes(torch: Any, show: Any) -> None:
    overrides = _importable(torch, "overrides")
    F = torch.nn.functional
    x = torch.ones(2, 3, requires_grad=True)

    class Log(overrides.TorchFunctionMode):
        def __init__(self, name: str) -> None:
            super().__init__()
            self.name = name

        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            show(self.name, _name(func), len(args))
            return func(*args, **(kwargs or {}))

    with Log("outer") as outer:
        x + 1
        torch.ones(2)
        torch.arange(3, dtype=torch.int64)
        show(x.shape)
        torch.tensor([1])
        F.linear(x, torch.ones(1, 3))
        (x * x).sum().backward()
        show(overrides._get_current_function_mode() is outer, torch._C._len_torch_function_stack())
        with Log("inner"):
            torch.neg(x)
        with torch._C.DisableTorchFunction():
            torch.neg(x)
        with torch._C.DisableTorchFunctionSubclass():
            torch.neg(x)
    torch.neg(x)
    show(overrides._get_current_function_mode())

    class Twice(overrides.TorchFunctionMode):
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return 2 * func(*args, **(kwargs or {})) if func is torch.ones else func(*args, **(kwargs or {}))

    with Twice():
        show(torch.ones(2), torch.zeros(2))
    show(torch.ones(2))
    with overrides.BaseTorchFunctionMode():
        show(torch.ones(1) + 1)
    show.raises(lambda: Twice().__exit__(None, None, None))


def what_modes_hear_of(torch: Any, show: Any) -> None:
    overrides = _importable(torch, "overrides")

    class Log(overrides.TorchFunctionMode):
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            show("  ", overrides.resolve_name(func), [t.__name__ for t in types])
            return func(*args, **(kwargs or {}))

    q, p = torch.ones(2, 2), torch.nn.Parameter(torch.ones(2))
    for text in MODES.strip().splitlines():
        show(text)
        with Log():
            eval(text, {"torch": torch, "q": q, "p": p})


MODES = """
q.T
q.shape
q[0]
torch.zeros(2)
torch.linalg.norm(q)
torch.nn.Parameter(q)
torch.nn.Linear(2, 2, bias=False)
torch.nn.functional.linear(q, q)
q.requires_grad
q.data
q.grad
q.size()
q.dim()
q.numel()
q.tolist()
repr(q)
len(q)
p.grad
p.is_leaf
torch.nn.init.normal_(p)
torch.nn.init.constant_(p, 1.0)
torch.fft.fft(q)
torch.special.erf(q)
"""


def dispatch_modes(torch: Any, show: Any) -> None:
    dispatch = _importable(torch, "utils._python_dispatch")
    F = torch.nn.functional
    x, linear = torch.ones(2, 3, requires_grad=True), torch.nn.Linear(3, 2)

    class Log(dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            show(
                "  ", func, func.__name__, type(func).__name__, len(args), func.namespace, func.overloadpacket
            )
            return func(*args, **(kwargs or {}))

    with Log() as mode:
        for name, call in {
            "add": lambda: x + 1, "linear": lambda: linear(x), "view": lambda: x.view(-1), "select": lambda: x[0],
            "item": lambda: x.sum().item(), "matmul": lambda: x @ x.T, "mean": x.mean, "write": lambda: torch.zeros(2).add_(1),
            "embedding": lambda: F.embedding(torch.zeros(1, dtype=torch.int64), x), "cat": lambda: torch.cat([x, x]),
        }.items():  # fmt: skip
            show(name)
            call()
        show(dispatch._get_current_dispatch_mode() is mode, dispatch.is_in_torch_dispatch_mode())
        with dispatch._disable_current_modes():
            torch.neg(x)
    show(dispatch._get_current_dispatch_mode())
    x.grad = None
    with Log():
        y = (x * x).sum()
    y.backward()
    show(x.grad)

    class Silent(dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            result = func(*args, **(kwargs or {}))
            return result * 0 if func is torch.ops.aten.neg.default else result

    with Silent():
        show(torch.neg(torch.ones(2)), torch.abs(torch.ones(2)))
    show(torch.neg(torch.ones(2)))


def classes_that_dispatch(torch: Any, show: Any) -> None:
    tree = _importable(torch, "utils._pytree")

    class Wrapper(torch.Tensor):
        @staticmethod
        def __new__(cls: Any, inner: Any) -> Any:
            return torch.Tensor._make_wrapper_subclass(
                cls, inner.size(), dtype=inner.dtype, device=inner.device
            )

        def __init__(self, inner: Any) -> None:
            self.inner = inner

        def __repr__(self) -> str:
            return f"Wrapper({self.inner})"

        @classmethod
        def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            show("  ", func, [t.__name__ for t in types])
            inner, outer = (
                (lambda v: v.inner if isinstance(v, Wrapper) else v),
                (lambda v: Wrapper(v) if isinstance(v, torch.Tensor) else v),
            )
            return tree.tree_map(
                outer, func(*tree.tree_map(inner, args), **tree.tree_map(inner, kwargs or {}))
            )

    w = Wrapper(torch.ones(2, 3))
    show(w.shape, w.dtype, w.device, w.requires_grad, type(w).__name__)
    for name, call in {
        "add": lambda: w + 1, "other": lambda: torch.ones(2, 3) * w, "sum": w.sum, "cat": lambda: torch.cat([w, torch.ones(2, 3)]),
        "view": lambda: w.view(-1), "detach": w.detach, "item": lambda: w.sum().item(), "max": lambda: w.max(dim=1).values,
        "mm": lambda: torch.mm(w, torch.ones(3, 1)),
    }.items():  # fmt: skip
        show(name, call())


def profiles(torch: Any, show: Any) -> None:
    dispatch = _importable(torch, "utils._python_dispatch")
    x = torch.ones(2, 3)

    class Plain(dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return func(*args, **(kwargs or {}))

    class Sub(torch.Tensor):
        pass

    with torch.profiler.profile() as prof:
        with Plain():
            torch.neg(x)
    show([(e.name, e.cpu_parent and e.cpu_parent.name) for e in prof.events()])
    with torch.profiler.profile() as prof:
        torch.neg(x.as_subclass(Sub))
    show([(e.name, e.cpu_parent and e.cpu_parent.name) for e in prof.events()])
