"""Whole programs, as people write them with `import torch`, print here what they print with real torch."""

from __future__ import annotations

import gzip
import json
import math
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import mindtorch_v2

HERE = Path(__file__).parent
FACTS: dict[str, list[str]] = json.loads(gzip.decompress((HERE / "facts" / "programs.json.gz").read_bytes()))
NUMBER = re.compile(r"[-+]?(?:\d+\.\d*|\.\d+|\d+)(?:[eE][-+]?\d+)?")
TOLERANCE = 2e-4


@pytest.fixture(scope="module")
def printed() -> dict[str, list[str]]:
    """What the programs print when this package is their torch: one process runs them all."""
    package = str(Path(mindtorch_v2.__file__).parent.parent)
    path = os.pathsep.join([package, *filter(None, [os.environ.get("PYTHONPATH")])])
    ran = subprocess.run(
        [sys.executable, str(HERE / "facts" / "program_runner.py"), "--as-torch"],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": path},
        check=False,
        timeout=120,
    )
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)


def words(line: str) -> str:
    """The line without its numbers, their signs and the spaces that their widths ask for."""
    return re.sub(r"[\s-]+", "", NUMBER.sub("#", line))


def agree(expected: str, found: str) -> bool:
    """Whether two lines say the same, numbers compared as numbers."""
    if expected == found:
        return True
    wanted, given = (list(map(float, NUMBER.findall(line))) for line in (expected, found))
    return (
        words(expected) == words(found)
        and len(wanted) == len(given)
        and all(math.isclose(a, b, rel_tol=TOLERANCE, abs_tol=TOLERANCE) for a, b in zip(wanted, given))
    )


@pytest.mark.parametrize("name", sorted(FACTS))
def test_a_program_prints_what_it_prints_with_torch(name: str, printed: dict[str, list[str]]) -> None:
    expected, found = FACTS[name], printed[name]
    for number, (a, b) in enumerate(zip(expected, found), 1):
        assert agree(a, b), f"line {number}:\n  torch: {a}\n  here:  {b}"
    assert len(found) == len(expected), f"ends with: {found[-3:]}"


def test_every_program_has_a_recorded_output() -> None:
    assert sorted(FACTS) == sorted(path.stem for path in (HERE / "programs").glob("*.py"))


@pytest.mark.parametrize("kind", [float, int, bool, complex])
def test_python_number_types_name_dtypes(kind: type) -> None:
    torch = mindtorch_v2
    expected = {float: torch.float64, int: torch.int64, bool: torch.bool, complex: torch.complex128}[kind]
    x = torch.ones(2)
    made = [
        torch.zeros(2, dtype=kind),
        torch.empty((2,), dtype=kind),
        torch.full((2,), 1, dtype=kind),
        torch.tensor([1, 0], dtype=kind),
        torch.as_tensor([1, 0], dtype=kind),
        torch.ones_like(x, dtype=kind),
        x.new_zeros(2, dtype=kind),
        x.to(kind),
        x.sum(dtype=kind),
        torch.eye(2, dtype=kind),
    ]
    assert [t.dtype for t in made] == [expected] * len(made)


def test_a_dtype_that_is_none_is_refused_by_name() -> None:
    for function, call in {
        "zeros": lambda: mindtorch_v2.zeros(2, dtype="float32"),
        "tensor": lambda: mindtorch_v2.tensor([1], dtype="float32"),
    }.items():
        with pytest.raises(
            TypeError, match=rf"{function}\(\): argument 'dtype' must be torch.dtype, not str"
        ):
            call()


def test_a_device_block_decides_where_tensors_are_made() -> None:
    torch = mindtorch_v2
    with torch.device("meta"):
        made = [torch.ones(2), torch.linspace(0, 1, 3), torch.arange(3), torch.rand(2), torch.tensor([1])]
        layer = torch.nn.Linear(2, 2)
    assert {t.device.type for t in [*made, layer.weight]} == {"meta"}
    assert torch.ones(1).device.type == "cpu"
