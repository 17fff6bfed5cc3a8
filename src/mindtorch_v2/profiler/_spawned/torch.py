"""`import torch` in a process that a program under `mindtorch-prof run` has spawned: this folder is on its path, and gives mindtorch_v2."""

import sys

del sys.modules["torch"]

import mindtorch_v2  # noqa: E402

mindtorch_v2.as_torch()

import torch  # type: ignore[import-not-found]  # noqa: E402, F401
