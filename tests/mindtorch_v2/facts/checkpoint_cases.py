"""Cases of torch.utils.checkpoint: both ways, random state, early stop, errors of non-deterministic functions."""

from __future__ import annotations

import contextlib
import importlib
from typing import Any


def _module(torch: Any) -> Any:
    return importlib.import_module(torch.__name__ + ".utils.checkpoint")


def _error(call: Any) -> str:
    """An error without the hints that stand after its first paragraph."""
    try:
        result = call()
    except Exception as error:
        return f"{type(error).__name__}: {str(error).partition('Tip:')[0]}"
    return f"returned {result}"


def both_ways_give_the_gradients(torch: Any, show: Any) -> None:
    checkpoint = _module(torch).checkpoint
    x = torch.arange(3.0, requires_grad=True)
    calls = []

    def function(x: Any, y: Any = 2) -> Any:
        calls.append((torch.is_grad_enabled(), x.requires_grad))
        return (x * y).sin().exp()

    for options in (
        {}, {"use_reentrant": True}, {"use_reentrant": False}, {"use_reentrant": True, "preserve_rng_state": False},
        {"use_reentrant": False, "preserve_rng_state": False}, {"use_reentrant": False, "y": 3},
        {"use_reentrant": False, "determinism_check": "none"}, {"use_reentrant": False, "debug": True},
    ):  # fmt: skip
        calls.clear()
        x.grad = None
        out = show.warns(checkpoint, function, x, **options)
        out.sum().backward()
        show(out, x.grad, calls)
    for options in (
        {"use_reentrant": True, "y": 3}, {"use_reentrant": True, "debug": True},
        {"use_reentrant": True, "context_fn": lambda: None}, {"use_reentrant": False, "determinism_check": "foo"},
    ):  # fmt: skip
        show.raises(checkpoint, function, x, **options)
    for way in (True, False):
        show(show.warns(checkpoint, function, torch.ones(2), use_reentrant=way))
        with torch.no_grad():
            show(checkpoint(function, x, use_reentrant=way), calls[-1])


def graphs_are_gone_through_again(torch: Any, show: Any) -> None:
    checkpoint = _module(torch).checkpoint
    x = torch.arange(3.0, requires_grad=True)

    def made(way: bool) -> Any:
        x.grad = None
        return checkpoint(lambda x: x.sin().exp(), x, use_reentrant=way).sum()

    for way in (True, False):
        show(_error(lambda way=way: torch.autograd.grad(made(way), x)))
        out = made(way)
        out.backward(retain_graph=True)
        out.backward()
        show(x.grad, _error(out.backward))

        def second(way: bool = way) -> Any:
            (gradient,) = torch.autograd.grad(made(way), x, create_graph=True)
            return torch.autograd.grad(gradient.sum(), x)

        show(_error(second))
    a, b = checkpoint(lambda x: (x.sin(), x.cos()), x, use_reentrant=False)
    x.grad = None
    a.sum().backward()
    b.sum().backward()
    show(x.grad)


def random_numbers_are_drawn_again(torch: Any, show: Any) -> None:
    checkpoint = _module(torch).checkpoint
    for way in (True, False):
        for preserve in (True, False):
            torch.manual_seed(0)
            y = torch.ones(6, requires_grad=True)
            out = checkpoint(
                lambda y: torch.nn.functional.dropout(y, 0.5) * y,
                y,
                use_reentrant=way,
                preserve_rng_state=preserve,
            )
            torch.rand(5)
            out.sum().backward()
            show(out.detach(), y.grad, torch.rand(1))


def outputs_may_be_anything(torch: Any, show: Any) -> None:
    checkpoint = _module(torch).checkpoint
    for way in (True, False):
        a = torch.ones(2, requires_grad=True)
        out = checkpoint(
            lambda a, b, c: (a * b, c, None, a.detach()), a, torch.ones(2), "text", use_reentrant=way
        )
        out[0].sum().backward()
        show([value.detach() if isinstance(value, torch.Tensor) else value for value in out], a.grad)
        torch.manual_seed(0)
        layer = torch.nn.Linear(3, 2)
        checkpoint(layer, torch.ones(1, 3, requires_grad=True), use_reentrant=way).sum().backward()
        show(layer.weight.grad)

        def fail(x: Any) -> None:
            raise ValueError("in the function")

        show(_error(lambda way=way, fail=fail, a=a: checkpoint(fail, a, use_reentrant=way)))
    out = checkpoint(lambda x: x.detach(), a, use_reentrant=True)
    show(_error(out.sum().backward))


