"""Some ops, compared with torch on its own OpInfo samples, where an interpreter with torch is named."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

OPS = tuple(
    """addmm addbmm baddbmm diff geqrf lerp logaddexp logsumexp linalg.lu_factor linalg.slogdet
    linalg.matrix_rank nn.functional.conv2d nn.functional.conv_transpose2d renorm searchsorted
    unique_consecutive""".split()
)
PYTHON = os.environ.get("MINDTORCH_TORCH_PYTHON")
HERE = Path(__file__).parent


@pytest.mark.skipif(PYTHON is None, reason="MINDTORCH_TORCH_PYTHON names no interpreter with torch")
def test_ops_equal_torch_on_its_own_samples(tmp_path: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    record = [str(PYTHON), str(HERE / "record_samples.py"), str(tmp_path), "--op", *OPS]
    subprocess.run(record, check=True, env=environment, capture_output=True)
    compare = [sys.executable, str(HERE / "compare_samples.py"), str(tmp_path)]
    compare += ["--dtype", "float64", "complex128", "int64"]
    shown = subprocess.run(compare, check=True, capture_output=True, text=True).stdout
    _, equal, _, compared, *_ = shown.splitlines()[-1].split()
    assert int(compared) >= len(OPS)
    assert equal == compared, shown
