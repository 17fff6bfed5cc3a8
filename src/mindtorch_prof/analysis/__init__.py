"""Answers: a recording (live or loaded) in; rows, differences, findings and verdicts out. No text, no files, no tensor code."""
