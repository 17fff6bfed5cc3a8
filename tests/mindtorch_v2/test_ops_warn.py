"""Warnings that torch gives once in a process."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import mindtorch_v2 as torch

CALLS = {
    "A window was not provided. A rectangular window will be applied,which": lambda: torch.stft(
        torch.arange(64.0), 16, return_complex=True
    ),
    "A window was not provided. A rectangular window will be applied.Please": lambda: torch.istft(
        torch.ones(9, 5, dtype=torch.cfloat), 16
    ),
    "Sparse invariant checks are implicitly disabled": lambda: torch.sparse_coo_tensor(
        [[0], [1]], [2.0], (2, 2)
    ),
    "Creating a tensor from a list of numpy.ndarrays": lambda: torch.tensor([np.ones(2), np.ones(2)]),
    "The given NumPy array is not writable": lambda: torch.from_numpy(np.broadcast_to(np.ones(1), (3,))),
    "torch.qr is deprecated": lambda: torch.qr(torch.eye(2)),
    "torch.lu is deprecated": lambda: torch.lu(torch.eye(2)),
    "torch.triangular_solve is deprecated": lambda: torch.triangular_solve(torch.eye(2), torch.eye(2)),
    "The use of `x.T` on tensors": lambda: torch.ones(2, 2, 2).T,
}


@pytest.mark.parametrize("text", CALLS)
def test_torch_warns_once_of_what_is_old_or_doubtful(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mindtorch_v2._ops._warn._given", set())
    monkeypatch.setattr("mindtorch_v2._ops.sparse.Invariants.chosen", False)
    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("always")
        CALLS[text]()
        CALLS[text]()
    assert [str(w.message)[: len(text)] for w in given] == [text]
