"""Strides of results: what the memory layouts of the operands make of the layout of a pointwise result and of a copy."""

from __future__ import annotations

from typing import Any


def _operands(torch: Any) -> dict[str, Any]:
    """Tensors of shape (2, 3, 4) in many layouts, and some that broadcast to it."""

    def values(*shape: int) -> Any:
        count = 1
        for n in shape:
            count *= n
        return (torch.arange(float(count)).remainder(7) + 1).reshape(shape) / 10

    return {
        "plain": values(2, 3, 4),
        "last two": values(2, 4, 3).transpose(1, 2),
        "first two": values(3, 2, 4).transpose(0, 1),
        "reversed": values(4, 3, 2).permute(2, 1, 0),
        "rotated": values(4, 2, 3).permute(1, 2, 0),
        "sliced": values(2, 3, 8)[..., ::2],
        "sliced, last two": values(2, 8, 3).transpose(1, 2)[..., ::2],
        "expanded 0": values(1, 3, 4).expand(2, 3, 4),
        "expanded 1": values(2, 1, 4).expand(2, 3, 4),
        "expanded, reversed": values(4, 1, 2).expand(4, 3, 2).transpose(0, 2),
        "overlapping": values(40).as_strided((2, 3, 4), (2, 2, 1)),
        "matrix": values(4, 3).t(),
        "vector": values(4),
        "column": values(3, 1),
        "number": values(1).reshape(()),
    }


def _strides_by_pair(torch: Any, show: Any, op: Any) -> None:
    operands = _operands(torch)
    for first, a in operands.items():
        show(first, [op(a, b).stride() for b in operands.values()])


def _strides(torch: Any, show: Any, ops: dict[str, Any]) -> None:
    operands = _operands(torch)
    for name, op in ops.items():
        show(name, [op(x).stride() for x in operands.values()])


def sums(torch: Any, show: Any) -> None:
    _strides_by_pair(torch, show, lambda a, b: a + b)


def sums_of_two_dtypes(torch: Any, show: Any) -> None:
    _strides_by_pair(torch, show, lambda a, b: a + b.double())


def scaled_differences(torch: Any, show: Any) -> None:
    _strides_by_pair(torch, show, lambda a, b: torch.sub(a, b, alpha=2))


def comparisons(torch: Any, show: Any) -> None:
    _strides_by_pair(torch, show, lambda a, b: a > b)


def logic(torch: Any, show: Any) -> None:
    _strides_by_pair(torch, show, torch.logical_and)


def choices(torch: Any, show: Any) -> None:
    _strides_by_pair(torch, show, lambda a, b: torch.where(a > 0.2, b, a))


def three_operands(torch: Any, show: Any) -> None:
    operands = _operands(torch)
    for op in (torch.addcmul, torch.lerp, torch.clamp):
        for a, b in (
            ("last two", "plain"),
            ("number", "reversed"),
            ("matrix", "rotated"),
            ("vector", "plain"),
        ):
            show(a, b, [op(operands[a], operands[b], c).stride() for c in operands.values()])


def losses_and_masks(torch: Any, show: Any) -> None:
    _strides_by_pair(
        torch,
        show,
        lambda a, b: torch.nn.functional.mse_loss(*torch.broadcast_tensors(a, b), reduction="none"),
    )
    _strides_by_pair(torch, show, lambda a, b: a.masked_fill(b > 0.3, 0.0))


def functions_of_one_tensor(torch: Any, show: Any) -> None:
    names = "exp neg sin rsqrt sigmoid sign lgamma isnan isinf isreal logical_not nan_to_num frac relu angle".split()
    _strides(torch, show, {name: getattr(torch, name) for name in names})
    activations = "gelu silu elu leaky_relu hardtanh softplus hardswish mish celu hardshrink softsign".split()
    _strides(torch, show, {name: getattr(torch.nn.functional, name) for name in activations})


def with_a_number(torch: Any, show: Any) -> None:
    _strides(
        torch,
        show,
        {
            "add": lambda x: x + 1,
            "subtract from": lambda x: 1 - x,
            "divide": lambda x: x / 2,
            "remainder": lambda x: x % 2,
            "square": lambda x: x**2,
            "power of two": lambda x: 2**x,
            "compare": lambda x: x > 0.3,
            "clamp": lambda x: x.clamp(0.2, 0.5),
            "clamp one side": lambda x: x.clamp_min(0.2),
            "of integers": lambda x: x.int() / 2,
            "half precision": lambda x: x.half() * 2,
        },
    )


def copies(torch: Any, show: Any) -> None:
    _strides(
        torch,
        show,
        {
            "clone": lambda x: x.clone(),
            "contiguous": lambda x: x.contiguous(),
            "double": lambda x: x.double(),
            "complex": lambda x: x.cfloat(),
            "copy": lambda x: x.to(x.dtype, copy=True),
            "empty_like": torch.empty_like,
            "zeros_like": torch.zeros_like,
            "full_like": lambda x: torch.full_like(x, 2, dtype=torch.int32),
            "rand_like": torch.rand_like,
        },
    )


def channels_last(torch: Any, show: Any) -> None:
    images = torch.rand(2, 3, 4, 5)
    last = images.contiguous(memory_format=torch.channels_last)
    bias = torch.rand(3).view(1, 3, 1, 1)
    one_channel = torch.rand(2, 1, 4, 5).contiguous(memory_format=torch.channels_last)
    tensors = {"images": images, "last": last, "bias": bias, "one channel": one_channel}
    for name, a in tensors.items():
        show(name, [(a * b).stride() for b in tensors.values()])
    show((last + images).is_contiguous(memory_format=torch.channels_last), (images + last).is_contiguous())


def gradients(torch: Any, show: Any) -> None:
    for name, x in _operands(torch).items():
        x = x.detach().requires_grad_()
        show(name, [torch.autograd.grad(op(x).sum(), x)[0].stride() for op in (torch.exp, torch.relu)])


def views_of_results(torch: Any, show: Any) -> None:
    result = torch.rand(2, 4, 3).transpose(1, 2) + torch.rand(2, 3, 4)
    show(result.is_contiguous())
    show.raises(lambda: result.view(6, 4).shape)
    show(result.transpose(1, 2).view(8, 3).shape)
