"""torch.fx.passes.infra.pass_base: `PassBase`, a pass with checks before and after."""

from __future__ import annotations

import abc
from typing import NamedTuple

from ...graph_module import GraphModule

__all__ = ["PassResult", "PassBase"]


class PassResult(NamedTuple):
    """The module after a pass, and whether it was changed."""

    graph_module: GraphModule
    modified: bool


class PassBase(abc.ABC):
    """A callable pass: `requires`, then `call`, then `ensures`."""

    def __call__(self, graph_module: GraphModule) -> PassResult | None:
        self.requires(graph_module)
        result = self.call(graph_module)
        self.ensures(graph_module)
        return result

    @abc.abstractmethod
    def call(self, graph_module: GraphModule) -> PassResult | None:
        """Do the work."""

    def requires(self, graph_module: GraphModule) -> None:  # noqa: B027  (a hook)
        """Check the input."""

    def ensures(self, graph_module: GraphModule) -> None:  # noqa: B027  (a hook)
        """Check the output."""
