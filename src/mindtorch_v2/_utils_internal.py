"""torch._utils_internal: paths of files that belong to the library."""

from __future__ import annotations

import os

torch_parent = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def get_file_path(*path_components: str) -> str:
    """A path below the folder that holds the package."""
    return os.path.join(torch_parent, *path_components)


def get_writable_path(path: str) -> str:
    """The path itself if it is writable, else a new temporary folder."""
    if os.access(path, os.W_OK):
        return path
    import tempfile

    return tempfile.mkdtemp(suffix=os.path.basename(path))


def resolve_library_path(path: str) -> str:
    """The path without symbolic links."""
    return os.path.realpath(path)
