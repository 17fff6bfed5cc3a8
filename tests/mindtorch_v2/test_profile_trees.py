"""What a profile shows of ordinary calls: names, nesting, shapes, sequence numbers. Recorded from torch."""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path

import pytest

import mindtorch_v2 as torch

FACTS = Path(__file__).parent / "facts"
sys.path.insert(0, str(FACTS))

import profile_snippets  # noqa: E402

RECORDED = json.loads(gzip.decompress((FACTS / "profile_trees.json.gz").read_bytes()))


@pytest.mark.parametrize("line", RECORDED, ids=lambda line: line[:90])
def test_a_profile_shows_what_torch_shows(line: str) -> None:
    setup, code = line.split(" ;; ")
    assert profile_snippets.shown(torch, setup, code) == RECORDED[line]


def test_every_snippet_is_recorded() -> None:
    assert [f"{setup} ;; {code}" for setup, code in profile_snippets.rows()] == list(RECORDED)
