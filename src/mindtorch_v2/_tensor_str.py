"""Printing: a tensor in, the text torch prints for it out. Works on the tensor's NumPy array; runs no op.

The elements that will be shown are turned into text once, all at the same width (`_Cells`); `_layout` puts
brackets, commas and line breaks around them; `_with_suffixes` adds what stands after the elements.
"""

from __future__ import annotations

import contextlib
import dataclasses
import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from . import _dtype

__all__ = ["get_printoptions", "printoptions", "set_printoptions"]


@dataclasses.dataclass
class _PrinterOptions:
    precision: int = 4
    threshold: float = 1000
    edgeitems: int = 3
    linewidth: int = 80
    sci_mode: bool | None = None


PRINT_OPTS = _PrinterOptions()

_PROFILES: dict[str, dict[str, Any]] = {
    "default": {"precision": 4, "threshold": 1000, "edgeitems": 3, "linewidth": 80},
    "short": {"precision": 2, "threshold": 1000, "edgeitems": 2, "linewidth": 80},
    "full": {"precision": 4, "threshold": math.inf, "edgeitems": 3, "linewidth": 80},
}


def set_printoptions(
    precision: int | None = None,
    threshold: float | None = None,
    edgeitems: int | None = None,
    linewidth: int | None = None,
    profile: str | None = None,
    sci_mode: bool | None = None,
) -> None:
    """Set how tensors print; None leaves an option unchanged, except `sci_mode`, which it resets to automatic."""
    for name, value in _PROFILES.get(profile or "", {}).items():
        setattr(PRINT_OPTS, name, value)
    options = {"precision": precision, "threshold": threshold, "edgeitems": edgeitems, "linewidth": linewidth}
    for name, value in options.items():
        if value is not None:
            setattr(PRINT_OPTS, name, value)
    PRINT_OPTS.sci_mode = sci_mode


def get_printoptions() -> dict[str, Any]:
    """The print options in force."""
    return dataclasses.asdict(PRINT_OPTS)


@contextlib.contextmanager
def printoptions(**kwargs: Any) -> Iterator[None]:
    """Set print options inside a `with` block."""
    before = get_printoptions()
    set_printoptions(**kwargs)
    try:
        yield
    finally:
        set_printoptions(**before)


@dataclasses.dataclass
class _Cells:
    """The shown elements as text, in order, and the width that line breaking assumes."""

    texts: list[str]
    width: int


def _whole_cells(values: np.ndarray) -> _Cells:
    texts = [str(v) for v in values.tolist()]
    width = max(map(len, texts), default=1)
    return _Cells([t.rjust(width) for t in texts], width)


def _float_format(magnitudes: np.ndarray) -> tuple[str, str]:
    """The format specification for numbers of these magnitudes, and what follows each finite number."""
    if not magnitudes.size:
        return ".0f", "."
    precision, sci_mode = PRINT_OPTS.precision, PRINT_OPTS.sci_mode
    smallest, largest = float(magnitudes.min()), float(magnitudes.max())
    whole = bool((magnitudes == np.ceil(magnitudes)).all())
    if sci_mode is None:
        sci_mode = largest / smallest > 1000.0 or largest > 1.0e8 or (not whole and smallest < 1.0e-4)
    if sci_mode:
        return f".{precision}e", ""
    return (".0f", ".") if whole else (f".{precision}f", "")


def _float_cells(values: np.ndarray) -> _Cells:
    """Only finite numbers other than zero decide the width; -inf and -0. may stick out of their column."""
    deciding = np.isfinite(values) & (values != 0)
    spec, end = _float_format(np.abs(values[deciding]))
    texts = [format(v, spec) + (end if math.isfinite(v) else "") for v in values.tolist()]
    width = max((len(texts[i]) for i in np.flatnonzero(deciding)), default=1)
    return _Cells([t.rjust(width) for t in texts], width)


def _complex_cells(values: np.ndarray) -> _Cells:
    real, imag = _float_cells(values.real), _float_cells(values.imag)
    texts = []
    for re, im in zip(real.texts, imag.texts, strict=True):
        im = im.lstrip()
        texts.append(f"{re}{im}j" if im[0] == "-" else f"{re}+{im}j")
    return _Cells(texts, real.width + imag.width + 1)


def _cells(array: np.ndarray) -> _Cells:
    flat = array.reshape(-1)
    if flat.dtype.kind in "biu":
        return _whole_cells(flat)
    if flat.dtype.kind in "cW":  # W: complex32
        return _complex_cells(flat.astype(np.complex128))
    return _float_cells(flat.astype(np.float64))


def _edges(array: np.ndarray) -> np.ndarray:
    """The elements that a summary shows: the first and last `edgeitems` along every dimension."""
    edge = PRINT_OPTS.edgeitems
    shown = ([*range(edge), *range(n - edge, n)] if n > 2 * edge else range(n) for n in array.shape)
    return array[np.ix_(*shown)]


def _layout(shape: tuple[int, ...], texts: Iterator[str], width: int, indent: int, summarize: bool) -> str:
    """The elements of `shape` in brackets, `texts` giving those that are shown, row after row."""
    n, edge = shape[0], PRINT_OPTS.edgeitems
    cut = summarize and n > 2 * edge
    shown = 2 * edge if cut else n
    if len(shape) > 1:
        items = [_layout(shape[1:], texts, width, indent + 1, summarize) for _ in range(shown)]
        if cut:
            items.insert(edge, "...")
        return "[" + ("," + "\n" * (len(shape) - 1) + " " * (indent + 1)).join(items) + "]"
    items = [next(texts) for _ in range(shown)]
    if cut:
        items.insert(edge, " ...")
    per_line = max(1, math.floor((PRINT_OPTS.linewidth - indent) / (width + 2)))
    lines = [", ".join(items[i : i + per_line]) for i in range(0, len(items), per_line)]
    return "[" + (",\n" + " " * (indent + 1)).join(lines) + "]"


