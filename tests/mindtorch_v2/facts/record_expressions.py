"""Record, with real torch, what the rows of expressions give: `python record_expressions.py [views indexing join]`."""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path

HERE = Path(__file__).parent


def main(names: list[str]) -> None:
    """Write `<name>_facts.json.gz`, one result for each row."""
    import torch
    from expression_rows import rows, run

    for name in names or ["views", "indexing", "join"]:
        facts = [run(torch, setup, line) for setup, line in rows(name)]
        text = json.dumps(facts, separators=(",", ":")).encode()
        (HERE / f"{name}_facts.json.gz").write_bytes(gzip.compress(text, mtime=0))
        print(f"{name}: {len(facts)} rows")


if __name__ == "__main__":
    main(sys.argv[1:])
