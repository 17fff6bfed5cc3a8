"""Names for the types of NumPy arrays, by what their elements are."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]  # a column of a table: numbers, or objects
BoolArray = npt.NDArray[np.bool_]
FloatArray = npt.NDArray[np.floating]
IntArray = npt.NDArray[np.integer]
