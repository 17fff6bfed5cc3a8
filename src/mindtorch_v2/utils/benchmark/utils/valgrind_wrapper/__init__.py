"""Instruction counts that Callgrind made elsewhere: read, compared, shown. This library does not run it."""
