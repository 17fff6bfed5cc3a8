"""What a profile shows of printing: a tensor in, the ops by which torch finds out how to print it called. The text itself is made by
`_tensor_str`, from the array. Only used while something records.
"""

from __future__ import annotations

from typing import Any

from . import _dtype
from ._dispatch import FUNCTIONS, grad_state
from ._torch_dispatch import no_dispatch


def show(tensor: Any, options: Any) -> None:
    """Call what torch calls to print a dense tensor that has elements. `options`: the print options in force."""
    enabled, grad_state.enabled = grad_state.enabled, False
    try:
        with no_dispatch():
            _show(tensor, options)
    finally:
        grad_state.enabled = enabled


def _show(tensor: Any, options: Any) -> None:
    many = tensor.numel() > options.threshold
    if tensor.dtype._rank == 3:
        tensor = tensor.resolve_conj()
    flags = []
    for name in ("real", "imag") if tensor.dtype._rank == 3 else (None,):
        part = tensor if name is None else getattr(tensor, name)
        flags.append(_measure(_summary(part, options.edgeitems) if many else part, options))
    _rows(tensor, [flag for flag in flags if flag is not None], options.edgeitems if many else 0)


def _summary(tensor: Any, edge: int) -> Any:
    """The elements at the edges, put together."""
    if tensor.dim() == 0:
        return tensor
    n = tensor.shape[0]
    if tensor.dim() == 1:
        return FUNCTIONS["cat"]((tensor[:edge], tensor[-edge:])) if n > 2 * edge else tensor
    parts = [tensor[i] for i in (*range(edge), *range(n - edge, n))] if n > 2 * edge else list(tensor)
    return FUNCTIONS["stack"]([_summary(part, edge) for part in parts])


def _measure(tensor: Any, options: Any) -> Any:
    """Look at all elements for their width; a tensor that says whether they need exponents, if it took one to know."""
    flat = tensor.reshape(-1)
    if tensor.dtype._rank < 2:
        _read(flat)
        return None
    telling = FUNCTIONS["masked_select"](flat, FUNCTIONS["isfinite"](flat) & flat.ne(0))
    if not telling.numel():
        return None
    sizes = telling.abs().to(_dtype.float64)
    low, high = sizes.min().to(_dtype.float64), sizes.max().to(_dtype.float64)
    for value in telling:
        if value != FUNCTIONS["ceil"](value):
            break
    flag = None
    if options.sci_mode is None:
        flag = high / low > 1000.0 or high > 1.0e8 or low < 1.0e-4
        bool(flag)
    _read(telling)
    return flag


def _read(flat: Any) -> None:
    for value in flat:
        value.detach()
        value.item()


def _rows(tensor: Any, flags: list, edge: int) -> None:
    """Take out the rows that are shown and read them; each element asks each flag."""
    if tensor.dim() == 0:
        tensor.item()
        _ask(flags, 1)
        return
    n = tensor.shape[0]
    cut = bool(edge) and n > 2 * edge
    if tensor.dim() == 1:
        for ends in (slice(edge), slice(-edge, None)) if cut else (None,):
            part = tensor if ends is None else tensor[ends]
            part.tolist()
            _ask(flags, part.shape[0])
        return
    for place in (*range(edge), *range(n - edge, n)) if cut else range(n):
        _rows(tensor[place], flags, edge)


def _ask(flags: list, count: int) -> None:
    for _ in range(count):
        for flag in flags:
            bool(flag)
