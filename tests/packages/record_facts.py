"""Record the numbers of workloads on torch in facts: `FOLDER/torch/bin/python record_facts.py [NAME ...]`."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent


def main(names: list[str]) -> None:
    """Run each workload in a process of its own and write what it returns."""
    sys.path.insert(0, str(HERE))
    from workloads import all_workloads

    for name in names or sorted(all_workloads()):
        command = [sys.executable, str(HERE / "run_workload.py"), name, "torch"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        result = next((line for line in done.stdout.splitlines() if line.startswith("RESULT ")), None)
        if result is None:
            print(f"{name}: {done.stderr.strip().splitlines()[-1:]}")
        else:
            (HERE / "facts" / f"{name}.json").write_text(
                json.dumps(json.loads(result.removeprefix("RESULT ")), indent=0) + "\n", encoding="utf-8"
            )


if __name__ == "__main__":
    main(sys.argv[1:])
