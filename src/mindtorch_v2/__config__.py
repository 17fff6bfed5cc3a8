"""torch.__config__: the libraries that this package uses, as text."""

from __future__ import annotations

import os
from typing import Any


def show() -> str:
    """The libraries this package uses and their versions."""
    import numpy as np
    import scipy

    from . import version

    build: Any = np.show_config(mode="dicts")
    libraries = build["Build Dependencies"]
    lines = [
        f"mindtorch_v2 {version.__version__}, after torch {version.torch_api}, on:",
        f"  - NumPy {np.__version__}, SciPy {scipy.__version__}",
        *(
            f"  - {kind.upper()}: {libraries[kind].get('name')} {libraries[kind].get('version')}"
            for kind in ("blas", "lapack")
            if kind in libraries
        ),
        "  - USE_CUDA=0, USE_CUDNN=0, USE_MKL=0, USE_MKLDNN=0, USE_OPENMP=0, USE_NCCL=0",
    ]
    return "\n".join(lines) + "\n"


def parallel_info() -> str:
    """The number of threads available to compute."""
    import mindtorch_v2 as torch

    lines = [
        "ATen/Parallel:",
        f"\tat::get_num_threads() : {torch.get_num_threads()}",
        f"\tat::get_num_interop_threads() : {torch.get_num_interop_threads()}",
        f"std::thread::hardware_concurrency() : {os.cpu_count()}",
        "Environment variables:",
        *(
            f"\t{name} : {os.environ.get(name, '[not set]')}"
            for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS")
        ),
        "ATen parallel backend: the BLAS that NumPy brings",
    ]
    return "\n".join(lines) + "\n"
