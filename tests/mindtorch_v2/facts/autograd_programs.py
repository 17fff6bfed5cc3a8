"""Runs the programs `autograd_*_program.txt`: a torch-like package in, what each labelled step shows out.

A program calls `t(function, label)`, or decorates functions of its own with `@case`. What a step returns, raises and warns
becomes text in which the package is called `torch` and numbers have eight digits.
"""

from __future__ import annotations

import importlib
import re
import warnings
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
PROGRAMS = ("api", "function", "inplace", "graph", "functional", "gradcheck")
ONCE = "create_graph=True will create a reference cycle"  # a warning that torch gives once in a process


class Steps:
    """The steps of one program and what they show."""

    def __init__(self, package: str) -> None:
        self.package = package
        self.torch: Any = importlib.import_module(package)
        self.shown: dict[str, str] = {}

    def show(self, value: Any) -> str:
        """A value as text."""
        if isinstance(value, self.torch.Tensor):
            node = None if value.grad_fn is None else value.grad_fn.name()
            return f"{value.detach().tolist()} {value.dtype} {value.requires_grad} {node}"
        if isinstance(value, (tuple, list)):
            return f"{type(value).__name__}({', '.join(map(self.show, value))})"
        if isinstance(value, dict):
            return "{" + ", ".join(f"{k}: {self.show(v)}" for k, v in value.items()) + "}"
        return repr(value)

    def step(self, first: Any, second: Any = None) -> None:
        """Run one function and keep what it shows, under a label of its own."""
        function, label = (second, first) if isinstance(first, str) else (first, second or first.__name__)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                text = self.show(function())
            except Exception as error:
                text = f"{type(error).__name__}: {error}"
        said = [f"{w.category.__name__}: {w.message}" for w in caught if w.category is not RuntimeWarning]
        lines = [text, *[line for line in said if ONCE not in line and "torch.jit" not in line]]
        while label in self.shown:
            label += "'"
        self.shown[label] = self._plain("\n".join(lines))

    def case(self, function: Any) -> Any:
        """A step as a decorated function."""
        self.step(function)
        return function

    def leaf(self, *values: float) -> Any:
        """A leaf of doubles."""
        return self.torch.tensor(values, dtype=self.torch.float64, requires_grad=True)

    def _plain(self, text: str) -> str:
        text = text.replace(self.package, "torch")
        text = re.sub(r" ?\(Triggered internally at [^)]*\)", "", re.sub(r"0x[0-9a-f]+", "0x", text))
        return re.sub(r"-?\d+\.\d+(e[-+]\d+)?", lambda found: f"{float(found[0]) + 0.0:.8g}", text)


def run(name: str, package: str) -> dict[str, str]:
    """What the steps of program `name` show with `package`."""
    text = (HERE / f"autograd_{name}_program.txt").read_text()
    text = re.sub(r"^from torch\b", f"from {package}", text, flags=re.MULTILINE)
    steps = Steps(package)
    steps.torch.manual_seed(0)
    space = {
        "torch": steps.torch, "D": steps.torch.float64, "t": steps.step, "case": steps.case, "leaf": steps.leaf, "show": steps.show,
    }  # fmt: skip
    exec(compile(text, name, "exec"), space)
    return steps.shown
