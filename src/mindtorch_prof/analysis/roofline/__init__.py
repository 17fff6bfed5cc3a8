"""Roofline: a recording in; how much each op computes and moves, how fast, and how far that is from the device's peak out.

`roofline` does it all; one module per family of ops holds its models (matmul, convolution, attention ...), peaks.json the devices.
"""

from __future__ import annotations

from .peaks import Peaks, known_devices, peaks_from, read_peaks
from .rows import NotCovered, Roofline, Row, roofline

__all__ = ["NotCovered", "Peaks", "Roofline", "Row", "known_devices", "peaks_from", "read_peaks", "roofline"]
