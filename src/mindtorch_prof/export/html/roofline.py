"""Roofline for the report: Results in; the rows that kernels belong to, with rates, bounds and the device's peaks out."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ...analysis.roofline import roofline
from ...inputs import ELEMENT_TYPES
from .pack import Block

if TYPE_CHECKING:
    from ...torch_api.results import Results

_NUMBERS = ("count", "flop", "bytes", "tflops", "tbps", "intensity", "peak_tflops", "share_of_peak")


def roofline_block(results: Results) -> Block | None:
    """One row per op, shapes and dtypes; None if no kernel belongs to an op with a model. Ops whose kernels all belong to ops inside them
    are left out, so that times add up."""
    if not len(results.trace.device):
        return None
    result = roofline(results)
    rows = sorted((row for row in result.rows if row.own_kernel_us > 0), key=lambda row: -row.own_kernel_us)
    if not rows:
        return None
    block = Block(
        {
            "names": [row.name for row in rows],
            "shapes": [" ".join(str(shape) for shape in row.input_shapes if shape) for row in rows],
            "types": [_types(row.dtypes) for row in rows],
            "categories": [row.category for row in rows],
            "bounds": [row.bound for row in rows],
            "sentence": result.sentence(),
            "notes": result.notes,
            "peaks": None if result.peaks is None else result.peaks.to_dict(),
            "not_covered": [
                [each.name, each.count, round(each.kernel_us * 1000), each.reason]
                for each in result.not_covered_by_op()[:50]
            ],
        }
    )
    block.add("kernel_ns", np.array([round(row.own_kernel_us * 1000) for row in rows]))
    for name in _NUMBERS:
        # nothing is known where a number is missing, or it would be infinite: 0 in the page
        block.add(name, np.array([getattr(row, name) or 0 for row in rows], np.float64))
    return block


def _types(names: list[str]) -> str:
    kinds = [ELEMENT_TYPES[name].dtype for name in names if name in ELEMENT_TYPES]
    return ", ".join(dict.fromkeys(kinds))
