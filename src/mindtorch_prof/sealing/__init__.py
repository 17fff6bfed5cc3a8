"""Sealing: what a recorder wrote, as plain data, in; a Trace out. Used for live recordings and for those read back from a spill folder."""
