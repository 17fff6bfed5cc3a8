"""Record what torch prints for the tables of table_cases.py: `python record_profiler_tables.py`, with real torch."""

from __future__ import annotations

import gzip
import json
import warnings
from pathlib import Path

import torch
from table_cases import make_cases, text
from torch.autograd import profiler_util

FACTS = Path(__file__).with_name("profiler_tables.json.gz")

if __name__ == "__main__":
    warnings.simplefilter("ignore")
    texts = [text(profiler_util, torch.autograd.DeviceType, case) for case in make_cases()]
    with gzip.GzipFile(FACTS, "wb", mtime=0) as file:
        file.write(json.dumps({"torch": torch.__version__, "texts": texts}).encode())
    print(
        f"{FACTS.name}: {len(texts)} tables, {sum(t[:30].find('Error:') > 0 for t in texts)} of them errors"
    )
