"""Common ops: a first recording does not measure how ops are compiled."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from mindtorch_v2 import _dispatch
from mindtorch_v2._common_ops import COMMON_OPS

SOURCE = Path(__file__).parents[2] / "src"

FIRST_PROFILE = """
import mindtorch_v2 as torch
from mindtorch_v2 import _common_ops, _dispatch, nn
from mindtorch_v2.profiler import profile

F = nn.functional
{model}
with profile(record_shapes=True, profile_memory=True) as prof:
    before = {{op.full_name for op in _dispatch.BY_UID if _common_ops.is_prepared(op)}}
    for _ in range(2):
        loss = compute()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    after = {{op.full_name for op in _dispatch.BY_UID if _common_ops.is_prepared(op)}}
print(sorted(after - before))
"""

MODELS = {
    "mlp": """
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
points, labels = torch.randn(32, 8), torch.arange(32) % 3
compute = lambda: F.cross_entropy(model(points), labels)
""",
    "cnn": """
layers = nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(100, 2)
model = nn.Sequential(*layers)
images, labels = torch.randn(4, 1, 12, 12), torch.arange(4) % 2
optimizer = torch.optim.Adam(model.parameters())
compute = lambda: F.cross_entropy(model(images), labels)
""",
    "transformer": """
model = nn.TransformerEncoderLayer(16, 4, 32, batch_first=True, activation="gelu")
optimizer = torch.optim.AdamW(model.parameters())
compute = lambda: model(torch.randn(2, 5, 16)).pow(2).mean()
""",
    "lstm": """
model = nn.LSTM(4, 8, num_layers=2, batch_first=True)
optimizer = torch.optim.Adam(model.parameters())
compute = lambda: model(torch.randn(3, 6, 4))[0].mean()
""",
}


@pytest.mark.parametrize("name", MODELS)
def test_a_first_profile_compiles_no_op(name: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", FIRST_PROFILE.format(model=MODELS[name])],
        env={**os.environ, "PYTHONPATH": str(SOURCE)},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.stdout == "[]\n", done.stdout + done.stderr


def test_every_common_op_exists() -> None:
    assert [name for name in COMMON_OPS if name not in _dispatch.OPS] == []
