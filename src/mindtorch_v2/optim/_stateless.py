"""Runs an optimiser on other parameters and state than its own."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mindtorch_v2 import Tensor

    from .optimizer import Optimizer

_NAME = "swap_in_optimizer_params_and_state"


@contextmanager
def swap_in_optimizer_params_and_state(
    optimizer: Optimizer, swapin_parameters: dict[str, Tensor], swapin_optim_state: dict[str, Any]
) -> Iterator[None]:
    """Context manager: the optimiser uses the given parameters and state, afterwards its own again."""
    saved_groups = _checked_groups(optimizer, swapin_optim_state)
    own_state, own_groups = optimizer.state, [dict(group) for group in optimizer.param_groups]
    params = list(swapin_parameters.values())
    if len(params) < sum(len(group["params"]) for group in own_groups):
        raise RuntimeError(
            f"{_NAME} requires the explicit parameter state to match optimizer.param_groups ordering."
        )
    remaining = iter(params)
    state: defaultdict[Any, Any] = defaultdict(dict)
    new_groups = []
    for saved in saved_groups:
        new = {**saved, "params": [next(remaining) for _ in saved["params"]]}
        new_groups.append(new)
        for packed_id, param in zip(saved["params"], new["params"]):
            if packed_id in swapin_optim_state["state"]:
                state[param] = dict(swapin_optim_state["state"][packed_id])
    try:
        optimizer.state = state
        _fill(optimizer.param_groups, new_groups)
        yield
    finally:
        optimizer.state = own_state
        _fill(optimizer.param_groups, own_groups)


def _fill(groups: list[dict[str, Any]], contents: list[dict[str, Any]]) -> None:
    """Replace the contents of the groups but keep the group objects, because schedulers may refer to them."""
    for group, content in zip(groups, contents):
        ordered = {key: content[key] for key in group if key in content}
        group.clear()
        group.update(ordered)


def _checked_groups(optimizer: Optimizer, state_dict: Any) -> list[dict[str, Any]]:
    """The groups of a state dict, checked against the optimiser."""
    if not optimizer.state:
        raise RuntimeError(f"{_NAME} requires initialized optimizer state.")
    if not isinstance(state_dict, dict):
        raise RuntimeError(f"{_NAME} requires a DCP-style optimizer state_dict.")
    state, groups = state_dict.get("state"), state_dict.get("param_groups")
    if not isinstance(state, dict):
        raise RuntimeError(
            f"{_NAME} requires swapin_optim_state['state'] to be a dict mapping packed parameter ids to "
            f"per-param state dicts, got {type(state).__name__}."
        )
    if not isinstance(groups, list):
        raise RuntimeError(
            f"{_NAME} requires swapin_optim_state['param_groups'] to be a list of param-group dicts, "
            f"got {type(groups).__name__}."
        )
    if len(groups) != len(optimizer.param_groups):
        raise RuntimeError(
            "swapin_optim_state has a different number of parameter groups than the live optimizer."
        )
    for i, (own_group, new_group) in enumerate(zip(optimizer.param_groups, groups)):
        _check_group(i, own_group, new_group)
    packed_ids = {packed_id for group in groups for packed_id in group["params"]}
    extra = [key for key in state if key not in packed_ids]
    if extra:
        raise RuntimeError(
            f"{_NAME} requires swapin_optim_state['state'] to be keyed only by packed parameter ids from "
            f"param_groups[*]['params']; got extra keys {extra}."
        )
    if not all(isinstance(entry, dict) for entry in state.values()):
        raise RuntimeError(f"{_NAME} requires per-parameter optimizer state entries to be dictionaries.")
    return groups


def _check_group(i: int, own_group: dict[str, Any], new_group: Any) -> None:
    if not isinstance(new_group, dict):
        raise RuntimeError(f"{_NAME} requires each optimizer param group to be a dictionary.")
    packed_ids = new_group.get("params")
    if not isinstance(packed_ids, list) or not all(isinstance(packed_id, int) for packed_id in packed_ids):
        raise RuntimeError(
            f"{_NAME} requires optimizer.state_dict()-style param_groups[*]['params'] entries keyed by "
            "packed parameter ids."
        )
    if len(packed_ids) != len(own_group["params"]):
        raise RuntimeError(
            f"swapin_optim_state param group {i} has a different number of params than the live optimizer "
            "param group."
        )
    if own_group.keys() != new_group.keys():
        raise RuntimeError(
            f"{_NAME} requires optimizer.state_dict()-style param group keys to exactly match the live "
            f"optimizer group keys for group {i}. Keys only in swap-in: {sorted(new_group.keys() - own_group.keys())}. "
            f"Keys only in live: {sorted(own_group.keys() - new_group.keys())}."
        )
