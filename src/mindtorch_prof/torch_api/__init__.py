"""torch's objects over a Trace: events, averages, tables, the event tree and the memory profile."""
