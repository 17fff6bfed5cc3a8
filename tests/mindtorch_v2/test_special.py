"""Special functions, windows and short-time Fourier transforms give torch's numbers, gradients and errors.

Modules of _ops: special, incomplete_gamma, spectral, windows. The facts are recorded with
`python facts/record_expressions.py special`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import recorded_rows
from hypothesis import given, settings
from hypothesis import strategies as st

import mindtorch_v2 as torch


@pytest.mark.parametrize(("setup", "line", "fact"), recorded_rows.recorded("special"))
def test_special_functions_give_what_torch_gives(setup: str, line: str, fact: Any) -> None:
    recorded_rows.check(torch, setup, line, fact)


@settings(max_examples=40)
@given(st.integers(0, 7), st.integers(4, 9), st.integers(1, 4), st.integers(0, 999))
def test_istft_gives_back_what_stft_took(extra: int, n_fft: int, hop: int, seed: int) -> None:
    signal = torch.from_numpy(np.random.RandomState(seed).standard_normal((2, 4 * n_fft + extra)))
    window = torch.hann_window(n_fft, dtype=torch.float64) + 0.1
    spectrum = torch.stft(signal, n_fft, hop, window=window, return_complex=True)
    again = torch.istft(spectrum, n_fft, hop, window=window)
    torch.testing.assert_close(again, signal[:, : again.shape[1]])


@settings(max_examples=40)
@given(st.floats(-0.99, 0.99), st.integers(0, 12))
def test_chebyshev_polynomials_are_cosines_of_multiples(x: float, n: int) -> None:
    made = torch.special.chebyshev_polynomial_t(torch.tensor(x, dtype=torch.float64), n).item()
    assert made == pytest.approx(np.cos(n * np.arccos(x)), abs=1e-9)


@pytest.mark.parametrize("name", ["entr", "erfcx", "i0e", "i1", "i1e", "log_ndtr", "ndtri", "ndtr"])
def test_special_functions_have_the_gradients_of_their_slopes(name: str) -> None:
    x = torch.tensor([0.2, 0.45, 0.7], dtype=torch.float64, requires_grad=True)
    function, step = getattr(torch.special, name), 1e-6
    (gradient,) = torch.autograd.grad(function(x).sum(), x)
    slope = (function(x.detach() + step) - function(x.detach() - step)) / (2 * step)
    torch.testing.assert_close(gradient, slope, rtol=1e-6, atol=1e-8)


def test_out_takes_the_result_of_a_special_function() -> None:
    x, out = torch.tensor([0.5, 1.5]), torch.empty(2)
    assert torch.special.i1e(x, out=out) is out
    assert torch.equal(out, torch.special.i1e(x))
