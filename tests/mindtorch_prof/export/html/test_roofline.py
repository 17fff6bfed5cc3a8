"""The roofline of the report: the rows of the analysis that kernels belong to."""

from __future__ import annotations

from pathlib import Path

import pytest

from mindtorch_prof import load
from mindtorch_prof.analysis.roofline import roofline
from mindtorch_prof.export.html.roofline import roofline_block
from mindtorch_prof.torch_api.results import Results


def test_rows_are_those_of_the_analysis_that_kernels_belong_to(ecosystem: Path) -> None:
    loaded = load(ecosystem / "traces/h100_qwen_infer_stack_memory.json.gz")
    results, result = loaded._results, roofline(loaded)
    assert isinstance(results, Results)
    block = roofline_block(results)
    assert block is not None
    own = [row for row in result.rows if row.own_kernel_us > 0]
    assert block.values["sentence"] == result.sentence()
    assert len(own) < len(result.rows)
    assert sorted(block.values["names"]) == sorted(row.name for row in own)  # type: ignore[call-overload]
    assert block.columns["kernel_ns"][0].sum() == pytest.approx(1000 * sum(row.own_kernel_us for row in own))


def test_a_recording_without_kernels_has_no_block(recorded_training: Results) -> None:
    assert roofline_block(recorded_training) is None
