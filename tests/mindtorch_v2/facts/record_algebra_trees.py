"""Records what torch's profiler shows of the snippets in algebra_tree_rows.txt: run with a Python that has torch."""

import gzip
import json

import algebra_snippets
import profile_snippets
import torch

torch.set_num_threads(1)
found = {
    f"{setup} ;; {code}": profile_snippets.shown(torch, setup, code)
    for setup, code in algebra_snippets.rows()
}
path = profile_snippets.FOLDER / "algebra_trees.json.gz"
with open(path, "wb") as raw, gzip.GzipFile("", "wb", 9, raw, mtime=0) as out:
    out.write(json.dumps(found, separators=(",", ":")).encode())
