"""Show how fast each op computes and moves data, and how far that is from the device's peak.

Needs a trace of a GPU or NPU that was recorded with record_shapes=True. One row
per op, shapes and dtypes: FLOP and bytes by a model of the op, and rates over
the time of the kernels that it launched. What bounds an op (compute or memory)
follows from the device's peaks, which are known for common devices.

example:
  mindtorch-prof roofline trace.json.gz
  mindtorch-prof roofline trace.json.gz --format json
  mindtorch-prof roofline trace.json.gz --peaks memory_tbps=3.35,bf16=989,fp32=67
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from ..text_escaping import terminal_text
from . import _common

if TYPE_CHECKING:
    from ..analysis.roofline import Peaks, Roofline, Row

_TOP = 20  # rows of a table
_UNEXPLAINED = 5  # rows below it
_SHOWN = ("own_kernel_us", "tflops", "tbps", "bound", "share_of_peak", "count", "op", "shapes")
_TITLES = {
    "own_kernel_us": "Kernels",
    "tflops": "TFLOP/s",
    "tbps": "TB/s",
    "bound": "Bound",
    "share_of_peak": "Of peak",
    "count": "Calls",
    "op": "Op, dtype",
    "shapes": "Shapes",
}
_UNITS = {
    "own_kernel_us": "us",
    "tflops": "rate",
    "tbps": "number",
    "count": "count",
    "op": "text",
    "shapes": "text",
}
_SHORT = {
    "float64": "f64",
    "float32": "f32",
    "float16": "f16",
    "bfloat16": "bf16",
    "int64": "i64",
    "int32": "i32",
    "int8": "i8",
    "uint8": "u8",
}


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `roofline`."""
    _common.add_file(parser)
    parser.add_argument(
        "--peaks",
        metavar="WHAT",
        help="peaks of the device: a known device (H100 SXM), a .json or .toml file, or pairs such as memory_tbps=3.35,bf16=989",
    )
    parser.add_argument(
        "--all",
        action="store_true",
        help="show also ops whose kernels all belong to ops inside them (aten::linear around aten::addmm); json and csv have them anyway",
    )
    _common.add_capture(parser)
    _common.add_output(parser)
    parser.add_argument(
        "--top",
        type=_common.count,
        metavar="N",
        help=f"number of rows to show ({_TOP} in a table, else all); 0 shows all",
    )


def run(options: argparse.Namespace) -> int:
    """Print one row per op, shapes and dtypes."""
    from ..analysis.roofline import read_peaks, roofline

    peaks: Peaks | None = None
    if options.peaks is not None:
        try:
            peaks = read_peaks(options.peaks)
        except ValueError as error:
            raise _common.CommandError(terminal_text(str(error))) from error
    trace, match = _common.with_capture(_common.open_trace(options.file, options), options)
    result = roofline(trace, peaks)
    if options.format in ("json", "csv"):
        document = result.to_dict()
        rows = [row.to_dict() for row in result.rows]
        about = {"file": options.file, **{key: value for key, value in document.items() if key != "rows"}}
        keys = list(rows[0]) if rows else list(_keys())
        _common.print_rows(rows, options.format, keys=keys, top=options.top or 0, about=about)
        return 0
    _print(result, options)
    if match is not None:
        _common.say(match.sentence())
    return 0


def _keys() -> tuple[str, ...]:
    from dataclasses import fields

    from ..analysis.roofline import Row

    return tuple(each.name for each in fields(Row))


def _print(result: Roofline, options: argparse.Namespace) -> None:
    rows = [row for row in result.rows if options.all or row.own_kernel_us > 0]
    rows.sort(key=lambda row: -(row.kernel_us if options.all else row.own_kernel_us))
    top = _TOP if options.top is None else options.top
    if rows:
        shown = rows[:top] if top else rows
        _common.print_rows(
            [_cells(row, options.all) for row in shown],
            options.format,
            keys=_SHOWN,
            units=_UNITS,
            titles=_TITLES,
            names=("op",),
            least_important=("count", "share_of_peak", "tbps", "shapes"),
        )
        if len(shown) < len(rows):
            _common.say(f"... and {len(rows) - len(shown):,} more rows (--top 0 shows all)")
        print()
    for line in _summary(result):
        _common.say(line)


def _cells(row: Row, whole: bool) -> dict[str, object]:
    return {
        **row.to_dict(),
        "own_kernel_us": row.kernel_us if whole else row.own_kernel_us,
        "tflops": "" if not row.tflops else f"{row.tflops:.1f}" if row.tflops >= 10 else f"{row.tflops:.3f}",
        "share_of_peak": "" if row.share_of_peak is None else f"{row.share_of_peak:.1%}",
        "op": " ".join([row.name, *_types(row)]),
        "shapes": " ".join(_shapes(row)),
    }


def _types(row: Row) -> list[str]:
    """The types of tensors, one if all have the same."""
    from ..inputs import ELEMENT_TYPES

    names = [ELEMENT_TYPES[kind].dtype for kind in row.dtypes if kind in ELEMENT_TYPES]
    return list(dict.fromkeys(_SHORT.get(name, name) for name in names))


def _shapes(row: Row) -> list[str]:
    """The shapes of tensors; of vectors (biases, scales, statistics) only if there is nothing else."""
    shapes = [shape for shape in row.input_shapes if isinstance(shape, list) and shape]
    flat = [shape for shape in shapes if not isinstance(shape[0], list)]
    long = [shape for shape in flat if len(shape) > 1]
    return ["x".join(map(str, shape)) for shape in long or flat]


def _summary(result: Roofline) -> list[str]:
    from ..number_formats import format_time

    lines = [result.sentence()]
    not_covered = result.not_covered_by_op()
    for each in not_covered[:_UNEXPLAINED]:
        name = each.name or "(no op)"
        lines.append(f"  not explained: {format_time(each.kernel_us):>9}  {name}: {each.reason}")
    if len(not_covered) > _UNEXPLAINED:
        rest = sum(each.kernel_us for each in not_covered[_UNEXPLAINED:])
        lines.append(f"  not explained: {format_time(rest):>9}  others (--format json lists them)")
    peaks = result.peaks
    if peaks is not None:
        rates = ", ".join(f"{kind} {rate:g}" for kind, rate in peaks.tflops.items())
        lines.append(f"peaks of {peaks.name}: {peaks.memory_tbps:g} TB/s; TFLOP/s: {rates}")
    return lines + [f"note: {note}" for note in result.notes]
