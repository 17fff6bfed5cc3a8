"""Record torch's public names: `python record_torch_names.py` writes torch_names.json, a list for each namespace."""

from __future__ import annotations

import importlib
import inspect
import json
from pathlib import Path
from typing import Any

MODULES = (
    "torch.special",
    "torch.sparse",
    "torch.signal.windows",
    "torch.functional",
    "torch.fft",
    "torch.linalg",
)


def of_torch(torch: Any) -> list[str]:
    """Functions, dtypes, layouts and classes at the top level, and its submodules' names are left out."""
    names = []
    for name in dir(torch):
        value = getattr(torch, name)
        home = str(getattr(value, "__module__", None) or "torch")
        known = type(value).__name__ in ("dtype", "memory_format", "layout", "tensortype")
        if not name.startswith("_") and (known or (inspect.isroutine(value) and home.startswith("torch"))):
            names.append(name)
    return names


def main() -> None:
    """Write torch_names.json."""
    import torch

    tensor = [n for n in dir(torch.Tensor) if not n.startswith("_")]
    facts = {"torch": of_torch(torch), "torch.Tensor": tensor}
    for path in MODULES:
        module = importlib.import_module(path)
        routines = [n for n in dir(module) if inspect.isroutine(getattr(module, n))]
        public = [n for n in getattr(module, "__all__", routines) if n != "Tensor"]
        facts[path] = sorted(n for n in public if not n.startswith("_") and hasattr(module, n))
    target = Path(__file__).parent / "torch_names.json"
    target.write_text(json.dumps(facts, indent=0) + "\n")
    print({path: len(names) for path, names in facts.items()})


if __name__ == "__main__":
    main()
