"""Trace files in, trace files out: cut or merged. Events of unknown kinds are kept."""
