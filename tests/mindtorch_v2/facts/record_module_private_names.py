"""Record, with real torch, the private names that nn.Module has: `python record_module_private_names.py`."""

from __future__ import annotations

import json
from pathlib import Path

import torch

names = sorted(n for n in vars(torch.nn.Module) if n.startswith("_") and not n.startswith("__"))
Path(__file__).with_name("module_private_names.json").write_text(json.dumps(names, indent=1) + "\n")
print(f"{len(names)} names")
