"""torch.fx._lazy_graph_module: here code is generated at once; the names of torch's lazy variant give that."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from .graph_module import GraphModule

_LazyGraphModule = GraphModule


def _make_graph_module(
    *args: Any, graph_module_cls: type[GraphModule] | None = None, **kwargs: Any
) -> GraphModule:
    return (graph_module_cls or GraphModule)(*args, **kwargs)


@contextlib.contextmanager
def _use_lazy_graph_module(should_use: bool) -> Iterator[None]:
    """Context manager of torch's compiler: without effect."""
    yield
