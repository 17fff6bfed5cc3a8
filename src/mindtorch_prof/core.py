"""Which core runs: the compiled extension modules, or the plain Python code that does the same.

A module that has a compiled twin asks `compiled` for it, in one place, and uses its own Python code where that gives None. The
environment variable MINDTORCH_CORE chooses: `c` insists on the compiled modules, `python` refuses them; unset, they are used where
they were built.
"""

from __future__ import annotations

import importlib
import os
from types import ModuleType

VARIABLE = "MINDTORCH_CORE"


def compiled(module: str) -> ModuleType | None:
    """An extension module by its full name; None where the Python code is to be used."""
    wanted = os.environ.get(VARIABLE, "")
    if wanted not in ("", "c", "python"):
        raise ImportError(f"{VARIABLE}={wanted}: expected `c` or `python`, or the variable unset")
    if wanted == "python":
        return None
    try:
        return importlib.import_module(module)
    except ImportError as error:
        if wanted == "c":
            raise ImportError(
                f"{VARIABLE}=c, but {module} was not built ({error}): install a C compiler and Python's headers, then the package again"
            ) from error
        return None


def name() -> str:
    """The core that reads files: `c` or `python`."""
    return "python" if compiled("mindtorch_prof.load._reader") is None else "c"
