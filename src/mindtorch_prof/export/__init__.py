"""Exports: one module per format, listed in `exporters.py`."""
