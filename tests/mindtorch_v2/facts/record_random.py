"""Record, with real torch, what the rows of random_rows.py give: `python record_random.py`."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

HERE = Path(__file__).parent


def main() -> None:
    """Write random.json.gz."""
    import torch
    from random_rows import evaluate, rows

    facts = {row: evaluate(row, torch) for row in rows()}
    text = json.dumps(facts, separators=(",", ":"))
    (HERE / "random.json.gz").write_bytes(gzip.compress(text.encode(), mtime=0))
    print(f"random.json.gz: {len(facts)} rows")


if __name__ == "__main__":
    main()
