"""torch.distributed: there is one process."""

from __future__ import annotations

import pytest

import mindtorch_v2 as torch


def test_distributed_says_that_it_is_not_available() -> None:
    assert torch.distributed.is_available() is False
    with pytest.raises(RuntimeError, match="one process"):
        torch.distributed.init_process_group("gloo")
