"""The names that a program beside real torch uses, and that they cost nothing before they are called."""

from __future__ import annotations

from collections.abc import Callable

import mindtorch_prof
from mindtorch_prof import live


def test_the_package_offers_them() -> None:
    assert mindtorch_prof.accelerate is live.accelerate
    assert mindtorch_prof.trace_handler is live.trace_handler
    assert {"accelerate", "trace_handler", "from_torch"} <= set(mindtorch_prof.__all__)


def test_importing_them_imports_neither_numpy_nor_torch(run_python: Callable[..., str]) -> None:
    program = """
    import sys, mindtorch_prof
    print([name for name in ("numpy", "torch", "mindtorch_prof.live.handler") if name in sys.modules])
    """
    assert run_python(program) == "[]\n"
