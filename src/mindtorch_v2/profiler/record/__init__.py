"""Recording: what runs in this process in, a Trace out."""
