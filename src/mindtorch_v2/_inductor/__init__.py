"""torch._inductor: torch's code generator, which this library does not have. Settings can be set; compiling raises."""

from __future__ import annotations

from typing import Any, NoReturn

from . import config

__all__ = ["compile", "config", "cudagraph_mark_step_begin", "list_mode_options", "list_options"]


def cudagraph_mark_step_begin() -> None:
    """Mark a new step for CUDA graphs; there are none."""


def list_mode_options(mode: str | None = None, dynamic: bool | None = None) -> dict[str, Any]:
    """The options of each mode: none, as no mode compiles."""
    return {}


def list_options() -> list[str]:
    """The options of the code generator: none."""
    return []


def compile(*args: Any, **kwargs: Any) -> NoReturn:
    """Raises: there is no code generator."""
    raise NotImplementedError(
        "torch._inductor.compile: this library has no code generator; torch.compile runs eagerly"
    )
