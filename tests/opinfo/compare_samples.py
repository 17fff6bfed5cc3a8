"""The samples of `record_samples.py` in, a table out: how many ops give torch's results and gradients.

    PYTHONPATH=src python tests/opinfo/compare_samples.py FOLDER [--op NAME ...] [--dtype ...] [--show 3]

An op counts as equal in a dtype if all of its samples do: shape, dtype, and values within a tolerance of
that dtype. Ops whose results are random are compared by shape and dtype only. A call that torch refuses
("errors") has to raise an error of the same type.
"""

from __future__ import annotations

import argparse
import collections
import importlib
import os
import pickle
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

# time_samples.py makes the same calls with torch itself
torch: Any = importlib.import_module(os.environ.get("OPINFO_PACKAGE", "mindtorch_v2"))

# Relative and absolute: several times what torch.testing allows, as sums are added in another order.
TOLERANCES = {
    "float64": (1e-6, 1e-7),
    "float32": (1e-4, 1e-4),
    "complex128": (1e-6, 1e-7),
    "complex64": (1e-4, 1e-4),
    "complex32": (5e-3, 1e-3),
    "bfloat16": (3e-2, 2e-2),
    "float16": (5e-3, 1e-3),
}
RANDOM = frozenset(
    """bernoulli cauchy exponential geometric log_normal multinomial normal uniform rand_like randint
    randint_like randn randn_like empty empty_like empty_permuted empty_strided new_empty new_empty_strided
    nn.functional.dropout nn.functional.dropout2d nn.functional.dropout3d nn.functional.alpha_dropout
    nn.functional.feature_alpha_dropout.with_train nn.functional.rrelu nn.functional.fractional_max_pool2d
    nn.functional.fractional_max_pool3d nn.functional.multi_head_attention_forward normal.number_mean
    normal.in_place nn.functional.scaled_dot_product_attention svd_lowrank pca_lowrank
    resize_ resize_as_""".split()
)
# Which of several equal elements is named first is not specified.
TIES = frozenset("argsort kthvalue mode msort sort topk".split())
# Eigenvectors are right whatever their phase.
PHASES = frozenset(("linalg.eig", "linalg.eigh"))


def _sets_seed(name: str) -> Any:
    return lambda self, *rest, **named: getattr(self, name)(*rest, **named)


def _max_pool2d_backward(*arguments: Any, **named: Any) -> Any:
    named["return_indices"] = True
    out, indices = torch.nn.functional.max_pool2d_with_indices(*arguments, **named)
    window = [named.get(name) for name in ("kernel_size", "stride", "padding", "dilation", "ceil_mode")]
    defaults = [(), (), (0,), (1,), False]
    window = [default if value is None else value for value, default in zip(window, defaults)]
    ones = torch.ones_like(out)
    return torch.ops.aten.max_pool2d_with_indices_backward.default(ones, arguments[0], *window, indices)


# OpInfo calls these through a function of its own, with the arguments in another order.
CALLS: dict[str, Any] = {
    "einsum": lambda tensors, equation: torch.einsum(equation, tensors),
    "where": lambda self, condition, other: torch.where(condition, self, other),
    "nn.functional.embedding": lambda w, index, **named: torch.nn.functional.embedding(index, w, **named),
    "nn.functional.embedding_bag": lambda w, index, **named: torch.nn.functional.embedding_bag(
        index, w, **named
    ),
    "zero_": lambda self: torch.zero_(self.clone()),
    "resize_": lambda self, shape: self.clone().resize_(shape),
    "resize_as_": lambda self, other: torch.resize_as_(self.clone(), other),
    "linalg.pinv.singular": lambda a, b: torch.linalg.pinv(a @ b.mT),
    "linalg.lstsq.grad_oriented": lambda a, b, driver=None: torch.linalg.lstsq(a, b, driver=driver)[0:2],
    "svd_lowrank": lambda a, b, **named: torch.svd_lowrank(a @ b.mT, **named),
    "pca_lowrank": lambda a, b, **named: torch.pca_lowrank(a @ b.mT, **named),
    "max_pool2d_with_indices_backward": _max_pool2d_backward,
    "_foreach_copy": torch._foreach_copy_,
    "_foreach_zero": torch._foreach_zero_,
    "slice": torch.ops.aten.slice.Tensor,
    "native_dropout_backward": torch.ops.aten.native_dropout_backward,
    **{name: (lambda self, name=name: getattr(self, name)) for name in ("T", "H", "mT", "mH")},
    **{
        name: _sets_seed(name + "_")
        for name in ("cauchy", "exponential", "geometric", "log_normal", "uniform")
    },
    "normal.in_place": _sets_seed("normal_"),
    **{f"polygamma.polygamma_n_{n}": lambda self, order: torch.polygamma(order, self) for n in range(5)},
    "special.polygamma.special_polygamma_n_0": lambda self, n: torch.special.polygamma(n, self),
    "__rsub__": lambda a, b: b - a,
    "__rdiv__": torch.Tensor.__rdiv__,
    "__rpow__": lambda a, b: b**a,
    "__rmod__": lambda a, b: b % a,
}


