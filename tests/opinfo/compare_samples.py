"""The samples of `record_samples.py` in, a table out: how many ops give torch's results and gradients.

    PYTHONPATH=src python tests/opinfo/compare_samples.py FOLDER [--op NAME ...] [--dtype ...] [--show 3]

An op counts as equal in a dtype if all of its samples do: shape, dtype, and values within a tolerance of
that dtype. Ops whose results are random are compared by shape and dtype only.
"""

from __future__ import annotations

import argparse
import collections
import pickle
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import mindtorch_v2 as torch

# Relative and absolute: several times what torch.testing allows, as sums are added in another order.
TOLERANCES = {
    "float64": (1e-6, 1e-7),
    "float32": (1e-4, 1e-4),
    "complex128": (1e-6, 1e-7),
    "complex64": (1e-4, 1e-4),
    "bfloat16": (3e-2, 2e-2),
    "float16": (5e-3, 1e-3),
}
RANDOM = frozenset(
    """bernoulli cauchy exponential geometric log_normal multinomial normal uniform rand_like randint
    randint_like randn randn_like empty empty_like empty_permuted empty_strided new_empty new_empty_strided
    nn.functional.dropout nn.functional.dropout2d nn.functional.dropout3d nn.functional.alpha_dropout
    nn.functional.feature_alpha_dropout.with_train nn.functional.rrelu nn.functional.fractional_max_pool2d
    nn.functional.fractional_max_pool3d nn.functional.multi_head_attention_forward normal.number_mean
    nn.functional.scaled_dot_product_attention""".split()
)

# OpInfo calls these through a function of its own, with the arguments in another order.
CALLS: dict[str, Any] = {
    "einsum": lambda tensors, equation: torch.einsum(equation, *tensors),
    "where": lambda self, condition, other: torch.where(condition, self, other),
    "nn.functional.embedding": lambda w, index, **named: torch.nn.functional.embedding(index, w, **named),
    "gradient": lambda self, spacing=None, **named: torch.gradient(
        self, **named, **({} if spacing is None else {"spacing": spacing})
    ),
    "zero_": lambda self: self.clone().zero_(),
    "linalg.pinv.singular": lambda a, b: torch.linalg.pinv(a @ b.mT),
    "linalg.lstsq.grad_oriented": lambda a, b, driver=None: torch.linalg.lstsq(a, b, driver=driver)[0:2],
    **{f"polygamma.polygamma_n_{n}": lambda self, order: torch.polygamma(order, self) for n in range(5)},
    "special.polygamma.special_polygamma_n_0": lambda self, n: torch.special.polygamma(n, self),
    "__rsub__": lambda a, b: b - a,
    "__rdiv__": lambda a, b: b / a,
    "__rpow__": lambda a, b: b**a,
    "__rmod__": lambda a, b: b % a,
}
# Functions of random matrices, which OpInfo calls through functions of its own.
LEFT_OUT = frozenset(("svd_lowrank", "pca_lowrank", "normal.in_place"))


class Difference(Exception):
    """What differs."""


def restored(value: Any, leaves: list[Any]) -> Any:
    """A stored value for this library; tensors that require gradients are added to `leaves`."""
    kind = value[0]
    if kind == "tensor":
        _, name, array, _, requires_grad = value
        if name == "bfloat16":
            tensor = torch.from_numpy(array.copy()).view(torch.bfloat16)
        else:
            tensor = torch.from_numpy(array.copy())
        if requires_grad:
            leaves.append(tensor.requires_grad_())
        return tensor
    if kind in ("dtype", "named"):
        return getattr(torch, value[1])
    if kind == "device":
        return torch.device(value[1])
    if kind == "slice":
        return slice(*[restored(item, leaves) for item in value[1:]])
    if kind == "ellipsis":
        return Ellipsis
    if kind in ("tuple", "list"):
        items = [item if type(item) is int else restored(item, leaves) for item in value[1]]
        return tuple(items) if kind == "tuple" else items
    if kind == "dict":
        return {key: restored(item, leaves) for key, item in value[1].items()}
    return value[1]


def _numbers(name: str, array: Any) -> Any:
    if name == "bfloat16":
        return (array.astype(np.uint16).astype(np.uint32) << 16).view(np.float32)
    return array


