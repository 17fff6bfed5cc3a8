"""Recording: the ops, annotations, allocations and Python calls of this process in, a Trace out."""
