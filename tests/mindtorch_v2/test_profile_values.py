"""What a profile shows of ordinary calls with the values that went in. Recorded from torch."""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path

import pytest

import mindtorch_v2 as torch

FACTS = Path(__file__).parent / "facts"
sys.path.insert(0, str(FACTS))

import profile_values  # noqa: E402

RECORDED = json.loads(gzip.decompress((FACTS / "profile_values.json.gz").read_bytes()))


@pytest.mark.parametrize("line", RECORDED, ids=lambda line: line[:90])
def test_a_profile_shows_the_values_torch_shows(line: str) -> None:
    setup, code = line.split(" ;; ")
    assert profile_values.shown(torch, setup, code) == RECORDED[line]


def test_every_snippet_is_recorded() -> None:
    assert [f"{setup} ;; {code}" for setup, code in profile_values.rows()] == list(RECORDED)
