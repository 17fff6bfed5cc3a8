"""Trace files in, trace files out: cut, merged; what is not understood is kept."""
