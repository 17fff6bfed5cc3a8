"""Records what torch's profiler shows, with values, for the lines of profile_value_rows.txt. Run where torch is installed."""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path

FACTS = Path(__file__).parent
sys.path.insert(0, str(FACTS))

import profile_values  # noqa: E402


def main() -> None:
    import torch

    torch.set_num_threads(1)
    found = {
        f"{setup} ;; {code}": profile_values.shown(torch, setup, code)
        for setup, code in profile_values.rows()
    }
    with gzip.GzipFile(FACTS / "profile_values.json.gz", "wb", mtime=0) as file:
        file.write(json.dumps(found, indent=0).encode())


if __name__ == "__main__":
    main()
