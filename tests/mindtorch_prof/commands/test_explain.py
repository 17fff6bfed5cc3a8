"""`mindtorch-prof explain`: what a column means."""

from __future__ import annotations

import json
from collections.abc import Callable

from mindtorch_prof import cli


def test_explain_says_what_a_column_is_and_is_not(printed: Callable[..., str]) -> None:
    text = printed("explain", "self_cpu")
    assert text.startswith("self_cpu_time_total (Self CPU)\n  unit: microseconds\n")
    assert "notes: Not processor time" in text
    assert cli.main(["explain", "nothing_like_it"]) == 2
    assert len(json.loads(printed("explain", "--format", "json"))["rows"]) > 30