def compare(expected: Any, result: Any, values: bool = True, where: str = "") -> None:
    """Raise what differs between a stored result and one of this library."""
    kind = expected[0]
    if kind == "tensor":
        _, name, array, _, _ = expected
        if not isinstance(result, torch.Tensor):
            raise Difference(f"{where} {type(result).__name__} instead of a tensor")
        if tuple(result.shape) != array.shape:
            raise Difference(f"{where} shape {tuple(result.shape)} instead of {array.shape}")
        if str(result.dtype).removeprefix("torch.") != name:
            raise Difference(f"{where} {result.dtype} instead of {name}")
        if not values:
            return
        wanted = _numbers(name, array)
        detached = result.detach()
        ours = detached.float().numpy() if name == "bfloat16" else detached.resolve_conj().numpy()
        relative, absolute = TOLERANCES.get(name, (0, 0))
        close = np.isclose(ours, wanted, relative, absolute, equal_nan=True) if wanted.size else True
        if not np.all(close):
            bad = np.argwhere(~np.atleast_1d(close))[0]
            raise Difference(
                f"{where} {np.count_nonzero(~np.asarray(close))} of {wanted.size} values, "
                f"first at {tuple(map(int, bad))}: {np.atleast_1d(ours)[tuple(bad)]} "
                f"instead of {np.atleast_1d(wanted)[tuple(bad)]}"
            )
    elif kind in ("tuple", "list"):
        if not isinstance(result, (tuple, list)) or len(result) != len(expected[1]):
            raise Difference(f"{where} {type(result).__name__} instead of {len(expected[1])} results")
        for number, (item, ours) in enumerate(zip(expected[1], result)):
            if item is None or type(item) is int or item == ("plain", None):
                if (item if type(item) is int else None) != ours and ours is not None:
                    raise Difference(f"{where}[{number}] {ours!r} instead of {item!r}")
            else:
                compare(item, ours, values, f"{where}[{number}]")
    elif kind == "plain":
        same = expected[1] == result or (expected[1] != expected[1] and result != result)
        if values and not same and not np.isclose(expected[1], result):
            raise Difference(f"{where} {result!r} instead of {expected[1]!r}")


def _function(path: str) -> Any:
    found: Any = torch
    for part in path.split("."):
        found = getattr(found, part)
    return found


def _tensors(value: Any) -> list[Any]:
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, (list, tuple)):
        return [tensor for item in value for tensor in _tensors(item)]
    return []


def _cotangent(result: Any) -> Any:
    ramp = (np.arange(result.numel(), dtype=np.float64) % 7 + 1) / 4
    if result.dtype.is_complex:
        ramp = ramp + 1j * (ramp[::-1] - 1)
    return torch.from_numpy(ramp.copy()).to(result.dtype).reshape(result.shape)


def _raised(error: Exception) -> str:
    return f"raised {type(error).__name__}: {(str(error).splitlines() or [''])[0]}"


def differences(op: str, row: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """("forward" or "gradient", what differs) of one sample."""
    leaves: list[Any] = []
    arguments, options = restored(row["args"], leaves), restored(row["kwargs"], leaves)
    try:
        torch.manual_seed(0)
        result = CALLS.get(op, _function(row["path"]))(*arguments, **options)
        if "error" in row:
            yield "forward", f"accepted: {row['error']}"
            return
        compare(row["result"], result, op not in RANDOM)
    except Difference as error:
        yield "forward", str(error)
        return
    except Exception as error:
        if "error" not in row:
            yield "forward", _raised(error)
        return
    if row.get("gradients") is None:
        return
    try:
        roots = [r for r in _tensors(result) if r.requires_grad]
        gradients = torch.autograd.grad(roots, leaves, [_cotangent(r) for r in roots], allow_unused=True)
        for number, (expected, gradient) in enumerate(zip(row["gradients"][1], gradients)):
            if expected == ("plain", None):
                if gradient is not None and bool(gradient.any()):
                    raise Difference(f"[{number}] a gradient where torch has none")
            elif gradient is None:
                if np.any(_numbers(expected[1], expected[2])):
                    raise Difference(f"[{number}] no gradient")
            else:
                compare(expected, gradient, op not in RANDOM, f"[{number}]")
    except Difference as error:
        yield "gradient", str(error)
    except Exception as error:
        yield "gradient", _raised(error)


def main() -> None:
    """Compare, and print what differs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--op", nargs="*")
    parser.add_argument("--dtype", nargs="*")
    parser.add_argument("--show", type=int, default=1, help="differences to print per op and dtype")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    count: collections.Counter[tuple[str, str, bool]] = collections.Counter()
    wrong_ops, all_ops = set(), set()
    for file in sorted(options.folder.glob("*.pickle")):
        if file.stem in LEFT_OUT or (options.op and file.stem not in options.op):
            continue
        for dtype, rows in pickle.loads(file.read_bytes()).items():
            if options.dtype and dtype not in options.dtype:
                continue
            all_ops.add(file.stem)
            seen: dict[str, list[str]] = {"forward": [], "gradient": []}
            for number, row in enumerate(rows):
                for what, text in differences(file.stem, row):
                    seen[what].append(f"{file.stem} {dtype} {what} sample {number}: {text}")
            for what, texts in seen.items():
                if what == "forward" or any(row.get("gradients") for row in rows):
                    count[dtype, what, not texts] += 1
                if texts:
                    wrong_ops.add(file.stem)
                for text in texts[: options.show]:
                    print(text[:260])
    for dtype, what in sorted({key[:2] for key in count}):
        equal, other = count[dtype, what, True], count[dtype, what, False]
        print(f"{dtype:11} {what:9} {equal:4} of {equal + other} ops equal")
    print(f"all         {len(all_ops) - len(wrong_ops):4} of {len(all_ops)} ops equal in everything compared")


if __name__ == "__main__":
    main()
