"""Cases of printing: what stands beside the elements, print options, formatting of numbers."""

from __future__ import annotations

from typing import Any

SPECS = ("", ".2f", "d", "5", ">10", "e", "s", "x", "%", "010.3f", "+.1f")


def requires_grad_and_grad_fn_stand_after_the_elements(torch: Any, show: Any) -> None:
    x = torch.ones(2, requires_grad=True)
    show(x, x + 1, (x * 2).sum(), x.view(2, 1), x.double() * 2)
    show(torch.full((30,), 1 / 3, requires_grad=True) * 2)
    show(torch.ones(9, requires_grad=True).reshape(3, 3), torch.ones(19, requires_grad=True))
    y = x * 1
    y[0] = 5
    show(y)


def functions_of_the_user_give_their_name(torch: Any, show: Any) -> None:
    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * 2

    show(Twice.apply(torch.ones(2, requires_grad=True)))


def empty_tensors_show_their_size(torch: Any, show: Any) -> None:
    for size in ((0,), (0, 3), (2, 0), (1, 0, 2)):
        for dtype in (torch.float32, torch.float64, torch.int64, torch.int32, torch.bool, torch.complex64):
            show(torch.empty(size, dtype=dtype))
    show(torch.empty(0, 2, requires_grad=True))


def meta_tensors_show_their_size(torch: Any, show: Any) -> None:
    for size in ((), (0,), (2, 3)):
        for dtype in (torch.float32, torch.float64, torch.int64, torch.bool):
            show(torch.empty(size, dtype=dtype, device="meta"))
    show(torch.empty(2, 3, device="meta", dtype=torch.float64, requires_grad=True))


def parameters_and_subclasses_show_their_class(torch: Any, show: Any) -> None:
    class Special(torch.Tensor):
        pass

    class Own(torch.nn.Parameter):
        pass

    show(torch.nn.Parameter(torch.ones(2, 2)), torch.nn.Parameter(torch.ones(2), requires_grad=False))
    show(torch.ones(2).as_subclass(Special), torch.arange(40).as_subclass(Special))
    show(Own(torch.ones(2)))
    show(torch.nn.Parameter(torch.empty(1, device="meta")))


def sparse_tensors_show_indices_and_values(torch: Any, show: Any) -> None:
    indices = torch.tensor([[0, 1], [1, 0]])
    show(torch.sparse_coo_tensor(indices, torch.tensor([1.0, 2.5]), (2, 2)))
    show(torch.sparse_coo_tensor(indices, torch.tensor([1.0, 2.5], dtype=torch.float64), (2, 2)))
    show(torch.sparse_coo_tensor(indices, torch.ones(2, 3), (2, 2, 3), requires_grad=True))
    show(torch.sparse_coo_tensor((3, 4)))
    many = torch.arange(2000)
    show(torch.sparse_coo_tensor(many.repeat(2, 1), many.float(), (3000, 3000)))


def the_default_dtype_is_not_shown(torch: Any, show: Any) -> None:
    x, z = torch.ones(1), torch.ones(1, dtype=torch.complex64)
    torch.set_default_dtype(torch.float64)
    try:
        show(x, z, x.double(), z.to(torch.complex128), torch.empty(0, 2), x.long())
    finally:
        torch.set_default_dtype(torch.float32)


def numbers_take_format_specifications(torch: Any, show: Any) -> None:
    numbers = (3.14159, 3, True, 1 + 2j)
    tensors = [torch.tensor(n) for n in numbers]
    tensors += [torch.tensor(1.5, dtype=torch.bfloat16), torch.tensor(2.5, requires_grad=True)]
    tensors += [torch.tensor([1.0]), torch.tensor([1.0, 2.0]), torch.nn.Parameter(torch.tensor(1.5))]
    for tensor in tensors:
        for spec in SPECS:
            show.raises(format, tensor, spec)


def print_options_come_in_profiles(torch: Any, show: Any) -> None:
    options = torch._tensor_str
    for kwargs in (
        {"profile": "short"},
        {"profile": "full"},
        {"profile": "full", "precision": 2},
        {"sci_mode": True},
        {"precision": 8, "edgeitems": 1, "linewidth": 40, "threshold": 5},
        {"profile": "default"},
    ):
        torch.set_printoptions(**kwargs)
        show(sorted(options.get_printoptions().items()), torch.tensor([1.5, 20.25, 3.125]))
    with options.printoptions(precision=2):
        show(torch.tensor([1 / 3]), options.get_printoptions()["precision"])
    show(torch.tensor([1 / 3]))
    show.raises(torch.set_printoptions, foo=1)


def long_tensors_are_summarised(torch: Any, show: Any) -> None:
    show(torch.arange(1001), torch.arange(3000).reshape(10, 10, 30), torch.arange(2000.0).reshape(2, 1000))
    show(torch.ones(1001, 2), torch.ones(2, 1001, dtype=torch.bool), torch.zeros(1200, dtype=torch.complex64))
