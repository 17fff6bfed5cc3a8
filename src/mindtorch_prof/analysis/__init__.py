"""Analyses: a recording in; rows, differences, findings and verdicts out, as plain data. One module per question."""
