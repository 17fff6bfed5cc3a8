"""torch.utils.flop_counter: counts floating-point operations by module and op."""

from __future__ import annotations

import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable
from functools import wraps
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

import mindtorch_v2 as torch
from mindtorch_prof.flops import bmm_flops, convolution_flops, mm_flops

from ..ops import OpOverloadPacket
from ._python_dispatch import TorchDispatchMode
from ._pytree import tree_map
from .module_tracker import ModuleTracker

if TYPE_CHECKING:
    from ..nn import Module

__all__ = ["FlopCounterMode", "register_flop_formula"]

_T = TypeVar("_T")
_P = ParamSpec("_P")
aten = torch.ops.aten

flop_registry: dict[Any, Any] = {}


def get_shape(i: Any) -> Any:
    """The shape of a tensor; anything else unchanged."""
    return i.shape if isinstance(i, torch.Tensor) else i


def shape_wrapper(f: Callable) -> Callable:
    """A formula of shapes as a function of an op's arguments and result."""

    @wraps(f)
    def of_tensors(*args: Any, out_val: Any = None, **kwargs: Any) -> Any:
        args, kwargs, out_shape = tree_map(get_shape, (args, kwargs, out_val))
        return f(*args, out_shape=out_shape, **kwargs)

    return of_tensors


def register_flop_formula(
    targets: Any, get_raw: bool = False
) -> Callable[[Callable[_P, _T]], Callable[_P, _T]]:
    """Decorator: register the formula for the operations of an op, a function of the shapes of its tensors
    (`get_raw`: of the tensors).
    """

    def declare(formula: Callable[_P, _T]) -> Callable[_P, _T]:
        counted = formula if get_raw else shape_wrapper(formula)
        for target in targets if isinstance(targets, (list, tuple)) else (targets,):
            if not isinstance(target, OpOverloadPacket):
                raise ValueError(
                    "register_flop_formula(targets): expected each target to be OpOverloadPacket (i.e. torch.ops.mylib.foo), JitFunction, "
                    f"or HigherOrderOperator, got {target} which is of type {type(target)}"
                )
            if target in flop_registry:
                raise RuntimeError(f"duplicate registrations for {target}")
            flop_registry[target] = counted
        return formula

    return declare


# ---------------------------------------------------------------------------------------------------- formulas


def mm_flop(a_shape: Any, b_shape: Any, *args: Any, out_shape: Any = None, **kwargs: Any) -> int:
    """The product of two matrices."""
    (m, k), (_, n) = a_shape, b_shape
    return mm_flops((m, k), (k, n))


def addmm_flop(self_shape: Any, a_shape: Any, b_shape: Any, out_shape: Any = None, **kwargs: Any) -> int:
    """The product of two matrices; the addition is not counted."""
    return mm_flop(a_shape, b_shape)


def bmm_flop(a_shape: Any, b_shape: Any, out_shape: Any = None, **kwargs: Any) -> int:
    """Products of batches of matrices."""
    (batch, m, k), (_, _, n) = a_shape, b_shape
    return bmm_flops((batch, m, k), (batch, k, n))


def baddbmm_flop(self_shape: Any, a_shape: Any, b_shape: Any, out_shape: Any = None, **kwargs: Any) -> int:
    """Products of batches of matrices; the addition is not counted."""
    return bmm_flop(a_shape, b_shape)


def conv_flop_count(
    x_shape: list[int], w_shape: list[int], out_shape: list[int], transposed: bool = False
) -> int:
    """A convolution: every position of the output (of the input, if transposed) is multiplied with every
    weight.
    """
    places = (x_shape if transposed else out_shape)[2:]
    c_out, c_in, *filter_size = w_shape
    return convolution_flops(x_shape[0], c_in, c_out, filter_size, places)


def conv_flop(
    x_shape: Any,
    w_shape: Any,
    _bias: Any,
    _stride: Any,
    _padding: Any,
    _dilation: Any,
    transposed: Any,
    *args: Any,
    out_shape: Any = None,
    **kwargs: Any,
) -> int:
    """A convolution."""
    return conv_flop_count(x_shape, w_shape, out_shape, transposed=transposed)


