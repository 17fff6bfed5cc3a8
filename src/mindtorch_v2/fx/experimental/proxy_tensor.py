"""torch.fx.experimental.proxy_tensor: tracing of ops into a graph, a part of torch's compiler. Nothing is traced so here."""

from __future__ import annotations

from typing import Any, NoReturn


def get_proxy_mode() -> None:
    """The active mode that traces ops: none."""


def make_fx(f: Any, *args: Any, **kwargs: Any) -> NoReturn:
    """Raises: ops are not traced; `torch.fx.symbolic_trace` traces calls."""
    raise NotImplementedError(
        "make_fx traces ops, which this library does not; torch.fx.symbolic_trace traces calls"
    )
