"""Record, with real torch, what it shows for the case modules here: `python record_cases.py [name ...]`."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path

HERE = Path(__file__).parent


def main(names: list[str]) -> None:
    """Write `<name>.json`, the lines of each case, for each module of cases."""
    from case_runner import cases, run

    for name in names or sorted(p.stem for p in HERE.glob("*_cases.py") if p != Path(__file__)):
        facts = {
            case: run(function, "torch") for case, function in cases(importlib.import_module(name)).items()
        }
        (HERE / f"{name}.json").write_text(json.dumps(facts, indent=1) + "\n")
        print(f"{name}: {len(facts)} cases")


if __name__ == "__main__":
    main(sys.argv[1:])
