"""Profiler: ops that pass the dispatcher in, tables and traces out. Knows tensors only as recorded numbers."""
