"""Run the programs beside this directory one after the other: `python program_runner.py` prints {name: lines} as JSON.

`torch` is whatever an import finds: real torch when facts are recorded, this package after `--as-torch`. A program that
ends with an exception gives its output so far and the exception's text as the last line.
"""

from __future__ import annotations

import contextlib
import io
import json
import runpy
import sys
import warnings
from pathlib import Path

PROGRAMS = Path(__file__).parent.parent / "programs"


def run_all() -> dict[str, list[str]]:
    """What each program prints; settings that a program changes are put back after it."""
    import torch

    printed = {}
    warnings.simplefilter("ignore")
    for path in sorted(PROGRAMS.glob("*.py")):
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            try:
                runpy.run_path(str(path), run_name="__main__")
            except Exception as error:
                print(f"{type(error).__name__}: {error}")
        torch.set_default_dtype(torch.float32)
        torch.set_printoptions(profile="default")
        printed[path.stem] = out.getvalue().splitlines()
    return printed


if __name__ == "__main__":
    if "--as-torch" in sys.argv:
        import mindtorch_v2

        mindtorch_v2.as_torch()
    print(json.dumps(run_all()))
