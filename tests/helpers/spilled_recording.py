"""Spill folders of recordings, without a recorder."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from mindtorch_prof.native_file import packed
from mindtorch_prof.settings import Settings
from mindtorch_prof.spill_file import SpillFolder
from mindtorch_prof.trace import OP


def spill(parent: Path, n_events: int) -> str:
    """Spill a recording of some ops, which was never stopped, to a folder in `parent`; its path."""
    facts = {
        "version": 1,
        "period_s": 0.25,
        "settings": packed(Settings(pid=5, thread=7)),
        "columns": ["key", "start", "end", "sequence"],
        "main_thread": 7,
        "origin_ns": 10**18,
        "begun_ns": 1,
    }
    folder = SpillFolder(parent)
    rows = np.array([(0, 1000 * n, 1000 * n + 500, -1) for n in range(1, n_events + 1)], np.int64)
    header = {"facts": facts, "natives": [[7, 70]], "keys": [[0, "aten::add", "", OP, 0, 0, True]]}
    folder.write(header, [(("rows", 7), rows.reshape(-1))])
    folder.close()
    return folder.path
