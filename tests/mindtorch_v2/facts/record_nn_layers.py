"""Record, with real torch, what the rows of nn_*_rows.txt give: `python record_nn_layers.py`."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import torch

HERE = Path(__file__).parent


def main() -> None:
    """Write nn_layers.json.gz."""
    from nn_rows import FUNCTIONS, LAYERS, TEXTS, run_function, run_layer, run_text

    facts = {
        "torch": torch.__version__,
        "layers": {row: run_layer(torch, row) for row in LAYERS},
        "functions": {row: run_function(torch, row) for row in FUNCTIONS},
        "texts": {row: run_text(torch, row) for row in TEXTS},
    }
    text = json.dumps(facts, separators=(",", ":"))
    (HERE / "nn_layers.json.gz").write_bytes(gzip.compress(text.encode(), mtime=0))
    print(f"nn_layers: {len(LAYERS)} layers, {len(FUNCTIONS)} functions, {len(facts['texts'])} texts")


if __name__ == "__main__":
    main()
