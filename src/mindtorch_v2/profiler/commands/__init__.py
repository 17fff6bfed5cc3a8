"""Sub-commands that need the library; the engine finds them by the entry points in pyproject.toml."""
