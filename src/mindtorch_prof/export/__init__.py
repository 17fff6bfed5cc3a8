"""Exports: one file a format, one function each: a Trace or its rows in, a file out. None of them knows the recorder."""
