"""Record, with real torch, what the programs print: `python record_programs.py` writes programs.json.gz."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

from program_runner import run_all

if __name__ == "__main__":
    printed = run_all()
    with (
        open(Path(__file__).parent / "programs.json.gz", "wb") as raw,
        gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0) as file,
    ):
        file.write(json.dumps(printed, indent=0).encode())
    print(f"{len(printed)} programs, {sum(map(len, printed.values()))} lines")
