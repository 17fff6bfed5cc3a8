"""What the autograd programs show, here and as recorded from torch; each program runs once in a test session."""

from __future__ import annotations

import functools
import gzip
import json

from autograd_programs import HERE, run

RECORDED = json.loads(gzip.decompress((HERE / "autograd.json.gz").read_bytes()))


@functools.cache
def shown(program: str) -> dict[str, str]:
    """The steps of a program with this package."""
    return run(program, "mindtorch_v2")


def steps(*programs: str) -> list[tuple[str, str]]:
    """The (program, label) pairs to compare."""
    return [(program, label) for program in programs for label in RECORDED[program]]
