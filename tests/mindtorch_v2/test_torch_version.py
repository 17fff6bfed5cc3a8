"""Versions compare as numbers."""

from __future__ import annotations

import pytest

import mindtorch_v2 as torch


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
