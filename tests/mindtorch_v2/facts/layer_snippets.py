"""The snippets whose profiles are compared in test_layer_trees.py: set-up and profiled code of each line."""

from __future__ import annotations

from pathlib import Path


def rows() -> list[tuple[str, str]]:
    """(set-up, profiled code) of each line of layer_tree_rows.txt."""
    lines = (Path(__file__).parent / "layer_tree_rows.txt").read_text().splitlines()
    pairs = [line.split(";;") for line in lines if ";;" in line and not line.startswith("#")]
    return [(setup.strip(), code.strip()) for setup, code in pairs]