class Difference(Exception):
    """What differs."""


class Sample:
    """The arguments of one recorded call, as tensors of this library."""

    def __init__(self, row: dict[str, Any]) -> None:
        self.leaves: list[Any] = []
        self._storages = [_tensor(name, array) for name, array in row["storages"]]
        self.arguments = self.restored(row["args"])
        self.options = self.restored(row["kwargs"])

    def restored(self, value: Any) -> Any:
        kind = value[0]
        if kind == "tensor":
            return self._leaf(_tensor(value[1], value[2]), value[4])
        if kind == "view":
            _, number, shape, strides, offset, requires_grad = value
            return self._leaf(
                self._storages[number].as_strided(shape, strides, offset).detach(), requires_grad
            )
        if kind.startswith("sparse_"):
            parts = [self.restored(part) for part in value[1:-2]]
            make = {"sparse_coo": torch.sparse_coo_tensor}.get(kind) or getattr(torch, kind + "_tensor")
            return self._leaf(make(*parts, size=value[-2]), value[-1])
        if kind in ("dtype", "named"):
            return getattr(torch, value[1])
        if kind == "device":
            return torch.device(value[1])
        if kind == "slice":
            return slice(*[self.restored(item) for item in value[1:]])
        if kind == "ellipsis":
            return Ellipsis
        if kind in ("tuple", "list"):
            items = [item if type(item) is int else self.restored(item) for item in value[1]]
            return tuple(items) if kind == "tuple" else items
        if kind == "dict":
            return {key: self.restored(item) for key, item in value[1].items()}
        return value[1]

    def _leaf(self, tensor: Any, requires_grad: bool) -> Any:
        if requires_grad:
            self.leaves.append(tensor.requires_grad_())
        return tensor


def _tensor(name: str, array: Any) -> Any:
    tensor = torch.from_numpy(array.copy())
    if name == "complex32":
        return torch.view_as_complex(tensor)
    return tensor.view(torch.bfloat16) if name == "bfloat16" else tensor


def _numbers(name: str, array: Any) -> Any:
    return (array.astype(np.uint16).astype(np.uint32) << 16).view(np.float32) if name == "bfloat16" else array


def compare(expected: Any, result: Any, values: bool = True, where: str = "", exact: Any = None) -> None:
    """Raise what differs between a stored result and one of this library.

    Values of half precision may also equal `exact`, the same call in float64: torch adds up some of them
    in half precision.
    """
    kind = expected[0]
    if kind.startswith("sparse_"):
        if not isinstance(result, torch.Tensor) or str(result.layout) != f"torch.{kind}":
            raise Difference(f"{where} {getattr(result, 'layout', type(result))} instead of {kind}")
        expected_dense, result = _dense(expected), result.to_dense()
        compare(expected_dense, result, values, where)
    elif kind == "tensor":
        _compare_tensors(expected, result, values, where, exact)
    elif kind in ("tuple", "list"):
        if not isinstance(result, (tuple, list)) or len(result) != len(expected[1]):
            raise Difference(f"{where} {type(result).__name__} instead of {len(expected[1])} results")
        for number, (item, ours) in enumerate(zip(expected[1], result)):
            if item is None or type(item) is int or item == ("plain", None):
                if (item if type(item) is int else None) != ours and ours is not None:
                    raise Difference(f"{where}[{number}] {ours!r} instead of {item!r}")
            else:
                compare(item, ours, values, f"{where}[{number}]", exact[1][number] if exact else None)
    elif kind == "plain":
        same = expected[1] == result or (expected[1] != expected[1] and result != result)
        if values and not same and not np.isclose(expected[1], result):
            raise Difference(f"{where} {result!r} instead of {expected[1]!r}")


