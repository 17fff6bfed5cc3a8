"""The report's memory curve: the recorded one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from html_report import blocks

from mindtorch_prof.torch_api.results import Results


def test_the_memory_curve_is_the_recorded_one(recorded_training: Results, report_page: Path) -> None:
    values, columns = blocks(report_page)["memory-0"]
    (about,) = values["devices"]
    curve = np.sum([columns[name] for name in columns if ".category." in name], axis=0)
    module_bytes = sum(nbytes for _, nbytes, _ in recorded_training.trace.memory.of_modules)
    assert about["peak"] == curve.max() == recorded_training.trace.memory.total.max() + module_bytes
    assert sum(about["at_peak"]) == about["peak"]
    assert about["allocations"] == int((recorded_training.trace.memory.nbytes > 0).sum())
    assert sum(row[2] for row in about["biggest"]) == about["taken"]
