"""Write, with real torch, the folder of torch.distributed.checkpoint that the tests load: `python record_checkpoint_folder.py`."""

from __future__ import annotations

from pathlib import Path

import torch
from torch.distributed import checkpoint

if __name__ == "__main__":
    state = {
        "weights": torch.arange(6.0).view(2, 3).to(torch.bfloat16),
        "optimizer": {
            "state": {0: {"step": torch.tensor(3.0)}},
            "param_groups": [{"lr": 0.5, "betas": (0.9, 0.99)}],
        },
        "epoch": 4,
    }
    checkpoint.save(state, checkpoint_id=Path(__file__).parent / "checkpoints" / "folder", no_dist=True)