def conv_backward_flop(
    grad_out_shape: Any,
    x_shape: Any,
    w_shape: Any,
    _bias: Any,
    _stride: Any,
    _padding: Any,
    _dilation: Any,
    transposed: Any,
    _output_padding: Any,
    _groups: Any,
    output_mask: Any,
    out_shape: Any,
    **kwargs: Any,
) -> int:
    """The requested gradients of a convolution; each is a convolution."""
    count = 0
    if output_mask[0]:
        count += conv_flop_count(grad_out_shape, w_shape, get_shape(out_shape[0]), not transposed)
    if output_mask[1]:
        weight = _batch_last(get_shape(out_shape[1]))
        pair = (grad_out_shape, x_shape) if transposed else (x_shape, grad_out_shape)
        count += conv_flop_count(_batch_last(pair[0]), _batch_last(pair[1]), weight, transposed=False)
    return count


def _batch_last(shape: Any) -> list[int]:
    return [shape[1], shape[0], *shape[2:]]


def sdpa_flop_count(query_shape: Any, key_shape: Any, value_shape: Any) -> int:
    """Attention: queries with keys, then scores with values."""
    b, h, s_q, d_q = query_shape
    s_k, d_v = key_shape[2], value_shape[-1]
    return bmm_flop((b * h, s_q, d_q), (b * h, d_q, s_k)) + bmm_flop((b * h, s_q, s_k), (b * h, s_k, d_v))


def sdpa_flop(
    query_shape: Any, key_shape: Any, value_shape: Any, *args: Any, out_shape: Any = None, **kwargs: Any
) -> int:
    """Attention."""
    return sdpa_flop_count(query_shape, key_shape, value_shape)


def sdpa_backward_flop_count(grad_out_shape: Any, query_shape: Any, key_shape: Any, value_shape: Any) -> int:
    """The gradients of attention: the scores again, then two products for each of the two."""
    b, h, s_q, d_q = query_shape
    s_k, d_v = key_shape[2], value_shape[-1]
    scores = bmm_flop((b * h, s_q, d_q), (b * h, d_q, s_k))
    values = bmm_flop((b * h, s_q, d_v), (b * h, d_v, s_k))
    return 3 * scores + 2 * values


def sdpa_backward_flop(
    grad_out_shape: Any,
    query_shape: Any,
    key_shape: Any,
    value_shape: Any,
    *args: Any,
    out_shape: Any = None,
    **kwargs: Any,
) -> int:
    """The gradients of attention."""
    return sdpa_backward_flop_count(grad_out_shape, query_shape, key_shape, value_shape)


def _register() -> None:
    for names, formula in (
        (("mm",), mm_flop),
        (("addmm",), addmm_flop),
        (("bmm",), bmm_flop),
        (("baddbmm",), baddbmm_flop),
        (("convolution", "_convolution"), conv_flop),
        (("convolution_backward",), conv_backward_flop),
    ):
        targets = [packet for name in names if (packet := getattr(aten, name, None)) is not None]
        register_flop_formula(targets)(formula)


_register()


# ---------------------------------------------------------------------------------------------------- text


suffixes = ["", "K", "M", "B", "T"]


def get_suffix_str(number: int) -> str:
    """The suffix for which a number has at least two digits before the point."""
    return suffixes[max(0, min(len(suffixes) - 1, (len(str(number)) - 2) // 3))]


def convert_num_with_suffix(number: int, suffix: str) -> str:
    """A number in thousands, millions, ... with three digits after the point."""
    power = suffixes.index(suffix)
    if power == 0:
        return str(number)
    return f"{number / 1000**power:.3f}{suffix}"


def convert_to_percent_str(num: float, denom: float) -> str:
    """A fraction of a total, as a percentage."""
    return "0%" if denom == 0 else f"{num / denom:.2%}"


def normalize_tuple(x: Any) -> tuple:
    """A tuple; anything else as a tuple of one."""
    return x if isinstance(x, tuple) else (x,)


def _table(header: tuple[str, ...], rows: list[list[str]]) -> str:
    """Columns separated by two blanks, the first one left-aligned."""
    widths = [max(len(title) + 2, *(len(row[i]) for row in rows)) for i, title in enumerate(header)]
    lines = [header, ["-" * width for width in widths], *rows]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if i == 0 else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(line, widths))
        )
        for line in lines
    )


