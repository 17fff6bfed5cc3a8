"""Torch's own OpInfo samples in, a folder of pickles out: one file per op, with inputs and results.

Run with an interpreter that has torch:
    python tests/opinfo/record_samples.py FOLDER [--op NAME ...] [--dtype float64 ...] [--samples 8]

Arrays are stored as NumPy arrays; bfloat16 and the conjugate and negative bits are resolved.
`compare_samples.py` runs the same calls with this library and compares.
"""

from __future__ import annotations

import argparse
import pickle
import random
import sys
import time
import types
import unittest
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import torch

DTYPES = ("float64", "float32", "complex128", "int64", "bool", "bfloat16")


class Unstorable(Exception):
    """A sample has an argument that other interpreters cannot read."""


def _array(tensor: torch.Tensor) -> tuple[str, Any, tuple[int, ...]]:
    tensor = tensor.detach().resolve_conj().resolve_neg()
    kind = str(tensor.dtype).removeprefix("torch.")
    if tensor.layout is not torch.strided or tensor.is_quantized or tensor.device.type != "cpu":
        raise Unstorable(str(tensor.layout))
    strides = tensor.stride()
    if kind == "bfloat16":
        return kind, tensor.contiguous().view(torch.int16).numpy().copy(), strides
    return kind, tensor.contiguous().numpy().copy(), strides


def stored(value: Any) -> Any:
    """A value as plain data: tensors as ("tensor", dtype, array, strides, requires_grad)."""
    if isinstance(value, torch.Tensor):
        return ("tensor", *_array(value), bool(value.requires_grad))
    if isinstance(value, torch.dtype):
        return ("dtype", str(value).removeprefix("torch."))
    if isinstance(value, torch.device):
        return ("device", str(value))
    if isinstance(value, (torch.memory_format, torch.layout)):
        return ("named", str(value).removeprefix("torch."))
    if isinstance(value, slice):
        return ("slice", stored(value.start), stored(value.stop), stored(value.step))
    if value is Ellipsis:
        return ("ellipsis",)
    if isinstance(value, torch.Size):
        return ("tuple", [int(n) for n in value])
    if isinstance(value, tuple):
        return ("tuple", [stored(item) for item in value])
    if isinstance(value, list):
        return ("list", [stored(item) for item in value])
    if isinstance(value, dict):
        return ("dict", {key: stored(item) for key, item in value.items()})
    if isinstance(value, (np.generic, np.ndarray)):
        return ("numpy", value)
    if value is None or type(value) in (int, float, bool, complex, str):
        return ("plain", value)
    raise Unstorable(type(value).__name__)


def place(info: Any) -> str | None:
    """Where the function of an OpInfo is found in torch, such as "nn.functional.relu" or "Tensor.abs_"."""
    for path in (info.name, "Tensor." + info.name, "special." + info.name, "_refs." + info.name):
        found: Any = torch
        for part in path.split("."):
            found = getattr(found, part, None)
        if found is not None and found is info.op:
            return path
    path, found = info.name, torch
    for part in path.split("."):
        found = getattr(found, part, None)
    return path if callable(found) else None


def _tensors(value: Any) -> list[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, (list, tuple)):
        return [tensor for item in value for tensor in _tensors(item)]
    if isinstance(value, dict):
        return [tensor for item in value.values() for tensor in _tensors(item)]
    return []


def _gradients(results: list[torch.Tensor], inputs: list[torch.Tensor], first: bool) -> Any:
    """The gradients of the inputs, for fixed cotangents."""
    roots = [r for r in results if r.requires_grad]
    leaves = [t for t in inputs if t.requires_grad]
    if not roots or not leaves:
        return None
    cotangents = [cotangent(r) for r in roots]
    return torch.autograd.grad(roots, leaves, cotangents, allow_unused=True, create_graph=first)


def cotangent(result: torch.Tensor) -> torch.Tensor:
    """A fixed gradient for a result."""
    ramp = (torch.arange(result.numel(), dtype=torch.float64) % 7 + 1) / 4
    if result.dtype.is_complex:
        ramp = torch.complex(ramp, ramp.flip(0) - 1)
    return ramp.to(result.dtype).reshape(result.shape)


def record(info: Any, dtype: torch.dtype, limit: int) -> list[dict[str, Any]]:
    """The samples of one op in one dtype."""
    path = place(info)
    differentiable = info.supports_autograd and (dtype.is_floating_point or dtype.is_complex)
    rows = []
    samples = list(info.sample_inputs("cpu", dtype, requires_grad=differentiable))
    if len(samples) > limit:  # the first, and others from all over
        samples = samples[: limit // 2] + random.Random(0).sample(samples[limit // 2 :], limit - limit // 2)
    for sample in samples:
        arguments = (sample.input, *sample.args)
        try:
            row = {"path": path, "args": stored(tuple(arguments)), "kwargs": stored(dict(sample.kwargs))}
        except Unstorable:
            continue
        try:
            torch.manual_seed(0)
            result = info.op(*arguments, **sample.kwargs)
            row["result"] = stored(result)
        except Unstorable:
            continue
        except Exception as error:
            row["error"] = (type(error).__name__, str(error).split("\n")[0])
            rows.append(row)
            continue
        if differentiable:
            inputs = _tensors(arguments) + _tensors(sample.kwargs)
            try:
                gradients = _gradients(_tensors(result), inputs, False)
                row["gradients"] = None if gradients is None else stored(list(gradients))
            except Exception as error:
                row["gradient_error"] = (type(error).__name__, str(error).split("\n")[0])
        rows.append(row)
    return rows


def _without_expecttest() -> None:
    """torch's test modules import expecttest, of which the samples need nothing."""
    try:
        import expecttest  # noqa: F401
    except ImportError:
        stand_in = types.ModuleType("expecttest")
        stand_in.TestCase = unittest.TestCase  # type: ignore[attr-defined]
        sys.modules["expecttest"] = stand_in


def main() -> None:
    """Record the samples of all ops, or of some."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--op", nargs="*")
    parser.add_argument("--dtype", nargs="*", default=DTYPES)
    parser.add_argument("--samples", type=int, default=8)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    _without_expecttest()
    from torch.testing._internal.common_methods_invocations import op_db

    options.folder.mkdir(parents=True, exist_ok=True)
    for info in op_db:
        if options.op and info.name not in options.op:
            continue
        name = info.name + ("." + info.variant_test_name if info.variant_test_name else "")
        target = options.folder / f"{name}.pickle"
        if target.exists() or place(info) is None:
            continue
        start, rows = time.process_time(), {}
        for kind in options.dtype:
            dtype = getattr(torch, kind)
            if dtype not in info.dtypes:
                continue
            try:
                rows[kind] = record(info, dtype, options.samples)
            except Exception as error:
                print(f"{name} {kind}: {type(error).__name__} {error}", file=sys.stderr)
        target.write_bytes(pickle.dumps(rows))
        if time.process_time() - start > 20:
            print(f"{name} took {time.process_time() - start:.0f} s", file=sys.stderr)


if __name__ == "__main__":
    main()
