"""Torch's own OpInfo samples in, a folder of pickles out: one file per op, with inputs and results.

Run with an interpreter that has torch (and SciPy, for samples that need it):
    python tests/opinfo/record_samples.py FOLDER [--op NAME ...] [--dtype float64 ...] [--samples 8]

A file holds the samples by dtype, and those that torch refuses under "errors". Each sample has the result,
the gradients and, in double precision, the gradients of the gradients; the in-place form is a sample of its
own. Arguments keep their strides and the storage they share; bfloat16 and the conjugate and negative bits
are resolved. `compare_samples.py` runs the same calls with this library and compares.
"""

from __future__ import annotations

import argparse
import itertools
import pickle
import random
import sys
import time
import types
import unittest
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

DTYPES = ("float64", "float32", "complex128", "int64", "bool", "bfloat16", "float16")
ONLY_CUDA = "jiterator_"


class Unstorable(Exception):
    """A sample has an argument that other interpreters cannot read."""


def _array(tensor: torch.Tensor) -> tuple[str, Any]:
    kind = str(tensor.dtype).removeprefix("torch.")
    if tensor.is_quantized or tensor.device.type != "cpu":
        raise Unstorable(str(tensor.device))
    if kind == "bfloat16":
        return kind, tensor.contiguous().view(torch.int16).numpy().copy()
    if kind == "complex32":
        return kind, torch.view_as_real(tensor.contiguous()).numpy().copy()
    return kind, tensor.contiguous().numpy().copy()


def stored(value: Any, storages: dict[int, Any] | None = None) -> Any:
    """A value as plain data. With `storages`, tensors are views of an array that is collected there."""
    if isinstance(value, torch.Tensor):
        return _stored_tensor(value, storages)
    if isinstance(value, torch.dtype):
        return ("dtype", str(value).removeprefix("torch."))
    if isinstance(value, torch.device):
        return ("device", str(value))
    if isinstance(value, (torch.memory_format, torch.layout)):
        return ("named", str(value).removeprefix("torch."))
    if isinstance(value, slice):
        return ("slice", *(stored(item) for item in (value.start, value.stop, value.step)))
    if value is Ellipsis:
        return ("ellipsis",)
    if isinstance(value, torch.Size):
        return ("tuple", [int(n) for n in value])
    if isinstance(value, tuple):
        return ("tuple", [stored(item, storages) for item in value])
    if isinstance(value, list):
        return ("list", [stored(item, storages) for item in value])
    if isinstance(value, dict):
        return ("dict", {key: stored(item, storages) for key, item in value.items()})
    if isinstance(value, (np.generic, np.ndarray)):
        return ("numpy", value)
    if value is None or type(value) in (int, float, bool, complex, str):
        return ("plain", value)
    raise Unstorable(type(value).__name__)


def _stored_tensor(value: torch.Tensor, storages: dict[int, Any] | None) -> Any:
    requires_grad = bool(value.requires_grad)
    value = value.detach().resolve_conj().resolve_neg()
    if value.layout is torch.sparse_coo:
        value = value.coalesce()
        return (
            "sparse_coo",
            stored(value.indices()),
            stored(value.values()),
            tuple(value.shape),
            requires_grad,
        )
    if value.layout in (torch.sparse_csr, torch.sparse_bsr):
        parts = [stored(part) for part in (value.crow_indices(), value.col_indices(), value.values())]
        return (str(value.layout).removeprefix("torch."), *parts, tuple(value.shape), requires_grad)
    if value.layout in (torch.sparse_csc, torch.sparse_bsc):
        parts = [stored(part) for part in (value.ccol_indices(), value.row_indices(), value.values())]
        return (str(value.layout).removeprefix("torch."), *parts, tuple(value.shape), requires_grad)
    if value.layout is not torch.strided:
        raise Unstorable(str(value.layout))
    if storages is None or value.numel() == 0 or value.untyped_storage().nbytes() > 1 << 24:
        return ("tensor", *_array(value), value.stride(), requires_grad)
    place = value.untyped_storage().data_ptr()
    count = value.untyped_storage().nbytes() // value.element_size()
    if place not in storages:  # with the tensor: its memory is not used again
        storages[place] = (*_array(value.as_strided((count,), (1,), 0)), value)
    if storages[place][0] != str(value.dtype).removeprefix("torch."):
        return ("tensor", *_array(value), value.stride(), requires_grad)
    number = list(storages).index(place)
    return ("view", number, tuple(value.shape), value.stride(), value.storage_offset(), requires_grad)


