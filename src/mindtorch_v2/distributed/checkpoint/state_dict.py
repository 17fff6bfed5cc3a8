"""torch.distributed.checkpoint.state_dict: state dicts of models and optimizers by parameter names, without the prefixes of wrappers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from mindtorch_v2 import no_grad, tensor, zeros_like
from mindtorch_v2.nn import Module

from .. import distributed_c10d as c10d

__all__ = [
    "StateDictOptions", "get_model_state_dict", "get_optimizer_state_dict", "get_state_dict", "set_model_state_dict",
    "set_optimizer_state_dict", "set_state_dict",
]  # fmt: skip

# what DistributedDataParallel, torch.compile and activation checkpointing put before the names of parameters
_WRAPPERS = {
    "DistributedDataParallel": "module",
    "OptimizedModule": "_orig_mod",
    "CheckpointWrapper": "_checkpoint_wrapped_module",
}


@dataclass
class StateDictOptions:
    """How state dicts are read and set. Nothing is sharded or on another device here: the first two options change nothing."""

    full_state_dict: bool = False
    cpu_offload: bool = False
    ignore_frozen_params: bool = False
    keep_submodule_prefixes: bool = True
    strict: bool = True
    broadcast_from_rank0: bool = False
    flatten_optimizer_state_dict: bool = False
    dsd_fqn_modifiers: str = "_fqn_modifiers"


def _checked(options: StateDictOptions | None, submodules: set[Module] | None = None) -> StateDictOptions:
    options = options or StateDictOptions()
    if submodules or not options.keep_submodule_prefixes:
        raise NotImplementedError("state dicts of some submodules: call state_dict() of the submodule itself")
    if options.broadcast_from_rank0 and c10d.is_initialized() and c10d.get_world_size() > 1:
        raise NotImplementedError(
            "broadcast_from_rank0: load on every rank, or call torch.distributed.broadcast"
        )
    return options


def _names(model: Module) -> dict[str, str]:
    """The model's own names of parameters and buffers, without the prefixes of wrappers."""
    prefixes = sorted(
        (
            (f"{name}." if name else "") + _WRAPPERS[type(module).__name__] + "."
            for name, module in model.named_modules()
            if type(module).__name__ in _WRAPPERS
        ),
        key=len,
        reverse=True,
    )
    names = {}
    for name in model.state_dict():
        plain = name
        for prefix in prefixes:  # inner wrappers first
            if plain.startswith(prefix):
                plain = prefix[: prefix[:-1].rfind(".") + 1] + plain[len(prefix) :]
        names[name] = plain
    return names


def get_model_state_dict(
    model: Module, *, submodules: set[Module] | None = None, options: StateDictOptions | None = None
) -> dict[str, Any]:
    """The state dict of a model, by plain names."""
    options = _checked(options, submodules)
    frozen = {name for name, parameter in model.named_parameters() if not parameter.requires_grad}
    state = model.state_dict()
    names = _names(model)
    for name in list(state):
        value = state.pop(name)
        if not (options.ignore_frozen_params and name in frozen):
            state[names[name]] = value
    return state


def set_model_state_dict(
    model: Module, model_state_dict: dict[str, Any], *, options: StateDictOptions | None = None
) -> Any:
    """Load a state dict with plain names into a model; the missing and the unexpected keys."""
    options = _checked(options)
    own = {plain: name for name, plain in _names(model).items()}
    return model.load_state_dict(
        {own.get(name, name): value for name, value in model_state_dict.items()}, strict=options.strict
    )


def _parameter_names(model: Module) -> dict[int, str]:
    names = _names(model)
    return {id(parameter): names[name] for name, parameter in model.named_parameters()}


def _initialize(optimizer: Any) -> None:
    """Let an optimizer that has no state yet make it, by a step of size zero."""
    parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    if optimizer.state or any(parameter.grad is not None for parameter in parameters):
        return
    rates = [group.get("lr") for group in optimizer.param_groups]
    with no_grad():
        for parameter in parameters:
            if parameter.requires_grad:
                parameter.grad = zeros_like(parameter)
    for group, rate in zip(optimizer.param_groups, rates):
        if rate is not None:
            group["lr"] = tensor(0.0) if hasattr(rate, "detach") else 0.0
    optimizer.step(closure=None)
    for group, rate in zip(optimizer.param_groups, rates):
        if rate is not None:
            group["lr"] = rate
    optimizer.zero_grad(set_to_none=True)


def _as_list(optimizers: Any) -> list[Any]:
    return list(optimizers) if isinstance(optimizers, Iterable) else [optimizers]


