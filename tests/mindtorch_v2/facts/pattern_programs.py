"""Programs with habits that cost time, and how often each pattern of torch.profiler._pattern_matcher matches in them."""

from __future__ import annotations

import contextlib
import io
import json
import tempfile
from pathlib import Path
from types import ModuleType
from typing import Any

SETUP = """
t.manual_seed(0)
x = t.ones(50, 50)
dense = t.nn.Linear(10, 10)
images = t.ones(1, 3, 8, 8)
biased = t.nn.Sequential(t.nn.Conv2d(3, 3, 3, 1, 1), t.nn.BatchNorm2d(3))
unbiased = t.nn.Sequential(t.nn.Conv2d(3, 3, 3, 1, 1, bias=False), t.nn.BatchNorm2d(3))
apart = t.nn.Sequential(t.nn.Conv2d(3, 3, 3), t.nn.ReLU(), t.nn.BatchNorm2d(3))
adam = t.optim.Adam(dense.parameters())
sgd = t.optim.SGD(dense.parameters(), lr=0.1)
loader = t.utils.data.DataLoader(t.ones(6, 10), batch_size=2)
half = t.float16
def step(optimizer, to_none=True):
    dense(t.ones(2, 10)).sum().backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=to_none)
"""

PROGRAMS = {
    "nothing": "x.add(x)",
    "rows": "for i in range(30): x[i]",
    "nine rows": "for i in range(9): x[i]",
    "ten rows": "for i in range(10): x[i]",
    "rows and sums": "for i in range(12): x[i].sum()",
    "two rows a step": "for i in range(20): x[i] + x[i]",
    "elements": "for i in range(20): x[i, i]",
    "columns": "for i in range(20): x[:, i]",
    "two loops alike": "for i in range(6): x[i].sum()\nfor i in range(6): x[i].sum()",
    "iteration": "for row in x[:12]: row.sum()",
    "steps that differ": "for i in range(12):\n    x[i].sum()\n    x.relu() if i % 2 else x.exp()",
    "slices": "x[1:5]\nx[2:6]\nx.select(0, 1)",
    "adam": "step(adam)\nstep(adam)",
    "sgd": "step(sgd)",
    "all at once": "step(t.optim.Adam(dense.parameters(), foreach=True))",
    "zeroed": "step(sgd, False)\nstep(sgd, False)",
    "zeroed by the module": "dense(t.ones(2, 10)).sum().backward()\ndense.zero_grad(set_to_none=False)",
    "dropped": "dense(t.ones(2, 10)).sum().backward()\ndense.zero_grad()",
    "loading": "for batch in loader: batch.sum()",
    "loading twice": "for _ in range(2):\n    for batch in loader: batch.sum()",
    "bias": "biased(images)\nbiased(images)",
    "no bias": "unbiased(images)",
    "bias elsewhere": "apart(images)",
    "half": "t.mm(t.ones(8, 8, dtype=half), t.ones(8, 7, dtype=half))\nt.mm(t.ones(8, 8, dtype=half), t.ones(8, 8, dtype=half))",
    "half, others": "t.bmm(t.ones(2, 3, 8, dtype=half), t.ones(2, 8, 8, dtype=half))\n"
    "t.addmm(t.ones(5, dtype=half), t.ones(8, 8, dtype=half), t.ones(8, 5, dtype=half))\nt.mm(x, x)",
    "everything": "for i in range(12): x[i]\nfor batch in loader: step(adam, False)\nbiased(images)",
}

PATTERNS = (
    "ExtraCUDACopyPattern ForLoopIndexingPattern OptimizerSingleTensorPattern SynchronizedDataLoaderPattern "
    "GradNotSetToNonePattern Conv2dBiasFollowedByBatchNorm2dPattern MatMulDimInFP16Pattern"
).split()


def run(library: ModuleType, program: str, **settings: Any) -> Any:
    """The profile of a program."""
    space: dict[str, Any] = {"t": library}
    exec(SETUP, space)
    with library.profiler.profile(**{"with_stack": True, "record_shapes": True, **settings}) as prof:
        exec(program, space)
    return prof


def observe(library: ModuleType, matcher: ModuleType) -> dict[str, Any]:
    """All facts."""
    counts: dict[str, Any] = {}
    for name, program in PROGRAMS.items():
        prof = run(library, program)
        counts[name] = {kind: len(getattr(matcher, kind)(prof).matched_events()) for kind in PATTERNS}
        counts[name]["select"] = len(matcher.NamePattern(prof, "aten::select").matched_events())
    words = {}
    for kind in PATTERNS:
        pattern = getattr(matcher, kind)(prof)
        words[kind] = [pattern.name, pattern.description, pattern.url, pattern.summary([1, 2])]
    return {"counts": counts, "words": words, "report": report(library, matcher)}


def report(library: ModuleType, matcher: ModuleType) -> list[Any]:
    """The printed report without places, and the JSON's keys and texts, of a program that does everything wrong."""
    prof = run(library, PROGRAMS["everything"])
    out = io.StringIO()
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(out):
        matcher.report_all_anti_patterns(prof, json_report_dir=folder)
        files = sorted(path.name for path in Path(folder).iterdir())
        rows = json.loads((Path(folder) / "torchtidy_report.json").read_text())
    lines = [
        line
        for line in out.getvalue().split("\n")
        if "Location" not in line and "TF32" not in line and "FP32" not in line
    ]
    texts = sorted(
        {
            (row["name"], row["message"])
            for found in rows.values()
            for row in found
            if "FP32" not in row["name"]
        }
    )
    keys = sorted({key for found in rows.values() for row in found for key in row})
    return [sorted(set(lines)), files, [list(pair) for pair in texts], keys]