def place(info: Any) -> str | None:
    """Where the function of an OpInfo is found in torch, such as "nn.functional.relu" or "Tensor.abs_"."""
    name = info.name.removeprefix("torch.")
    paths = (name, "Tensor." + name, "special." + name, "ops.aten." + name, "ops.aten." + name + ".default")
    functions = [(path, _at(path)) for path in paths]
    for path, function in functions:
        if function is not None and function is info.op:
            return path
    # T, H and their kin are properties; torch.bool and its kin are dtypes, Tensor.bool is what is called
    found = [
        path
        for path, function in functions
        if callable(function) or (path.startswith("Tensor.") and function)
    ]
    return found[0] if found else None


def _at(path: str) -> Any:
    function: Any = torch
    for part in path.split("."):
        try:
            function = getattr(function, part, None)
        except RuntimeError:  # torch.ops of a name that it does not have
            return None
    return function


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
    roots = [r for r in results if r is not None and r.requires_grad]
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


def _error(error: Exception) -> tuple[str, str]:
    return (type(error).__name__, (str(error).splitlines() or [""])[0])


def record_call(
    call: Callable[..., Any], path: str, arguments: tuple[Any, ...], options: dict[str, Any], orders: int
) -> dict[str, Any]:
    """One sample: what goes in, and what comes out, with gradients up to an order."""
    storages: dict[int, Any] = {}
    row: dict[str, Any] = {"path": path, "args": stored(arguments, storages)}
    row["kwargs"] = stored(options, storages)
    row["storages"] = [(kind, array) for kind, array, _ in storages.values()]
    inputs = _tensors(arguments) + _tensors(options)
    try:
        torch.manual_seed(0)
        result = call(*arguments, **options)
    except Exception as error:
        return {**row, "error": _error(error)}
    row["result"] = stored(result)
    if not orders:
        return row
    try:
        gradients = _gradients(_tensors(result), inputs, orders == 2)
        row["gradients"] = None if gradients is None else stored(list(gradients))
    except Exception as error:
        return {**row, "gradient_error": _error(error)}
    if orders == 2 and gradients is not None:
        try:
            second = _gradients([g for g in gradients if g is not None], inputs, False)
            row["second"] = None if second is None else stored(list(second))
        except Exception as error:
            row["second_error"] = _error(error)
    return row


def _in_double(value: Any) -> Any:
    """A copy of arguments with float64 in the place of half precision."""
    if isinstance(value, torch.Tensor):
        low = value.dtype in (torch.bfloat16, torch.float16)
        return value.detach().to(torch.float64).requires_grad_(value.requires_grad) if low else value
    if isinstance(value, (list, tuple)) and type(value) in (list, tuple):
        return type(value)(_in_double(item) for item in value)
    if isinstance(value, dict):
        return {key: _in_double(item) for key, item in value.items()}
    return torch.float64 if value in (torch.bfloat16, torch.float16) else value


def record_exact(
    call: Callable[..., Any], arguments: tuple[Any, ...], options: dict[str, Any], orders: int
) -> dict[str, Any]:
    """What a call in half precision gives in float64: torch's own rounding may be far from it."""
    row = record_call(call, "", _in_double(arguments), _in_double(options), orders)
    return {f"exact_{name}": row[name] for name in ("result", "gradients") if row.get(name) is not None}