def functions_that_change_are_found_out(torch: Any, show: Any) -> None:
    checkpoint = _module(torch).checkpoint
    runs = [0]

    def again() -> bool:
        runs[0] += 1
        return runs[0] % 2 == 0

    def more(x: Any) -> Any:
        x = x.sin()
        return (x.exp() if again() else x).cos()

    def fewer(x: Any) -> Any:
        return (x if again() else x.sin()).cos()

    def smaller(x: Any) -> Any:
        return (x[:2] if again() else x).sin().exp()

    for function in (more, fewer, smaller):
        for options in ({}, {"determinism_check": "none"}, {"early_stop": False}):
            runs[0] = 0
            y = torch.ones(3, requires_grad=True)
            out = checkpoint(function, y, use_reentrant=False, **options)
            show(function.__name__, options, _error(out.sum().backward))


def recomputing_stops_early(torch: Any, show: Any) -> None:
    module = _module(torch)
    x = torch.arange(3.0, requires_grad=True)
    steps: list[str] = []

    def function(x: Any) -> Any:
        steps.append("a")
        y = x.sin().exp()
        steps.append("b")
        return y * 2

    def shown(**options: Any) -> str:
        steps.clear()
        module.checkpoint(function, x, use_reentrant=False, **options).sum().backward()
        return "".join(steps)

    show(shown(), shown(early_stop=False))
    for enabled in (True, False):
        with module.set_checkpoint_early_stop(enabled):
            show(shown(), shown(early_stop=not enabled))
    log: list[str] = []

    @contextlib.contextmanager
    def noted(name: str) -> Any:
        log.append("+" + name)
        yield
        log.append("-" + name)

    module.checkpoint(
        function,
        x,
        use_reentrant=False,
        early_stop=False,
        context_fn=lambda: (noted("first"), noted("again")),
    ).sum().backward()
    show(log)


def checkpoints_are_nested(torch: Any, show: Any) -> None:
    checkpoint = _module(torch).checkpoint
    x = torch.arange(3.0, requires_grad=True)
    calls: list[int] = []

    def inner(x: Any) -> Any:
        calls.append(1)
        return x.sin().exp()

    for way in (True, False):
        x.grad = None
        calls.clear()
        out = checkpoint(lambda x: checkpoint(inner, x * 2, use_reentrant=False).cos(), x, use_reentrant=way)
        out.sum().backward()
        show(x.grad, len(calls))


def functions_in_sequence_are_cut_into_segments(torch: Any, show: Any) -> None:
    sequential = _module(torch).checkpoint_sequential
    layers = [torch.nn.Tanh(), torch.nn.Sigmoid(), torch.nn.Tanh(), lambda t: t * 2]
    x = torch.arange(3.0, requires_grad=True)
    for segments, options in (
        (2, {}),
        (2, {"use_reentrant": True}),
        (1, {"use_reentrant": False}),
        (4, {"use_reentrant": False}),
    ):
        x.grad = None
        out = show.warns(sequential, layers, segments, x, **options)
        out.sum().backward()
        show(out.detach(), x.grad)
    show(sequential(torch.nn.Sequential(*layers[:3]), 2, x, use_reentrant=False).detach())
    for segments, options in ((9, {}), (0, {}), (2, {"foo": 1})):
        show.raises(sequential, layers, segments, x, use_reentrant=False, **options)


def the_rest_answers_for_a_cpu(torch: Any, show: Any) -> None:
    module = _module(torch)
    x = torch.ones(1, requires_grad=True)
    show(
        module.detach_variable((x, 3, None)),
        module.get_device_states(x),
        module.DefaultDeviceType.get_device_type(),
    )
    show.raises(module.detach_variable, x)
    show.warns(module.check_backward_validity, [torch.ones(1)])
    show.warns(module.check_backward_validity, [x])
    show([type(context).__name__ for context in module.noop_context_fn()], list(module.CheckpointPolicy))
    show.raises(module.create_selective_checkpoint_contexts, 3)
