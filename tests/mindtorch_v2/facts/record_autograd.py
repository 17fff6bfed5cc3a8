"""Record, with real torch, what the autograd programs here show: `python record_autograd.py`."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

HERE = Path(__file__).parent


def main() -> None:
    """Write what each step of each program shows."""
    from autograd_programs import PROGRAMS, run

    facts = {name: run(name, "torch") for name in PROGRAMS}
    data = json.dumps(facts, indent=0).encode()
    (HERE / "autograd.json.gz").write_bytes(gzip.compress(data, mtime=0))
    print({name: len(steps) for name, steps in facts.items()})


if __name__ == "__main__":
    main()