def _dense(expected: Any) -> Any:
    dense = Sample({"args": expected, "kwargs": ("dict", {}), "storages": []}).arguments.detach().to_dense()
    name = str(dense.dtype).removeprefix("torch.")
    array = dense.view(torch.int16).numpy() if name == "bfloat16" else dense.numpy()
    return ("tensor", name, array, None, False)


def _compare_tensors(expected: Any, result: Any, values: bool, where: str, exact: Any) -> None:
    _, name, array, _, _ = expected
    shape = array.shape[:-1] if name == "complex32" else array.shape
    if not isinstance(result, torch.Tensor):
        raise Difference(f"{where} {type(result).__name__} instead of a tensor")
    if result.layout is not torch.strided:
        raise Difference(f"{where} {result.layout} instead of strided")
    if tuple(result.shape) != shape:
        raise Difference(f"{where} shape {tuple(result.shape)} instead of {shape}")
    if str(result.dtype).removeprefix("torch.") != name:
        raise Difference(f"{where} {result.dtype} instead of {name}")
    if not values:
        return
    wanted = _numbers(name, array)
    detached = result.detach().resolve_conj()
    if name == "complex32":
        detached = torch.view_as_real(detached)
    ours = detached.float().numpy() if name == "bfloat16" else detached.numpy()
    relative, absolute = TOLERANCES.get(name, (0, 0))
    close = np.isclose(ours, wanted, relative, absolute, equal_nan=True) if wanted.size else True
    if exact is not None and exact[0] == "tensor" and exact[2].shape == wanted.shape:
        close |= np.isclose(ours, exact[2], relative, absolute, equal_nan=True)
    if not np.all(close):
        bad = np.argwhere(~np.atleast_1d(close))[0]
        raise Difference(
            f"{where} {np.count_nonzero(~np.asarray(close))} of {wanted.size} values, "
            f"first at {tuple(map(int, bad))}: {np.atleast_1d(ours)[tuple(bad)]} "
            f"instead of {np.atleast_1d(wanted)[tuple(bad)]}"
        )


def function_of(op: str, row: dict[str, Any]) -> Any:
    """What is called for a sample; the in-place form of a copy of the first argument."""
    if not row.get("clone"):
        return CALLS.get(op) or _at(row["path"])
    method = _at(row["path"])
    return lambda first, *rest, **named: method(
        [t.clone() for t in first] if isinstance(first, (list, tuple)) else first.clone(), *rest, **named
    )


def _at(path: str) -> Any:
    value: Any = torch
    for part in path.split("."):
        value = getattr(value, part)
    return value


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
    """("forward", "gradient" or "second", what differs) of one sample."""
    form = "in place: " if row.get("clone") else ""
    try:
        sample = Sample(row)
        torch.manual_seed(0)
        result = function_of(op, row)(*sample.arguments, **sample.options)
    except Exception as error:
        if "error" not in row:
            yield "forward", form + _raised(error)
        elif type(error).__name__ != row["error"][0]:
            yield "forward", f"{form}{_raised(error)}, instead of {row['error']}"
        return
    if "error" in row:
        yield "forward", f"{form}accepted: {row['error']}"
        return
    try:
        if _is_ambiguous(op, row, sample, result):
            return
        compare(row["result"], result, op not in RANDOM, exact=row.get("exact_result"))
    except Difference as error:
        yield "forward", form + str(error)
        return
    roots = _tensors(result)
    for what in ("gradients", "second"):
        if row.get(what) is None:
            return
        try:
            wanted, exact = row[what], row.get(f"exact_{what}")
            roots = _compare_gradients(
                wanted, roots, sample.leaves, what == "gradients" and "second" in row, op not in RANDOM, exact
            )
        except Difference as error:
            yield what, form + str(error)
            return
        except Exception as error:
            yield what, form + _raised(error)
            return


