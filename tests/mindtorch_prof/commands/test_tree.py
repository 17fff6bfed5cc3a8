"""`mindtorch-prof tree`: how deep, which calls, in which order."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any


def rows(text: str) -> list[dict[str, Any]]:
    return json.loads(text)["rows"]


def test_deeper_levels_are_shown_when_asked_for(three_steps_path: str, printed: Callable[..., str]) -> None:
    words = ("tree", three_steps_path, "--format", "json")
    assert max(row["depth"] for row in rows(printed(*words))) == 3
    assert max(row["depth"] for row in rows(printed(*words, "--depth", "2"))) == 1
    assert max(row["depth"] for row in rows(printed(*words, "--depth", "0"))) == 5


def test_ops_alone_leaves_modules_out(three_steps_path: str, printed: Callable[..., str]) -> None:
    words = ("tree", three_steps_path, "--depth", "0")
    assert "nn.Module: Linear_0" in printed(*words)
    assert "nn.Module: Linear_0" not in printed(*words, "--ops")


def test_the_longest_comes_first_or_the_earliest(three_steps_path: str, printed: Callable[..., str]) -> None:
    words = ("tree", three_steps_path, "--ops", "--depth", "4", "--format", "json")
    in_linear = [row["name"] for row in rows(printed(*words)) if row["name"] in ("aten::t", "aten::addmm")]
    by_time = [
        row["name"] for row in rows(printed(*words, "--by-time")) if row["name"] in ("aten::t", "aten::addmm")
    ]
    assert (in_linear, by_time) == (["aten::addmm", "aten::t"], ["aten::t", "aten::addmm"])
