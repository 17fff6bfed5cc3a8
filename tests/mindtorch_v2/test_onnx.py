"""torch.onnx refuses to export."""

from __future__ import annotations

from pathlib import Path

import pytest

import mindtorch_v2 as torch


def test_an_export_is_refused_and_writes_nothing(tmp_path: Path) -> None:
    with pytest.raises(torch.onnx.OnnxExporterError, match="captures no graph"):
        torch.onnx.export(torch.nn.Linear(1, 1), (torch.ones(1, 1),), tmp_path / "model.onnx")
    assert list(tmp_path.iterdir()) == []
