"""torch's value types: stand-ins until a package registers its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import mindtorch_v2 as torch
from mindtorch_prof.torch_api import torch_types
from mindtorch_prof.torch_api.torch_types import TorchTypes

SOURCE = Path(__file__).parents[3] / "src"


@pytest.fixture(autouse=True)
def registered() -> Iterator[None]:
    """The package that has registered its types has them again after a test."""
    types = torch_types._types
    yield
    torch_types.register(types)


def test_the_library_gives_its_own_types() -> None:
    assert torch_types.dtype("c10::Half") is torch.float16
    assert torch_types.layout(sparse=True) is torch.sparse_coo
    assert torch_types.device("cpu") == torch.device("cpu")


def test_a_package_that_registers_its_types_is_asked_from_then_on() -> None:
    torch_types.dtype("float")
    torch_types.register(TorchTypes(dtype=str.upper, layout=str.upper, device=str.upper))
    assert torch_types.dtype("float") == "FLOAT32"
    assert torch_types.layout(sparse=False) == "STRIDED"
    assert torch_types.device("cuda:1") == "CUDA:1"


def test_a_type_that_the_trace_does_not_name_is_none() -> None:
    assert torch_types.dtype("a type of tomorrow") is None


def test_without_a_package_types_are_names_with_torchs_text() -> None:
    program = """
from mindtorch_prof.torch_api.torch_types import device, dtype, layout
print(dtype("float"), layout(sparse=False), device("cpu"))
"""
    environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout == "torch.float32 torch.strided device(type='cpu')\n"