def _is_ambiguous(op: str, row: dict[str, Any], sample: Sample, result: Any) -> bool:
    """Whether an op has several right results here, and gave one of them."""
    if op in PHASES:
        compare(row["result"][1][0], result[0])
        vectors = result[1].detach()
        name, array = row["result"][1][1][1:3]
        sizes = {"complex64": "float32", "complex128": "float64"}.get(name, name)
        compare(("tensor", sizes, np.abs(array), None, False), vectors.abs())
        return not np.allclose(vectors.numpy(), array)
    if op not in TIES:
        return False
    data = sample.arguments[0].detach()
    if np.unique(data.double().numpy()).size == data.numel():
        return False
    if isinstance(result, torch.Tensor):
        dim = sample.options.get("dim", next((a for a in sample.arguments[1:] if type(a) is int), -1))
        descending = sample.options.get("descending", True in sample.arguments[2:])
        named = (
            result
            if op == "msort"
            else data.gather(dim, result)
            if data.dim()
            else data.reshape(result.shape)
        )
        wanted = data.sort(0 if op == "msort" else dim, descending)[0]
        if op == "argsort" and not bool((named == wanted).all()):
            raise Difference("not in order")
        return op == "argsort" or bool((named == wanted).all())
    compare(row["result"][1][0], result[0])
    return True


def _compare_gradients(
    expected: Any, results: list[Any], leaves: list[Any], again: bool, values: bool, exact: Any
) -> list[Any]:
    roots = [r for r in results if r.requires_grad]
    if not roots:
        raise Difference("nothing requires gradients")
    cotangents = [_cotangent(r) for r in roots]
    gradients = torch.autograd.grad(roots, leaves, cotangents, allow_unused=True, create_graph=again)
    for number, (wanted, gradient) in enumerate(zip(expected[1], gradients)):
        if wanted in (None, ("plain", None)):
            if gradient is not None and np.any(gradient.detach().to_dense().resolve_conj().float().numpy()):
                raise Difference(f"[{number}] a gradient where torch has none")
        elif gradient is None:
            if np.any(_numbers(wanted[1], wanted[2])):
                raise Difference(f"[{number}] no gradient")
        else:
            compare(wanted, gradient, values, f"[{number}]", exact[1][number] if exact else None)
    return [g for g in gradients if g is not None]


def main() -> None:
    """Compare, and print what differs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--op", nargs="*")
    parser.add_argument(
        "--dtype", nargs="*", help='such as float64; "errors" for the calls that torch refuses'
    )
    parser.add_argument("--show", type=int, default=1, help="differences to print per op and dtype")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    count: collections.Counter[tuple[str, str, bool]] = collections.Counter()
    refused: collections.Counter[bool] = collections.Counter()
    wrong_ops, all_ops = set(), set()
    for file in sorted(options.folder.glob("*.pickle")):
        if options.op and file.stem not in options.op:
            continue
        for dtype, rows in pickle.loads(file.read_bytes()).items():
            if options.dtype and dtype not in options.dtype:
                continue
            all_ops.add(file.stem)
            texts: dict[str, list[str]] = {"forward": [], "gradients": [], "second": []}
            for number, row in enumerate(rows):
                found = list(differences(file.stem, row))
                refused[not found] += dtype == "errors"
                for what, text in found:
                    texts[what].append(f"{file.stem} {dtype} {what} sample {number}: {text}")
            for what, lines in texts.items():
                if what == "forward" or any(row.get(what) for row in rows):
                    count[dtype, what, not lines] += 1
                if lines:
                    wrong_ops.add(file.stem)
                for line in lines[: options.show]:
                    print(line[:260])
    for dtype, what in sorted({key[:2] for key in count}):
        equal, other = count[dtype, what, True], count[dtype, what, False]
        print(f"{dtype:11} {what:9} {equal:4} of {equal + other} ops equal")
    print(f"refused calls     {refused[True]:4} of {refused.total()} equal")
    print(f"all         {len(all_ops) - len(wrong_ops):4} of {len(all_ops)} ops equal in everything compared")


if __name__ == "__main__":
    main()
