"""ZeroRedundancyOptimizer: each process updates a share of the parameters and sends it to the others."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import mindtorch_v2 as torch
from mindtorch_v2.optim import Optimizer

from .. import distributed_c10d as c10d

__all__ = ["ZeroRedundancyOptimizer"]


class ZeroRedundancyOptimizer(Optimizer):
    """Wraps an optimizer class: this process keeps the state of its share of the parameters only."""

    def __init__(
        self,
        params: Iterable[Any],
        optimizer_class: type[Optimizer],
        process_group: Any = None,
        parameters_as_bucket_view: bool = False,
        overlap_with_ddp: bool = False,
        **defaults: Any,
    ) -> None:
        if overlap_with_ddp:
            raise NotImplementedError(
                "ZeroRedundancyOptimizer: overlap_with_ddp is not supported by this library"
            )
        self.process_group = c10d._get_default_group() if process_group is None else process_group
        self.world_size, self.rank = self.process_group.size(), self.process_group.rank()
        self._optim_constructor, self._optim_defaults = optimizer_class, defaults
        super().__init__(list(params), defaults)
        self._owner = self._owners()
        groups = []
        for group in self.param_groups:
            own = [p for p in group["params"] if self._owner[id(p)] == self.rank]
            groups.append({**group, "params": own})
        self.optim = optimizer_class(groups, **defaults)
        for group, local in zip(self.param_groups, self.optim.param_groups):
            for name, value in local.items():
                group.setdefault(name, value) if name != "params" else None

    def _owners(self) -> dict[int, int]:
        """The rank that updates each parameter: the largest first, each to the rank with the least so far."""
        sizes, owners = [0] * self.world_size, {}
        for group in self.param_groups:
            for parameter in sorted(group["params"], key=lambda p: p.numel(), reverse=True):
                rank = sizes.index(min(sizes))
                owners[id(parameter)] = rank
                sizes[rank] += parameter.numel()
        return owners

    def step(self, closure: Any = None, **kwargs: Any) -> Any:
        """Update this process' share, then exchange the shares."""
        for group, local in zip(self.param_groups, self.optim.param_groups):
            local.update({name: value for name, value in group.items() if name != "params"})
        loss = self.optim.step(closure, **kwargs) if closure is not None else self.optim.step(**kwargs)
        with torch.no_grad():
            for group in self.param_groups:
                for parameter in group["params"]:
                    root = self._owner[id(parameter)]
                    self.process_group.broadcast([parameter.detach()], root, async_op=False).wait()
        return loss

    def consolidate_state_dict(self, to: int = 0) -> None:
        """Collect the state of all processes on one, for `state_dict()` there."""
        states: list[Any] = [None] * self.world_size
        c10d.all_gather_object(states, self.optim.state_dict(), self.process_group)
        self._all_state_dicts = states if self.rank == to else []

    _all_state_dicts: list[Any] = []

    def state_dict(self) -> dict[str, Any]:
        """The state of all parameters; only on the rank that `consolidate_state_dict` named."""
        if not self._all_state_dicts:
            raise RuntimeError(
                f"Optimizer state has not been consolidated on this rank. Please call `consolidate_state_dict(to={self.rank})` on all "
                "ranks beforehand if you meant to save the global state."
            )
        complete = super().state_dict()
        complete["state"] = {}
        index = 0
        counters = [0] * self.world_size
        for group in self.param_groups:
            for parameter in group["params"]:
                rank = self._owner[id(parameter)]
                state = self._all_state_dicts[rank]["state"].get(counters[rank])
                if state is not None:
                    complete["state"][index] = state
                counters[rank] += 1
                index += 1
        return complete

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load the state of all parameters; this process keeps its share."""
        super().load_state_dict(state_dict)
        for parameter in list(self.state):
            if self._owner[id(parameter)] == self.rank:
                self.optim.state[parameter] = self.state[parameter]
