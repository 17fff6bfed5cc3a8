"""Sub-commands that need the library. The engine finds them by the entry points in pyproject.toml."""
