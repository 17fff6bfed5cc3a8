"""vmap: a function of one example in, a function of a batch out. Calls it once per example and stacks the
results.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import Any

import mindtorch_v2 as torch

from ..autograd.engine import vmap_state
from ..utils._pytree import _broadcast_to_and_flatten, tree_flatten, tree_unflatten

_RANDOM = (
    "vmap: called random operation while in randomness error mode. Please either use the 'same' or "
    "'different' "
    "randomness flags on vmap or perform the randomness operation out of vmap"
)


def vmap(
    func: Callable[..., Any],
    in_dims: Any = 0,
    out_dims: Any = 0,
    randomness: str = "error",
    *,
    chunk_size: int | None = None,
) -> Callable[..., Any]:
    """Map `func` over a dimension of its arguments."""
    if randomness not in ("error", "different", "same"):
        raise RuntimeError(
            f"Only allowed values for randomness are 'error', 'different', or 'same'. Got {randomness}"
        )
    if not (chunk_size is None or chunk_size > 0):
        raise ValueError(f"vmap: chunk_size should be None or greater than 0. (got {chunk_size})")

    @functools.wraps(func)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        return _mapped(func, in_dims, out_dims, randomness, args, kwargs)

    return wrapped


def _is_mapped(value: Any) -> bool:
    """Whether a value has dimensions to map over: a tensor, or a container of tensors with a common batch, such as TensorDict."""
    return isinstance(value, torch.Tensor) or hasattr(type(value), "_add_batch_dim")


def _for_one_example(value: Any) -> Any:
    """What is not mapped over, for one call. Functions write their results into a TensorDict: each call gets one of its own."""
    is_container = _is_mapped(value) and not isinstance(value, torch.Tensor)
    return value.clone(recurse=False) if is_container else value


def _name(func: Callable[..., Any]) -> str:
    return getattr(func, "__name__", repr(func))


@contextlib.contextmanager
def _more_examples(follow: bool) -> Iterator[None]:
    """Backward passes keep the graph while further examples follow."""
    before = vmap_state.more_examples
    vmap_state.more_examples = before or follow
    try:
        yield
    finally:
        vmap_state.more_examples = before


def _mapped(
    func: Callable[..., Any],
    in_dims: Any,
    out_dims: Any,
    randomness: str,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Any:
    values, dims, spec = _checked_inputs(func, in_dims, args)
    sizes = list(dict.fromkeys(v.size(d) for v, d in zip(values, dims) if d is not None))
    if len(sizes) > 1:
        raise ValueError(
            "vmap: Expected all tensors to have the same size in the mapped dimension, got sizes "
            f"{[v.size(d) for v, d in zip(values, dims) if d is not None]} for the mapped dimension"
        )
    rows = [v if d is None else v.unbind(d) for v, d in zip(values, dims)]
    results = []
    before = torch.get_rng_state() if randomness != "different" else None
    for i in range(sizes[0]):
        if i and randomness == "same":
            torch.set_rng_state(before)
        example = [_for_one_example(row) if d is None else row[i] for row, d in zip(rows, dims)]
        with _more_examples(i < sizes[0] - 1):
            results.append(func(*tree_unflatten(example, spec), **kwargs))
    if randomness == "error" and not torch.equal(before, torch.get_rng_state()):
        torch.set_rng_state(before)
        raise RuntimeError(_RANDOM)
    return _stacked(func, out_dims, results)


def _checked_inputs(
    func: Callable[..., Any], in_dims: Any, args: tuple[Any, ...]
) -> tuple[list[Any], list[Any], Any]:
    """The arguments flattened, the dimension to map over for each (or None), and their structure."""
    name = _name(func)
    call_text = f"vmap({name}, in_dims={in_dims}, ...)(<inputs>)"
    if not isinstance(in_dims, (int, tuple)):
        raise ValueError(
            f"{call_text}: expected `in_dims` to be int or a (potentially nested) tuple matching the structure "
            "of inputs, "
            f"got: {type(in_dims)}."
        )
    if not args:
        raise ValueError(
            f"vmap({name})(<inputs>): got no inputs. Maybe you forgot to add inputs, or you are trying to "
            "vmap over "
            "a function with no inputs. The latter is unsupported."
        )
    values, spec = tree_flatten(args, is_leaf=_is_mapped)
    dims = _broadcast_to_and_flatten(in_dims, spec)
    if dims is None:
        raise ValueError(
            f"{call_text}: in_dims is not compatible with the structure of `inputs`. in_dims has structure "
            f"{tree_flatten(in_dims)[1]} but inputs has structure {spec}."
        )
    for i, (value, dim) in enumerate(zip(values, dims)):
        if not isinstance(dim, int) and dim is not None:
            raise ValueError(
                f"{call_text}: Got in_dim={dim} for an input but in_dim must be either an integer dimension or "
                "None."
            )
        if dim is None:
            continue
        if not _is_mapped(value):
            raise ValueError(
                f"{call_text}: Got in_dim={dim} for an input but the input is of type {type(value)}. We cannot "
                "vmap over "
                "non-Tensor arguments, please use None as the respective in_dim"
            )
        if not -value.dim() <= dim < value.dim():
            raise ValueError(
                f"{call_text}: Got in_dim={dim} for some input, but that input is a Tensor of dimensionality "
                f"{value.dim()} so expected in_dim to satisfy -{value.dim()} <= in_dim < {value.dim()}."
            )
        dims[i] = dim % value.dim()
    return values, dims, spec


def _stacked(func: Callable[..., Any], out_dims: Any, results: list[Any]) -> Any:
    """The results of all examples, stacked along their output dimensions."""
    name = _name(func)
    flat, specs = zip(*(tree_flatten(result, is_leaf=_is_mapped) for result in results))
    spec = specs[0]
    dims = _broadcast_to_and_flatten(out_dims, spec)
    if not isinstance(out_dims, (int, tuple, list, dict, type(None))):
        raise ValueError(
            f"vmap({name}, ..., out_dims={out_dims}): `out_dims` must be an int, None or a python "
            "collection of ints "
            "representing where in the outputs the vmapped dimension should appear."
        )
    if dims is None:
        raise ValueError(
            f"vmap({name}, ..., out_dims={out_dims})(<inputs>): out_dims is not compatible with the "
            "structure of "
            f"`outputs`. out_dims has structure {tree_flatten(out_dims)[1]} but outputs has structure {spec}."
        )
    stacked = []
    for values, dim in zip(zip(*flat), dims):
        if dim is None:
            stacked.append(values[0])
            continue
        if not _is_mapped(values[0]):
            raise ValueError(
                f"vmap({name}, ...): `{name}` must only return Tensors, got type {type(values[0])}. Did "
                "you mean to "
                "set out_dims= to None for output?"
            )
        stacked.append(torch.stack(values, dim))
    return tree_unflatten(stacked, spec)
