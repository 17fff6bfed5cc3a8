"""Record, with real torch, the table of type promotion: `python record_promotion.py`."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

HERE = Path(__file__).parent


def main() -> None:
    """Write `promotion.json.gz`."""
    import torch
    from promotion_cases import table

    text = json.dumps(table(torch), separators=(",", ":")).encode()
    (HERE / "promotion.json.gz").write_bytes(gzip.compress(text, mtime=0))
    print(f"promotion: {len(text)} characters")


if __name__ == "__main__":
    main()
