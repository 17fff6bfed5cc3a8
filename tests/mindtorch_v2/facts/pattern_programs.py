"""Programs with habits that cost time, and how often each pattern of torch.profiler._pattern_matcher matches in them."""

from __future__ import annotations

import contextlib
import io
import json
import re
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
    "bfloat16": "t.mm(t.ones(8, 9, dtype=t.bfloat16), t.ones(9, 8, dtype=t.bfloat16))\n"
    "t.mm(t.ones(8, 16, dtype=t.bfloat16), t.ones(16, 8, dtype=t.bfloat16))",
    "half in a layer": "t.nn.Linear(7, 8).to(t.bfloat16)(t.ones(8, 7, dtype=t.bfloat16))",
    "half, a batch": "t.matmul(t.ones(2, 8, 6, dtype=half), t.ones(2, 6, 8, dtype=half))\nt.ones(6, dtype=half) @ t.ones(6, dtype=half)",
    "adamw, explicitly one by one": "step(t.optim.AdamW(dense.parameters(), foreach=False))",
    "fused": "step(t.optim.Adam(dense.parameters(), fused=True))",
    "other optimizers": "step(t.optim.RMSprop(dense.parameters()))\nstep(t.optim.Adagrad(dense.parameters()))",
    "two optimizers": "step(sgd)\nstep(adam)",
    "nothing to step": "sgd.zero_grad()\nsgd.step()",
    "nothing to zero": "dense.zero_grad()\nsgd.zero_grad(set_to_none=False)",
    "zeroed by hand": "dense(t.ones(2, 10)).sum().backward()\nfor p in dense.parameters(): p.grad.zero_()",
    "zeroed all at once": "adam = t.optim.Adam(dense.parameters(), foreach=True)\nstep(adam, False)",
    "a module's forward": "t.nn.Sequential(t.nn.Sequential(t.nn.Conv2d(3, 3, 1)), t.nn.BatchNorm2d(3))(images)",
    "bias in a nest": "t.nn.Sequential(t.nn.Sequential(biased))(images)",
    "bias, called by hand": "biased[1](biased[0](images))",
    "bias as a function": "t.nn.functional.conv2d(images, t.ones(3, 3, 1, 1), t.ones(3))\nbiased[1](images)",
    "one dimension": "t.nn.Sequential(t.nn.Conv1d(3, 3, 1), t.nn.BatchNorm1d(3))(t.ones(2, 3, 4))",
    "elements of rows": "for i in range(12): x[i][0]",
    "unbound": "for row in x.unbind(0): row.sum()",
    "rows in a function": "def f(i): return x[i].exp()\nfor i in range(12): f(i)",
    "rows and sums of columns": "for i in range(12): x[i].sum(0)",
    "loading half": "for batch in loader: break",
    "an iterator": "it = iter(loader)\nnext(it)\nnext(it)",
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
    return {
        "counts": counts,
        "words": words,
        "report": {name: report(library, matcher, name) for name in REPORTS},
    }


# each habit at one place: torch tells of the line in which a call was made, here it is the line in which the function around it begins
REPORTS = {
    "nothing": "x.add(x)",
    "adam": "for _ in range(3): step(adam)",
    "zeroed": "for _ in range(2): step(sgd, False)",
    "loading": "for _ in range(2): [batch.sum() for batch in loader]",
    "bias": "for _ in range(2): biased(images)",
    "half": "for _ in range(2): t.mm(t.ones(8, 8, dtype=half), t.ones(8, 7, dtype=half))",
    "everything": PROGRAMS["everything"],
}


def report(library: ModuleType, matcher: ModuleType, name: str) -> list[Any]:
    """The printed report and the JSON of a program, without lines; and without what torch says of TF32 where there is no device."""
    prof = run(library, REPORTS[name])
    out = io.StringIO()
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(out):
        matcher.report_all_anti_patterns(prof, json_report_dir=folder)
        files = {path.name: json.loads(path.read_text()) for path in Path(folder).iterdir()}
    text = re.sub(r"(\[Source Code Location\] \S+?):\d+", r"\1:LINE", out.getvalue())
    lines = [line for line in text.split("\n") if "TF32" not in line and "FP32" not in line]
    for rows in files.values():
        for place in list(rows):
            rows[place] = [row for row in rows[place] if "FP32" not in row["name"]]
            for row in rows[place]:
                row["line_number"] = type(row["line_number"]).__name__
            if not rows[place]:
                del rows[place]
    return [lines, files]