def get_optimizer_state_dict(
    model: Module,
    optimizers: Any,
    *,
    submodules: set[Module] | None = None,
    options: StateDictOptions | None = None,
) -> dict[str, Any]:
    """The state dicts of optimizers as one, with the names of parameters for their numbers."""
    options = _checked(options, submodules)
    names = _parameter_names(model)
    result: dict[str, Any] = {"state": {}, "param_groups": []}
    for optimizer in _as_list(optimizers):
        _initialize(optimizer)
        state = optimizer.state_dict()
        by_number = dict(_numbered(optimizer, lambda parameter: names[id(parameter)]))
        result["state"].update({by_number[number]: values for number, values in state["state"].items()})
        result["param_groups"] += [
            {**group, "params": [by_number[number] for number in group["params"]]}
            for group in state["param_groups"]
        ]
    return _flattened(result) if options.flatten_optimizer_state_dict else result


def _numbered(optimizer: Any, name: Callable[[Any], str]) -> Iterator[tuple[int, str]]:
    """The number that an optimizer's state dict gives each parameter, and the parameter's name."""
    parameters = (parameter for group in optimizer.param_groups for parameter in group["params"])
    for number, parameter in enumerate(parameters):
        yield number, name(parameter)


def _flattened(state_dict: dict[str, Any]) -> dict[str, Any]:
    """`state.<parameter>.<name>` and `param_groups.<parameter>.<option>`."""
    flat = {
        f"state.{parameter}.{name}": value
        for parameter, values in state_dict["state"].items()
        for name, value in values.items()
    }
    for group in state_dict["param_groups"]:
        for parameter in group["params"]:
            flat |= {
                f"param_groups.{parameter}.{name}": value for name, value in group.items() if name != "params"
            }
    return flat


def _unflattened(flat: dict[str, Any], optimizer: Any, names: dict[int, str]) -> dict[str, Any]:
    """The nested state dict of one optimizer out of a flat one."""
    result: dict[str, Any] = {"state": {}, "param_groups": []}
    for group in optimizer.param_groups:
        parameters = [names[id(parameter)] for parameter in group["params"]]
        options = {name: flat[f"param_groups.{parameters[0]}.{name}"] for name in group if name != "params"}
        result["param_groups"].append({"params": parameters, **options})
        for parameter in parameters:
            prefix = f"state.{parameter}."
            values = {
                name.removeprefix(prefix): value for name, value in flat.items() if name.startswith(prefix)
            }
            if values:
                result["state"][parameter] = values
    return result


def set_optimizer_state_dict(
    model: Module,
    optimizers: Any,
    optim_state_dict: dict[str, Any],
    *,
    options: StateDictOptions | None = None,
) -> None:
    """Load a state dict with the names of parameters into optimizers."""
    options = _checked(options)
    names = _parameter_names(model)
    for optimizer in _as_list(optimizers):
        _initialize(optimizer)
        own = (
            _unflattened(optim_state_dict, optimizer, names)
            if options.flatten_optimizer_state_dict
            else optim_state_dict
        )
        optimizer.load_state_dict(_by_number(own, optimizer, names))


def _by_number(state_dict: dict[str, Any], optimizer: Any, names: dict[int, str]) -> dict[str, Any]:
    """A state dict with numbers of parameters, as the optimizer's own `load_state_dict` takes it."""
    numbers = {name: number for number, name in _numbered(optimizer, lambda parameter: names[id(parameter)])}
    groups = []
    for group in optimizer.param_groups:
        own = [names[id(parameter)] for parameter in group["params"]]
        saved = next((g for g in state_dict["param_groups"] if set(g["params"]) & set(own)), None)
        if saved is None:
            raise RuntimeError(f"Missing param_groups in the state dict for the parameters {own}")
        groups.append({**saved, "params": [numbers[name] for name in own]})
    state = {numbers[name]: values for name, values in state_dict["state"].items() if name in numbers}
    return {"state": state, "param_groups": groups}


def get_state_dict(
    model: Module,
    optimizers: Any,
    *,
    submodules: set[Module] | None = None,
    options: StateDictOptions | None = None,
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The state dicts of a model and its optimizers."""
    return (
        get_model_state_dict(model, submodules=submodules, options=options),
        get_optimizer_state_dict(model, optimizers, submodules=submodules, options=options),
    )


def set_state_dict(
    model: Module,
    optimizers: Any,
    *,
    model_state_dict: dict[str, Any],
    optim_state_dict: dict[str, Any],
    options: StateDictOptions | None = None,
) -> Any:
    """Load the state dicts of a model and its optimizers; the model's missing and unexpected keys."""
    set_optimizer_state_dict(model, optimizers, optim_state_dict, options=options)
    return set_model_state_dict(model, model_state_dict, options=options)
