"""Instruction counts made by Callgrind elsewhere: read, compared, displayed. This library does not run it."""
