"""`torch.lobpcg`: a few extreme eigenpairs of a symmetric matrix. Solved exactly, where torch iterates to a tolerance."""

from __future__ import annotations

from typing import Any

import mindtorch_v2 as torch

__all__ = ["lobpcg"]


def lobpcg(
    A: Any, k: int | None = None, B: Any = None, X: Any = None, n: int | None = None, iK: Any = None, niter: int | None = None,
    tol: float | None = None, largest: bool | None = None, method: str | None = None, tracker: None = None,
    ortho_iparams: dict[str, int] | None = None, ortho_fparams: dict[str, float] | None = None,
    ortho_bparams: dict[str, bool] | None = None,
) -> tuple[Any, Any]:  # fmt: skip
    """The `k` largest (or smallest) eigenvalues of A, or of A x = s B x, and their vectors.

    The eigenpairs are computed by a dense solver to full precision: arguments that control torch's iteration are checked and not used.
    """
    if tracker is not None:
        raise NotImplementedError(
            "lobpcg: there is no iteration to track, eigenpairs are computed by a dense solver"
        )
    if A.shape[-2] != A.shape[-1]:
        raise AssertionError(f"A must be square, got shape {A.shape}")
    if method not in (None, "ortho", "basic"):
        raise ValueError(f"expected method='basic' or 'ortho', got {method!r}")
    dense = A.to_dense() if A.is_sparse else A
    m = dense.shape[-1]
    if k is None:
        k = 1 if X is None else X.shape[-1]
    count = n if n is not None else k if X is None else X.shape[-1]
    if m < 3 * count:
        raise ValueError(
            f"LOBPCG algorithm is not applicable when the number of A rows (={m}) is smaller than 3 x the number of requested "
            f"eigenpairs (={count})"
        )
    largest = True if largest is None else largest
    if B is None:
        values, vectors = torch.linalg.eigh(dense)
    else:
        lower = torch.linalg.cholesky(B.to_dense() if B.is_sparse else B)
        inner = torch.linalg.solve_triangular(lower, dense, upper=False)
        inner = torch.linalg.solve_triangular(lower.mH, inner, upper=True, left=False)
        values, vectors = torch.linalg.eigh(inner)
        vectors = torch.linalg.solve_triangular(lower.mH, vectors, upper=True)
    if largest:
        values, vectors = values.flip(-1), vectors.flip(-1)
    return values[..., :k], vectors[..., :k]
