"""Profiler: dispatched ops in, tables and traces out. Knows tensors only as recorded numbers."""
