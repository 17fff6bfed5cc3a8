"""Tensors over files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import mindtorch_v2 as torch


def test_a_shared_file_takes_what_its_tensor_is_given(tmp_path: Path) -> None:
    path = tmp_path / "numbers"
    path.write_bytes(np.arange(4, dtype=np.int32).tobytes())
    private = torch.from_file(str(path), size=4, dtype=torch.int32)
    private[0] = 9
    shared = torch.from_file(str(path), shared=True, size=2, dtype=torch.int32)
    shared[1] = 7
    assert np.frombuffer(path.read_bytes(), np.int32).tolist() == [0, 7, 2, 3]
    made = torch.from_file(str(tmp_path / "new"), shared=True, size=2)
    assert made.tolist() == [0.0, 0.0]
    with pytest.raises(RuntimeError, match="is smaller than the required mapping size"):
        torch.from_file(str(path), size=8, dtype=torch.int32)
