"""Record what torch's FlopCounterMode counts for ops, and their inputs as in trace files: run with torch.

The formulas are called on tensors without data, so that ops of a GPU are counted on any machine.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from torch.utils.flop_counter import flop_registry

FACTS = Path(__file__).with_name("flop_counter.json")
TYPES = {
    torch.float32: "float",
    torch.bfloat16: "c10::BFloat16",
    torch.float16: "c10::Half",
    torch.int32: "int",
}
aten = torch.ops.aten


def tensor(*shape: int, dtype: torch.dtype = torch.bfloat16) -> torch.Tensor:
    return torch.empty(shape, dtype=dtype, device="meta")


def described(argument: Any) -> tuple[str, str, list[int], list[int]]:
    """Concrete input, type, strides and dims, as a trace file has them."""
    if isinstance(argument, torch.Tensor):
        return "", TYPES[argument.dtype], list(argument.stride()), list(argument.shape)
    if argument is None:
        return "", "", [], []
    if isinstance(argument, list):
        return "[" + ", ".join(map(str, argument)) + "]", "ScalarList", [], []
    return str(argument), "Scalar", [], []


def convolutions() -> list[tuple[Any, tuple[Any, ...]]]:
    cases = []
    for image, weight, stride, padding, dilation, transposed, output_padding, groups in [
        ((10, 3, 224, 224), (64, 3, 7, 7), [2, 2], [3, 3], [1, 1], False, [0, 0], 1),
        ((10, 64, 56, 56), (64, 64, 3, 3), [1, 1], [1, 1], [1, 1], False, [0, 0], 1),
        ((4, 32, 28, 30), (64, 8, 3, 5), [1, 2], [1, 2], [2, 1], False, [0, 0], 4),
        ((4, 32, 28, 30), (32, 1, 3, 3), [2, 2], [1, 1], [1, 1], False, [0, 0], 32),
        ((2, 16, 100), (24, 16, 5), [3], [2], [1], False, [0], 1),
        ((2, 4, 8, 9, 10), (6, 4, 3, 3, 3), [1, 1, 1], [0, 1, 0], [1, 1, 1], False, [0, 0, 0], 1),
        ((2, 16, 14, 14), (16, 8, 4, 4), [2, 2], [1, 1], [1, 1], True, [0, 0], 1),
        ((2, 16, 14, 14), (16, 8, 3, 3), [2, 2], [1, 1], [1, 1], True, [1, 1], 2),
    ]:
        more = (stride, padding, dilation, transposed, output_padding, groups)
        x, w = tensor(*image), tensor(*weight)
        cases.append((aten.convolution, (x, w, None, *more)))
        result = torch.convolution(x, w, None, *more)
        masks = ([True, True, False], [False, True, False], [True, False, False])
        cases += [(aten.convolution_backward, (result, x, w, [0], *more, mask)) for mask in masks]
        if not transposed:
            vendor = (padding, stride, dilation, groups, False, False, True)
            cases.append((aten.cudnn_convolution, (x, w, *vendor)))
    return cases


def attention() -> list[tuple[Any, tuple[Any, ...]]]:
    cases = []
    for heads, key_heads, queries, keys, size, value_size in [
        (16, 16, 559, 559, 64, 64),
        (8, 8, 128, 384, 32, 48),
    ]:
        q, k, v = (
            tensor(2, heads, queries, size),
            tensor(2, key_heads, keys, size),
            tensor(2, key_heads, keys, value_size),
        )
        out, lse = tensor(2, heads, queries, value_size), tensor(2, heads, queries, dtype=torch.float32)
        cases += [
            (aten._scaled_dot_product_flash_attention, (q, k, v, 0.0, False, False, 0.125)),
            (aten._scaled_dot_product_efficient_attention, (q, k, v, None, True, 0.0, False)),
            (aten._scaled_dot_product_cudnn_attention, (q, k, v, None, True, 0.0, False)),
            (
                aten._scaled_dot_product_flash_attention_backward,
                (out, q, k, v, out, lse, None, None, queries, keys, 0.0, False, lse, lse),
            ),
            (
                aten._scaled_dot_product_efficient_attention_backward,
                (out, q, k, v, None, out, lse, lse, lse, 0.0, [True, True, True, False], False),
            ),
            (
                aten._scaled_dot_product_cudnn_attention_backward,
                (out, q, k, v, out, lse, lse, lse, None, None, None, queries, keys, 0.0, False),
            ),
        ]
    return cases


def products() -> list[tuple[Any, tuple[Any, ...]]]:
    return [
        (aten.mm, (tensor(8944, 1024), tensor(1024, 2816))),
        (aten.bmm, (tensor(16, 27, 16), tensor(16, 16, 27))),
        (aten.addmm, (tensor(1000), tensor(10, 512), tensor(512, 1000), 1, 1)),
        (aten.baddbmm, (tensor(4, 5, 7), tensor(4, 5, 6), tensor(4, 6, 7), 1, 1)),
        (aten._scaled_mm, (tensor(64, 32), tensor(32, 48), tensor(1), tensor(1))),
    ]


def facts() -> list[dict[str, Any]]:
    recorded = []
    for op, arguments in [*products(), *convolutions(), *attention()]:
        concrete, types, strides, dims = (list(column) for column in zip(*map(described, arguments)))
        options: dict[str, Any] = {}
        if op is aten.convolution_backward:
            count = flop_registry[op](
                *arguments,
                out_val=(
                    arguments[1] if arguments[-1][0] else None,
                    arguments[2] if arguments[-1][1] else None,
                    None,
                ),
            )
        else:
            if op in (aten.convolution, aten.cudnn_convolution):
                x, w = arguments[:2]
                padding, stride = (arguments[4], arguments[3]) if op is aten.convolution else arguments[2:4]
                more = (
                    arguments[3:]
                    if op is aten.convolution
                    else (stride, padding, arguments[4], False, [0], arguments[5])
                )
                options["out_val"] = torch.convolution(x, w, None, *more)
            by_position = (
                arguments[:3] if op in (aten.addmm, aten.baddbmm) else arguments
            )  # the rest is passed by name
            count = flop_registry[op](*by_position, **options)
        recorded.append(
            {
                "name": str(op).replace(".", "::", 1),
                "inputs": [concrete, types, strides, dims],
                "flop": int(count),
            }
        )
    return recorded


if __name__ == "__main__":
    lines = ",\n".join("  " + json.dumps(fact) for fact in facts())
    FACTS.write_text('{"torch": ' + json.dumps(torch.__version__) + ', "ops": [\n' + lines + "\n]}\n")