def _with_clone(method: Callable[..., Any]) -> Callable[..., Any]:
    """An in-place form, of a copy of the first argument."""
    return lambda first, *rest, **options: method(
        [t.clone() for t in first] if isinstance(first, (list, tuple)) else first.clone(), *rest, **options
    )


def _in_place_form(info: Any) -> str | None:
    """Where the in-place form of an op is found, if it is a method (for _foreach ops: a function)."""
    name = getattr(info.inplace_variant, "__name__", "")
    path = name if name.startswith("_foreach") else f"Tensor.{name}"
    return path if name and callable(_at(path)) else None


def record(info: Any, dtype: torch.dtype, limit: int) -> list[dict[str, Any]]:
    """The samples of one op in one dtype."""
    path = place(info)
    assert path is not None
    differentiable = info.supports_autograd and (dtype.is_floating_point or dtype.is_complex)
    orders = 0 if not differentiable else 2 if dtype in (torch.float64, torch.complex128) else 1
    rows = []
    samples = list(itertools.islice(info.sample_inputs("cpu", dtype, requires_grad=differentiable), 400))
    if len(samples) > limit:  # the first, and others from all over
        samples = samples[: limit // 2] + random.Random(0).sample(samples[limit // 2 :], limit - limit // 2)
    for number, sample in enumerate(samples):
        arguments, options = (sample.input, *sample.args), dict(sample.kwargs)
        for name in (
            "zero_size",
            "disable_fastpath",
        ):  # what the samples of _foreach ops say about themselves
            options.pop(name, None)
        calls = [(info.op, path)]
        in_place = _in_place_form(info) if number < 2 else None
        if in_place is not None and not sample.broadcasts_input:
            calls.append((_with_clone(_at(in_place)), in_place))
        for call, name in calls:
            try:
                row = record_call(call, name, arguments, options, orders)
                if dtype in (torch.bfloat16, torch.float16) and "result" in row:
                    row |= record_exact(call, arguments, options, orders)
            except Unstorable:
                continue
            if name == path or "error" not in row:
                rows.append({**row, "clone": name != path})
    return rows


def record_errors(info: Any) -> list[dict[str, Any]]:
    """The calls that torch refuses, with the error."""
    rows = []
    path = place(info)
    assert path is not None
    if info.error_inputs_func is None:
        return rows
    for error_input in info.error_inputs("cpu"):
        sample = error_input.sample_input
        try:
            row = record_call(info.op, path, (sample.input, *sample.args), dict(sample.kwargs), 0)
        except Unstorable:
            continue
        if "error" in row:
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


def all_ops() -> list[Any]:
    """torch's OpInfos, with those of the _foreach ops."""
    _without_expecttest()
    from torch.testing._internal import common_methods_invocations as infos

    foreach = (infos.foreach_unary_op_db, infos.foreach_binary_op_db, infos.foreach_pointwise_op_db)
    more = (infos.foreach_reduce_op_db, infos.foreach_other_op_db)
    listed = [*infos.op_db, *itertools.chain(*foreach, *more)]
    return [info for info in listed if not info.name.startswith(ONLY_CUDA)]


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
    options.folder.mkdir(parents=True, exist_ok=True)
    for info in all_ops():
        if options.op and info.name not in options.op:
            continue
        name = info.name + ("." + info.variant_test_name if info.variant_test_name else "")
        target = options.folder / f"{name}.pickle"
        if target.exists():
            continue
        if place(info) is None:
            print(f"{name}: no function of this name", file=sys.stderr)
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
        try:
            rows["errors"] = record_errors(info)
        except Exception as error:
            print(f"{name} error inputs: {type(error).__name__} {error}", file=sys.stderr)
        target.write_bytes(pickle.dumps(rows))
        if time.process_time() - start > 20:
            print(f"{name} took {time.process_time() - start:.0f} s", file=sys.stderr)


if __name__ == "__main__":
    main()
