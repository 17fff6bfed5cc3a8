"""torch.__config__ names the libraries underneath."""

from __future__ import annotations

import numpy as np
import scipy

import mindtorch_v2 as torch


def test_the_configuration_names_the_libraries_underneath() -> None:
    text = torch.__config__.show()
    first, second, *_ = text.splitlines()
    assert first.startswith(f"mindtorch_v2 {torch.version.__version__}, after torch 2.13.0")
    assert second == f"  - NumPy {np.__version__}, SciPy {scipy.__version__}"
    assert f"at::get_num_threads() : {torch.get_num_threads()}\n" in torch.__config__.parallel_info()
