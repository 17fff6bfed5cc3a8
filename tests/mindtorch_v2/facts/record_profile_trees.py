"""Record what torch's profiler shows of the snippets in the row files: `python record_profile_trees.py [name ...]`, with real torch."""

from __future__ import annotations

import gzip
import json
import sys

import profile_snippets
import torch
import torch.utils.checkpoint


def main(names: list[str]) -> None:
    """Write the facts of each row file, or of those named."""
    torch.set_num_threads(1)
    files = {**profile_snippets.FILES, **profile_snippets.FILES_IN_FULL}
    for name in names or files:
        facts = {
            f"{setup} ;; {code}": profile_snippets.profiled(torch, setup, code)
            for setup, code in profile_snippets.rows(name)
        }
        text = json.dumps(facts, separators=(",", ":")).encode()
        (profile_snippets.FOLDER / files[name]).write_bytes(gzip.compress(text, 9, mtime=0))
        print(f"{name}: {len(facts)} rows")


if __name__ == "__main__":
    main(sys.argv[1:])
