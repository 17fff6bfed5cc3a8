"""Old tensor types, questions, segments, settings and `torch.ops` behave as torch's.

The facts are recorded with `python facts/record_expressions.py top_level`.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mindtorch_v2 as torch

sys.path.insert(0, str(Path(__file__).parent / "facts"))
rows = importlib.import_module("recorded_rows")


@pytest.mark.parametrize(("setup", "line", "fact"), rows.recorded("top_level"))
def test_names_at_the_top_give_what_torch_gives(setup: str, line: str, fact: Any) -> None:
    rows.check(torch, setup, line, fact)


def test_an_old_tensor_type_cannot_be_inherited_from() -> None:
    with pytest.raises(TypeError, match=r"type 'torch.FloatTensor' is not an acceptable base type"):

        class Mine(torch.FloatTensor): ...


def test_the_deterministic_switches_tell_what_was_set() -> None:
    try:
        torch.use_deterministic_algorithms(True, warn_only=True)
        assert torch.are_deterministic_algorithms_enabled()
        assert torch.is_deterministic_algorithms_warn_only_enabled()
        assert torch.get_deterministic_debug_mode() == 1
        torch.set_deterministic_debug_mode("error")
        assert torch.get_deterministic_debug_mode() == 2
        with pytest.raises(RuntimeError, match="expected one of `default`, `warn`, `error`, but got x"):
            torch.set_deterministic_debug_mode("x")
    finally:
        torch.use_deterministic_algorithms(False)
    assert torch.get_deterministic_debug_mode() == 0


def test_denormals_are_never_flushed_and_the_switch_says_so() -> None:
    assert torch.set_flush_denormal(True) is False
    assert torch.tensor([1e-323], dtype=torch.float64).item() > 0


def test_set_default_tensor_type_warns_and_sets_the_default_dtype() -> None:
    with pytest.warns(UserWarning, match=r"torch.set_default_tensor_type\(\) is deprecated"):
        torch.set_default_tensor_type(torch.DoubleTensor)
    assert torch.get_default_dtype() is torch.float64


def test_a_subclass_shares_memory_and_history() -> None:
    class Mine(torch.Tensor): ...

    x = torch.ones(3, requires_grad=True)
    made = (x * 2).as_subclass(Mine)
    assert type(made) is Mine
    made.sum().backward()
    assert x.grad.tolist() == [2.0, 2.0, 2.0]
    plain = torch.ones(3)
    plain.as_subclass(Mine).detach().zero_()
    assert plain.sum() == 0


def test_a_shared_file_takes_what_its_tensor_is_given(tmp_path: Path) -> None:
    path = tmp_path / "numbers"
    path.write_bytes(np.arange(4, dtype=np.int32).tobytes())
    private = torch.from_file(str(path), size=4, dtype=torch.int32)
    private[0] = 9
    shared = torch.from_file(str(path), shared=True, size=2, dtype=torch.int32)
    shared[1] = 7
    assert np.frombuffer(path.read_bytes(), np.int32).tolist() == [0, 7, 2, 3]
    made = torch.from_file(str(tmp_path / "new"), shared=True, size=2)
    assert made.tolist() == [0.0, 0.0]
    with pytest.raises(RuntimeError, match="is smaller than the required mapping size"):
        torch.from_file(str(path), size=8, dtype=torch.int32)


def test_versions_compare_as_numbers_with_texts_and_tuples() -> None:
    version = torch.torch_version.TorchVersion("2.13.0+x")
    assert isinstance(torch.__version__, torch.torch_version.TorchVersion)
    assert torch.__version__.startswith("2.13.0+mindtorch.")
    assert torch.__version__.endswith(torch.version.__version__)
    assert version > "2.9"
    assert version >= (2, 13)
    assert version < "2.14"
    assert version < (3,)
    assert version != "2.13.0"
    assert version > "2.13.0rc1"
    assert not version > "parrot"
    with pytest.raises(TypeError):
        version > 2.5  # noqa: B015  (comparing raises)


def test_functional_has_the_same_objects_as_the_top_level() -> None:
    for name in torch.functional.__all__:
        assert getattr(torch.functional, name) is getattr(torch, name), name
