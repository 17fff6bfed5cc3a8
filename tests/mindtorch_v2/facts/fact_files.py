"""The files in this folder that hold what torch was recorded to give: a file's name in, its contents out."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

FACTS = Path(__file__).parent


def read(name: str) -> Any:
    """What `<name>` holds; it ends in .json or .json.gz."""
    data = (FACTS / name).read_bytes()
    return json.loads(gzip.decompress(data) if name.endswith(".gz") else data)
