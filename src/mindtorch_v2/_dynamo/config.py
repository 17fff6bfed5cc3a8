"""Settings of torch's compiler that programs set. They are stored and have no effect."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

suppress_errors: bool = False
cache_size_limit: int = 8
accumulated_cache_size_limit: int = 256
recompile_limit: int = 8
accumulated_recompile_limit: int = 256
verbose: bool = False
dynamic_shapes: bool = True
automatic_dynamic_shapes: bool = True
assume_static_by_default: bool = True
capture_scalar_outputs: bool = False
capture_dynamic_output_shape_ops: bool = False
inline_inbuilt_nn_modules: bool = True
optimize_ddp: bool = True
skip_fwd_side_effects_in_bwd_under_checkpoint: bool = False
guard_nn_modules: bool = True
reorderable_logging_functions: set[Any] = set()


@contextlib.contextmanager
def patch(arg1: str | dict[str, Any] | None = None, arg2: Any = None, **kwargs: Any) -> Iterator[None]:
    """Context manager and decorator: other settings, by name and value, as a dict or as keywords."""
    changes = {**(arg1 if isinstance(arg1, dict) else {} if arg1 is None else {arg1: arg2}), **kwargs}
    settings = globals()
    unknown = [name for name in changes if name not in settings]
    if unknown:
        raise AttributeError(f"torch._dynamo.config.{unknown[0]} does not exist")
    before = {name: settings[name] for name in changes}
    settings.update(changes)
    try:
        yield
    finally:
        settings.update(before)
