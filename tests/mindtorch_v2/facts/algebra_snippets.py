"""Snippets of linear algebra, Fourier transforms, order, statistics and sparse tensors: their rows, and what they leave behind."""

from __future__ import annotations

from typing import Any

import numpy as np
import profile_snippets


def rows() -> list[tuple[str, str]]:
    """(set-up, profiled code) of each line."""
    lines = (profile_snippets.FOLDER / "algebra_tree_rows.txt").read_text().splitlines()
    pairs = [line.split(";;") for line in lines if ";;" in line and not line.startswith("#")]
    return [(setup.strip(), code.strip()) for setup, code in pairs]


def _arrays(torch: Any, value: Any) -> list[np.ndarray]:
    if isinstance(value, torch.Tensor):
        if value.is_sparse:
            return [value._places.copy(), value._elements.copy()]
        return [value._array.copy(), np.array(value.stride())]
    if isinstance(value, (tuple, list)):
        return [array for item in value for array in _arrays(torch, item)]
    return []


def left_behind(torch: Any, setup: str, code: str, recorded: bool) -> list[np.ndarray]:
    """Values and strides of all that a snippet makes, and of the gradients it leaves."""

    def T(*shape: int, rg: bool = False, seed: int = 0) -> Any:  # far from singular, unlike those of profiles
        values = np.random.default_rng(seed).uniform(-1, 1, shape).astype(np.float32)
        return torch.tensor(values, requires_grad=rg)

    names = {**profile_snippets._names(torch), "T": T}
    torch.manual_seed(0)
    exec(setup, names)
    made: list[np.ndarray] = []

    def run() -> None:
        for statement in code.split(";"):
            try:
                expression = compile(statement.strip(), "snippet", "eval")
            except SyntaxError:
                exec(statement.strip(), names)
            else:
                made.extend(_arrays(torch, eval(expression, names)))

    if recorded:
        with torch.profiler.profile(record_shapes=True, profile_memory=True):
            run()
    else:
        run()
    for _, value in sorted(names.items()):
        tensors = list(value.parameters()) if isinstance(value, torch.nn.Module) else [value]
        for tensor in tensors:
            if isinstance(tensor, torch.Tensor):
                made.extend(_arrays(torch, tensor))
                made.extend(_arrays(torch, tensor.grad if tensor.is_leaf else None))
    return made
