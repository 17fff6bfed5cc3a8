"""Names that packages import from torch beyond its documented ones. Expected values are torch's."""

from __future__ import annotations

import importlib.metadata
import os
import subprocess
import sys
from collections import OrderedDict, defaultdict, deque
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import mindtorch_v2 as torch
from mindtorch_v2.utils import _foreach_utils
from mindtorch_v2.utils import _pytree as pytree

METADATA = """
import importlib.metadata as metadata
import mindtorch_v2
with mindtorch_v2.as_torch():
    import torch
    assert metadata.version("torch") == torch.__version__, metadata.version("torch")
    assert metadata.metadata("torch")["Name"] == "torch"
    assert metadata.requires("torch") is None
    assert "torch" in {d.metadata["Name"] for d in metadata.distributions()}
    assert metadata.version("numpy")
    assert torch.torch is torch
try:
    metadata.version("torch")
except metadata.PackageNotFoundError:
    pass
else:
    raise AssertionError("still there")
"""


def test_the_metadata_of_torch_is_served_while_the_package_stands_in_for_it() -> None:
    environment = {**os.environ, "PYTHONPATH": str(Path(torch.__file__).parent.parent)}
    try:
        importlib.metadata.version("torch")
    except importlib.metadata.PackageNotFoundError:
        subprocess.run([sys.executable, "-c", METADATA], check=True, env=environment)
    else:
        pytest.skip("torch itself is installed")


class Point(NamedTuple):
    x: int
    y: int


@pytest.mark.parametrize(
    ("name", "container", "context", "keys"),
    [
        ("dict", {"b": 1, "a": 2}, ["b", "a"], "['b']['a']"),
        ("list", [1, 2], None, "[0][1]"),
        ("tuple", (1, 2), None, "[0][1]"),
        ("ordereddict", OrderedDict(a=1, b=2), ["a", "b"], "['a']['b']"),
        ("defaultdict", defaultdict(int, a=1, b=2), [int, ["a", "b"]], "['a']['b']"),
        ("deque", deque([1, 2], 3), 3, "[0][1]"),
        ("namedtuple", Point(1, 2), Point, ".x.y"),
    ],
)
def test_containers_flatten_and_rebuild_by_their_own_functions(
    name: str, container: Any, context: Any, keys: str
) -> None:
    flat = getattr(pytree, f"_{name}_flatten")(container)
    assert flat == ([1, 2], context)
    assert getattr(pytree, f"_{name}_unflatten")(*flat) == container
    with_keys = getattr(pytree, f"_{name}_flatten_with_keys")(container)
    assert "".join(str(key) for key, _ in with_keys[0]) == keys
    assert with_keys[1] == context


def test_the_call_forms_of_to_are_parsed() -> None:
    parse = torch._C._nn._parse_to
    cpu = torch.device("cpu")
    assert parse("cpu") == (cpu, None, False, None)
    assert parse(torch.float64) == (None, torch.float64, False, None)
    assert parse("cpu", torch.float32, True) == (cpu, torch.float32, True, None)
    assert parse(torch.ones(1)) == (cpu, torch.float32, False, None)
    assert parse(memory_format=torch.channels_last) == (None, None, False, torch.channels_last)


def test_tensors_are_grouped_by_device_and_dtype() -> None:
    a, b, c = torch.ones(2), torch.ones(3, dtype=torch.float64), torch.zeros(1)
    groups = _foreach_utils._group_tensors_by_device_and_dtype([[a, b, c], [c, b, a]], with_indices=True)
    cpu = torch.device("cpu")
    assert set(groups) == {(cpu, torch.float32), (cpu, torch.float64)}
    (first, second), places = groups[cpu, torch.float32]
    assert [first[0] is a, first[1] is c, second[0] is c, second[1] is a, places] == [*[True] * 4, [0, 2]]


def test_a_storage_maps_a_file(tmp_path: Path) -> None:
    file = tmp_path / "bytes"
    file.write_bytes(bytes(range(8)))
    private = torch.UntypedStorage.from_file(str(file), False, 8)
    assert (private.tolist(), private.filename, private.is_shared()) == (list(range(8)), None, True)
    private[0] = 9
    assert file.read_bytes()[0] == 0
    shared = torch.UntypedStorage.from_file(str(file), True, 8)
    shared[0] = 9
    assert (file.read_bytes()[0], shared.filename) == (9, str(file))
    view = torch.empty(0).set_(shared, 1, (1,), (1,))
    view.view(torch.uint8)[0] = 7
    assert file.read_bytes()[4] == 7
    with pytest.raises(RuntimeError, match="smaller than the required mapping size <100>"):
        torch.UntypedStorage.from_file(str(file), False, 100)


def test_small_names_do_what_torchs_do() -> None:
    def function() -> None: ...

    assert torch._dynamo.assume_constant_result(function) is function
    assert function._dynamo_marked_constant  # type: ignore[attr-defined]
    assert torch.jit._overload(function) is function
    assert torch.jit._overload_method(function) is function
    assert torch._C._TensorMeta is type(torch.Tensor)
    assert torch._C._get_tracing_state() is None
    assert torch._C._log_api_usage_once("event") is None
    assert torch._tensor_str._tensor_str(torch.ones(2, 2), 0) == "[[1., 1.],\n [1., 1.]]"
    assert torch.device in torch.serialization.MAP_LOCATION.__args__