# ---------------------------------------------------------------------------------------------------- counting


class FlopCounterMode:
    """Context manager: count floating-point operations per module and op, and print a table at the end.

    `custom_mapping` has formulas for further ops, which take shapes; one with the attribute `_get_raw` set
    takes tensors.
    """

    def __init__(
        self,
        mods: Module | list[Module] | None = None,
        depth: int = 2,
        display: bool = True,
        custom_mapping: dict[Any, Any] | None = None,
    ) -> None:
        self.flop_counts: dict[str, dict[Any, int]] = defaultdict(lambda: defaultdict(int))
        self.depth = depth
        self.display = display
        self.mode: _FlopCounterMode | None = None
        if mods is not None:
            warnings.warn("mods argument is not needed anymore, you can stop passing it", stacklevel=2)
        custom_formulas = {
            op: formula if getattr(formula, "_get_raw", False) else shape_wrapper(formula)
            for op, formula in (custom_mapping or {}).items()
        }
        self.flop_registry = {**flop_registry, **custom_formulas}
        self.mod_tracker = ModuleTracker()

    def get_total_flops(self) -> int:
        """The total count."""
        return sum(self.flop_counts["Global"].values())

    def get_flop_counts(self) -> dict[str, dict[Any, int]]:
        """The counts, by the full name of a module and by op."""
        return {name: dict(counts) for name, counts in self.flop_counts.items()}

    def get_table(self, depth: Any = None) -> str:
        """A table of modules, down to `depth`, and of the ops in each."""
        depth = self.depth if depth is None else depth
        depth = 999999 if depth is None else depth
        total = self.get_total_flops()
        suffix = get_suffix_str(total)
        modules = [name for name in sorted(self.flop_counts) if name != "Global" and name.count(".") < depth]
        counts = {name: sum(self.flop_counts[name].values()) for name in modules}
        if not any(count >= total for count in counts.values()):
            modules.insert(0, "Global")  # some operations are in no module
        rows = [row for name in modules for row in self._rows(name, total, suffix)]
        return _table(("Module", "FLOP", "% Total"), rows)

    def _rows(self, name: str, total: int, suffix: str) -> Iterable[list[str]]:
        counts = self.flop_counts[name]
        for label, count in ((name, sum(counts.values())), *((f"- {op}", n) for op, n in counts.items())):
            yield [label, convert_num_with_suffix(count, suffix), convert_to_percent_str(count, total)]

    def __enter__(self) -> FlopCounterMode:
        self.flop_counts.clear()
        self.mod_tracker.__enter__()
        self.mode = _FlopCounterMode(self)
        self.mode.__enter__()
        return self

    def __exit__(self, *args: Any) -> None:
        assert self.mode is not None
        self.mode.__exit__(*args)
        self.mode = None
        self.mod_tracker.__exit__()
        if self.display:
            print(self.get_table(self.depth))  # noqa: T201  (what this mode is for)

    def _count_flops(self, func_packet: Any, out: Any, args: tuple, kwargs: dict) -> Any:
        formula = self.flop_registry.get(func_packet)
        if formula is not None:
            count = formula(*args, **kwargs, out_val=out)
            for name in set(self.mod_tracker.parents):
                self.flop_counts[name][func_packet] += count
        return out


class _FlopCounterMode(TorchDispatchMode):
    """The dispatch mode that counts the ops."""

    def __init__(self, counter: FlopCounterMode) -> None:
        super().__init__()
        self.counter = counter

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        return self.counter._count_flops(func._overloadpacket, func(*args, **kwargs), args, kwargs)
