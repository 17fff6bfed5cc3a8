"""Functions of one's own: contexts, marks, saved tensors and what goes wrong, against what torch showed."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import pytest
from autograd_steps import RECORDED, shown, steps

import mindtorch_v2 as torch
from mindtorch_v2.autograd import Function


class Exp(Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        out = x.exp()
        ctx.save_for_backward(x, out)
        return out

    @staticmethod
    def backward(ctx: Any, g: torch.Tensor) -> torch.Tensor:
        return g * ctx.saved_tensors[1]


@pytest.mark.parametrize(("program", "label"), steps("function"))
def test_a_step_shows_what_torch_showed(program: str, label: str) -> None:
    assert shown(program)[label] == RECORDED[program][label]


def test_an_output_saved_by_its_own_function_makes_no_cycle() -> None:
    gc.collect()
    gc.disable()
    try:
        y = Exp.apply(torch.ones(2, requires_grad=True))
        watched = [weakref.ref(y), weakref.ref(y.grad_fn)]
        del y
        assert [reference() for reference in watched] == [None, None]
    finally:
        gc.enable()


def test_a_function_passes_gradcheck_and_gradgradcheck() -> None:
    x = torch.randn(3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(Exp.apply, (x,))
    assert torch.autograd.gradgradcheck(Exp.apply, (x,))


def test_saved_tensors_can_be_freed_as_they_are_read() -> None:
    class Once(Exp):
        clear_saved_tensors_on_access = True

        @staticmethod
        def backward(ctx: Any, g: torch.Tensor) -> torch.Tensor:
            _, out = ctx.saved_tensors
            with pytest.raises(RuntimeError, match="saved_tensors can only be accessed once"):
                _ = ctx.saved_tensors
            return g * out

    x = torch.zeros(2, requires_grad=True)
    Once.apply(x).sum().backward()
    assert x.grad.tolist() == [1, 1]


def test_boxed_gradients_arrive_as_one_list() -> None:
    class Boxed(Function):
        boxed_grads_call = True

        @staticmethod
        def forward(ctx: Any, x: torch.Tensor, y: torch.Tensor) -> tuple:
            return x * 2, y * 3

        @staticmethod
        def backward(ctx: Any, grads: list) -> tuple:
            return grads[0] * 2, grads[1] * 3

    x, y = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
    sum(out.sum() for out in Boxed.apply(x, y)).backward()
    assert (x.grad.tolist(), y.grad.tolist()) == ([2, 2], [3, 3])


def test_the_context_answers_like_a_node_of_the_graph() -> None:
    x = torch.ones(2, requires_grad=True)
    node = Exp.apply(x).grad_fn
    assert isinstance(node, torch.autograd.graph.Node)
    assert node.name() == "ExpBackward"
    assert node.next_functions[0][0].variable is x
    assert node.needs_input_grad == (True,)
    assert [t.tolist() for t in node._raw_saved_tensors and node.saved_tensors] == [[1, 1], x.exp().tolist()]


def test_a_saved_output_requires_grad_in_backward_even_where_gradients_are_not_recorded() -> None:
    seen = []

    class Root(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, a: Any) -> Any:
            y = a.sqrt()
            sign = a.sign()
            ctx.mark_non_differentiable(sign)
            ctx.save_for_backward(y, sign, a)
            return y, sign

        @staticmethod
        def backward(ctx: Any, g: Any, _: Any) -> Any:
            y, sign, a = ctx.saved_tensors
            seen.append((y.requires_grad, y.grad_fn is ctx, sign.requires_grad, torch.is_grad_enabled()))
            with torch.enable_grad():  # dy/da = -f_a / f_y for f = y * y - a
                (slope,) = torch.autograd.grad((y * y - a).sum(), y)
            return g / slope

    a = torch.tensor([4.0, 9.0], requires_grad=True)
    y, _ = Root.apply(a)
    y.sum().backward()
    assert seen == [(True, True, False, False)]
    assert a.grad.tolist() == pytest.approx([1 / 4, 1 / 6])


def test_a_hook_of_a_node_gets_none_for_gradients_that_were_not_asked_for() -> None:
    convolution = torch.nn.Conv2d(3, 4, 3)
    x = torch.randn(1, 3, 8, 8, requires_grad=True)
    y = convolution(x)
    shapes: list[Any] = []
    y.grad_fn.register_hook(
        lambda inputs, _: shapes.extend([None if g is None else tuple(g.shape) for g in inputs])
    )
    torch.autograd.grad(y.sum(), x)
    assert shapes == [(1, 3, 8, 8), None, None]