def _contents(array: np.ndarray, indent: int) -> str:
    if array.ndim == 0:
        return _cells(array).texts[0]
    summarize = array.size > PRINT_OPTS.threshold
    if summarize and PRINT_OPTS.edgeitems == 0:
        return "[...]"
    shown = _edges(array) if summarize else array
    cells = _cells(shown)
    return _layout(array.shape, iter(cells.texts), cells.width, indent, summarize)


def _with_suffixes(text: str, suffixes: list[str], indent: int, own_line: bool = False) -> str:
    """Add the suffixes and the closing bracket, beginning a new line where one would pass the line width."""
    column = len(text) - text.rfind("\n") + 1
    for suffix in suffixes:
        if own_line or column + len(suffix) + 2 > PRINT_OPTS.linewidth:
            text += ",\n" + " " * indent + suffix
            column = indent + len(suffix)
            own_line = False
        else:
            text += ", " + suffix
            column += len(suffix) + 2
    return text + ")"


def _grad_suffixes(tensor: Any) -> list[str]:
    try:
        grad_fn = tensor.grad_fn
    except RuntimeError:  # a view that may not be used since its memory was written
        return ["grad_fn=<Invalid>"]
    if grad_fn is not None:
        return [f"grad_fn=<{grad_fn.name().rpartition('::')[2]}>"]
    return ["requires_grad=True"] if tensor.requires_grad else []


def _is_default_dtype(dtype: Any) -> bool:
    """Whether the elements alone tell the dtype."""
    default = _dtype.Default.dtype
    return dtype in (default, default.to_complex(), _dtype.int64, _dtype.bool_)


def _size_suffix(shape: tuple[int, ...]) -> str:
    return f"size={tuple(shape)}"


def _sparse_part(name: str, array: np.ndarray, indent: int) -> str:
    begin = f"{name}=tensor("
    if not array.size:
        return f"{begin}[], {_size_suffix(array.shape)})"
    return begin + _contents(array, indent + len(begin)) + ")"


def _sparse_str(tensor: Any, begin: str) -> str:
    indent = len(begin)
    values = tensor._elements
    if tensor.is_sparse:
        named = {"indices": tensor._places}
    else:
        named = {tensor._kind.pointers: tensor._pointers, tensor._kind.indices: tensor._inner}
    parts = [_sparse_part(name, array, indent) for name, array in (*named.items(), ("values", values))]
    suffixes = [
        _size_suffix(tensor.shape),
        f"nnz={len(values) if tensor.is_sparse else tensor._inner.shape[-1]}",
    ]
    if not _is_default_dtype(tensor.dtype):
        suffixes.append(f"dtype={tensor.dtype}")
    suffixes.append(f"layout={tensor.layout}")
    text = begin + (",\n" + " " * indent).join(parts)
    return _with_suffixes(text, suffixes + _grad_suffixes(tensor), indent, own_line=tensor.is_sparse)


def _dense_str(tensor: Any, begin: str, contents: str | None) -> str:
    indent, suffixes = len(begin), []
    dtype, shape = tensor.dtype, tuple(tensor.shape)
    meta, empty = tensor.device.type == "meta", 0 in shape
    if meta:
        suffixes.append("device='meta'")
    if contents is not None:
        text = contents
    elif meta:
        text = "..."
    elif empty:
        text = "[]"
    else:
        text = _contents(tensor._array, indent)
    if contents is None and (meta or (len(shape) != 1 if empty else PRINT_OPTS.edgeitems == 0)):
        suffixes.append(_size_suffix(shape))
    # without elements, only the default dtype is left out
    unseen = contents is None and (meta or empty)
    if dtype is not _dtype.Default.dtype if unseen else not _is_default_dtype(dtype):
        suffixes.append(f"dtype={dtype}")
    return _with_suffixes(begin + text, suffixes + _grad_suffixes(tensor), indent)


def _class_prefix(tensor: Any) -> tuple[str, str]:
    from ._tensor import Tensor

    cls = type(tensor)
    if cls is Tensor or cls._is_sparse_layout:  # first, and without nn: a tensor prints before nn is imported
        return "tensor(", ""
    from .nn.parameter import Parameter

    if cls is Parameter:
        return "tensor(", ""
    if isinstance(tensor, Parameter):
        return f"Parameter({cls.__name__}(", ")"
    return f"{cls.__name__}(", ""


def _add_suffixes(tensor_str: str, suffixes: list[str], indent: int, force_newline: bool) -> str:
    """A text with suffixes and the closing bracket, on new lines where they would pass the line width."""
    return _with_suffixes(tensor_str, suffixes, indent, force_newline)


def _str_intern(inp: Any, *, tensor_contents: str | None = None) -> str:
    """The text of `repr(tensor)`, whatever its class prints."""
    return _str(inp, tensor_contents=tensor_contents)


def _tensor_str(self: Any, indent: int) -> str:
    """The elements of a dense tensor as text, whose further lines are indented by `indent`."""
    return "[]" if not self.numel() else _contents(self._array, indent)


def _str(self: Any, *, tensor_contents: str | None = None) -> str:
    """The text of `repr(tensor)`; `tensor_contents` stands in for the elements."""
    begin, end = _class_prefix(self)
    if self._is_sparse_layout and tensor_contents is None:
        return _sparse_str(self, begin) + end
    return _dense_str(self, begin, tensor_contents) + end
