"""The base class of optimisers: parameter groups, state, state dicts, hooks and the loop over parameters.

An optimiser updates parameters with gradients in place. The update rule is in the subclass: one in this
package defines `_first_state` and `_update_group`, a user's subclass defines `step`.
"""

from __future__ import annotations

import functools
import os
import warnings
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Hashable, Iterable
from copy import deepcopy
from itertools import chain
from typing import TYPE_CHECKING, Any, ParamSpec, TypeAlias, TypeVar, cast

import mindtorch_v2 as torch

from .. import _dispatch

if TYPE_CHECKING:
    from mindtorch_v2 import Tensor
    from mindtorch_v2.utils.hooks import RemovableHandle

__all__ = ["Optimizer", "register_optimizer_step_pre_hook", "register_optimizer_step_post_hook"]

P = ParamSpec("P")
R = TypeVar("R")

Args: TypeAlias = tuple[Any, ...]
Kwargs: TypeAlias = dict[str, Any]
StateDict: TypeAlias = dict[str, Any]
ParamsT: TypeAlias = "Iterable[Tensor] | Iterable[dict[str, Any]] | Iterable[tuple[str, Tensor]]"
GlobalOptimizerPreHook: TypeAlias = Callable[["Optimizer", Args, Kwargs], tuple[Args, Kwargs] | None]
GlobalOptimizerPostHook: TypeAlias = Callable[["Optimizer", Args, Kwargs], None]

_global_optimizer_pre_hooks: dict[int, GlobalOptimizerPreHook] = OrderedDict()
_global_optimizer_post_hooks: dict[int, GlobalOptimizerPostHook] = OrderedDict()


# The hook dictionaries of an optimiser; they are neither pickled nor copied.
_HOOKS = (
    "_optimizer_step_pre_hooks",
    "_optimizer_step_post_hooks",
    "_optimizer_state_dict_pre_hooks",
    "_optimizer_state_dict_post_hooks",
    "_optimizer_load_state_dict_pre_hooks",
    "_optimizer_load_state_dict_post_hooks",
)


class _RequiredParameter:
    """The default of an option that every group must set."""

    def __repr__(self) -> str:
        return "<required parameter>"


required = _RequiredParameter()


# What the update rules share --------------------------------------------------------------------------------


def _use_grad_for_differentiable(func: Callable[P, R]) -> Callable[P, R]:
    """Run a step with gradients disabled, or enabled if the optimiser is differentiable."""

    @functools.wraps(func)
    def step(*args: P.args, **kwargs: P.kwargs) -> R:
        before = torch.is_grad_enabled()
        torch.set_grad_enabled(cast("Optimizer", args[0]).defaults.get("differentiable", False))
        try:
            return func(*args, **kwargs)
        finally:
            torch.set_grad_enabled(before)

    return step


def _get_scalar_dtype(is_fused: bool | None = None) -> Any:
    """The dtype of step counts and other numbers in an optimiser's state."""
    if is_fused or torch.get_default_dtype() != torch.float64:
        return torch.float32
    return torch.float64


def _get_value(x: Any) -> Any:
    """The number in a tensor of one element."""
    return x.item() if isinstance(x, torch.Tensor) else x


def _to_scalar(x: Any) -> Any:
    """A tensor of one element without its dimensions; numbers unchanged."""
    return x.squeeze() if isinstance(x, torch.Tensor) and x.dim() != 0 else x


def _view_as_real(*tensors: Any) -> tuple[Any, ...]:
    """Complex tensors as real ones on the same memory; None stays None."""
    return tuple(tensor if tensor is None else torch.view_as_real(tensor) for tensor in tensors)


def _check_lr(lr: Any) -> None:
    if isinstance(lr, torch.Tensor) and lr.numel() != 1:
        raise ValueError("Tensor lr must be 1-element")


def _check_not_negative(value: Any, message: str) -> None:
    if not 0.0 <= value:  # noqa: SIM300 -- a wrong type is named as torch names it
        raise ValueError(f"{message}: {value}")


def _check_betas(betas: tuple[Any, Any]) -> None:
    for index in (0, 1):
        if not 0.0 <= betas[index] < 1.0:
            raise ValueError(f"Invalid beta parameter at index {index}: {betas[index]}")


def _check_steps(state_steps: list[Any]) -> None:
    if not all(isinstance(step, torch.Tensor) for step in state_steps):
        raise RuntimeError("API has changed, `state_steps` argument must contain a list of singleton tensors")


def _check_flags(
    params: list[Tensor],
    foreach: bool | None,
    differentiable: bool = False,
    capturable: bool = False,
    capturable_of: str = "params",
    supports_xla: bool = True,
) -> None:
    """Raise for flags that torch rejects on the CPU."""
    if not params:
        return
    if foreach and differentiable:
        raise AssertionError("_foreach ops don't support autograd")
    if capturable:
        devices = ["cuda", "xpu", "hpu", "privateuseone"] + ["xla"] * supports_xla
        raise AssertionError(
            f"If capturable=True, {capturable_of} and state_steps must be on supported devices: {devices}."
        )


def _check_fused(
    optimizer: Optimizer, fused: bool | None, foreach: bool | None, differentiable: bool
) -> None:
    """Raise for options that exclude each other; a fused optimiser applies a GradScaler's scale itself."""
    if not fused:
        return
    if differentiable:
        raise RuntimeError("`fused` does not support `differentiable`")
    if foreach:
        raise RuntimeError("`fused` and `foreach` cannot be `True` together.")
    optimizer._step_supports_amp_scaling = True


def _check_fused_param(param: Tensor) -> None:
    if not param.is_floating_point():
        raise RuntimeError(
            "`fused=True` requires all the params to be floating point Tensors of supported devices: "
            "['mps', 'cuda', 'xpu', 'hpu', 'cpu', 'mtia', 'privateuseone'] "
            f"but {param.dtype} and {param.device.type}"
        )


def _refuse_scale(grad_scale: Tensor | None, found_inf: Tensor | None) -> None:
    """Raise if there is a GradScaler's scale: only a fused step applies it itself."""
    if grad_scale is not None or found_inf is not None:
        raise AssertionError("Expected grad_scale and found_inf to be None")


# Optimizer --------------------------------------------------------------------------------------------------


def register_optimizer_step_pre_hook(hook: GlobalOptimizerPreHook) -> RemovableHandle:
    """Call `hook(optimizer, args, kwargs)` before every step of every optimiser."""
    handle = torch.utils.hooks.RemovableHandle(_global_optimizer_pre_hooks)
    _global_optimizer_pre_hooks[handle.id] = hook
    return handle


def register_optimizer_step_post_hook(hook: GlobalOptimizerPostHook) -> RemovableHandle:
    """Call `hook(optimizer, args, kwargs)` after every step of every optimiser."""
    handle = torch.utils.hooks.RemovableHandle(_global_optimizer_post_hooks)
    _global_optimizer_post_hooks[handle.id] = hook
    return handle


def _add_hook(hooks: Any, hook: Any, prepend: bool = False) -> RemovableHandle:
    handle = torch.utils.hooks.RemovableHandle(hooks)
    hooks[handle.id] = hook
    if prepend:
        hooks.move_to_end(handle.id, last=False)
    return handle


class Optimizer:
    """Base class: parameters in groups with their options, and the state of each parameter's update."""

    OptimizerPreHook: TypeAlias = Callable[["Optimizer", Args, Kwargs], tuple[Args, Kwargs] | None]
    OptimizerPostHook: TypeAlias = Callable[["Optimizer", Args, Kwargs], None]

    # The error for a sparse gradient; None if the update accepts one.
    _sparse_refusal: str | None = None
    _step_supports_amp_scaling: bool

    defaults: dict[str, Any]
    state: defaultdict[Any, Any]
    param_groups: list[dict[str, Any]]
    _optimizer_step_pre_hooks: dict[int, Any]
    _optimizer_step_post_hooks: dict[int, Any]
    _optimizer_state_dict_pre_hooks: OrderedDict[int, Any]
    _optimizer_state_dict_post_hooks: OrderedDict[int, Any]
    _optimizer_load_state_dict_pre_hooks: OrderedDict[int, Any]
    _optimizer_load_state_dict_post_hooks: OrderedDict[int, Any]
    _zero_grad_profile_name: str

    def __init__(self, params: ParamsT, defaults: dict[str, Any]) -> None:
        self.defaults = defaults
        for name in _HOOKS:
            setattr(self, name, OrderedDict())
        self._patch_step_function()
        if isinstance(params, torch.Tensor):
            raise TypeError(
                "params argument given to the optimizer should be an iterable of Tensors or dicts, "
                f"but got {params.type()}"
            )
        self.state = defaultdict(dict)
        self.param_groups = []
        groups: list[Any] = list(params)
        if not groups:
            raise ValueError("optimizer got an empty parameter list")
        if not isinstance(groups[0], dict):
            groups = [{"params": groups}]
        for group in groups:
            self.add_param_group(group)

    def __getstate__(self) -> dict[str, Any]:
        return {"defaults": self.defaults, "state": self.state, "param_groups": self.param_groups}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        for name in _HOOKS:
            if name not in self.__dict__:
                setattr(self, name, OrderedDict())
        self._patch_step_function()
        self.defaults.setdefault("differentiable", False)

    def __repr__(self) -> str:
        text = self.__class__.__name__ + " ("
        for i, group in enumerate(self.param_groups):
            text += f"\nParameter Group {i}\n"
            for key in sorted(group):
                if key != "params":
                    text += f"    {key}: {group[key]}\n"
        return text + ")"

    # Steps

    @_use_grad_for_differentiable
    def step(self, closure: Callable[[], float] | None = None) -> float | None:
        """Update every parameter that has a gradient; a closure is called first and its loss returned."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            params, grads, states = [], [], []
            for param in group["params"]:
                grad = param.grad
                if grad is None:
                    continue
                if self._sparse_refusal is not None and grad.is_sparse:
                    raise RuntimeError(self._sparse_refusal)
                state = self.state.get(param)
                if not state:
                    state = self._first_state(param, grad, group)
                    if state:
                        self.state[param] = state
                params.append(param)
                grads.append(grad)
                states.append(state)
            self._update_group(group, params, grads, states)
        return loss

    def _first_state(self, param: Tensor, grad: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        """The initial state of the update of `param`."""
        return {}

    def _update_group(
        self, group: dict[str, Any], params: list[Tensor], grads: list[Tensor], states: list[dict[str, Any]]
    ) -> None:
        """Update the parameters of one group that have a gradient."""
        raise NotImplementedError

    @staticmethod
    def profile_hook_step(func: Callable[P, R]) -> Callable[P, R]:
        """Wrap a step function so that it calls the hooks and is recorded by profilers under the class's
        name.
        """

        @functools.wraps(func)
        def step(*args: P.args, **kwargs: P.kwargs) -> R:
            self = cast("Optimizer", args[0])
            with torch.autograd.profiler.record_function(f"Optimizer.step#{self.__class__.__name__}.step"):
                return _step_with_hooks(func, self, args, kwargs)

        return step

    def _patch_step_function(self) -> None:
        """Wrap the class's step once, when its first instance is made."""
        cls = self.__class__
        self._zero_grad_profile_name = f"Optimizer.zero_grad#{cls.__name__}.zero_grad"
        if not getattr(cls.step, "hooked", None):
            cls.step = self.profile_hook_step(cls.step)  # type: ignore[method-assign]
            cls.step.hooked = True  # type: ignore[attr-defined]

    def register_step_pre_hook(self, hook: OptimizerPreHook) -> RemovableHandle:
        """Call `hook(optimizer, args, kwargs)` before each step; it may return new (args, kwargs)."""
        return _add_hook(self._optimizer_step_pre_hooks, hook)

    def register_step_post_hook(self, hook: OptimizerPostHook) -> RemovableHandle:
        """Call `hook(optimizer, args, kwargs)` after each step."""
        return _add_hook(self._optimizer_step_post_hooks, hook)

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Drop the gradients of all parameters, or with `set_to_none=False` fill them with zeros."""
        if not hasattr(self, "_zero_grad_profile_name"):
            self._patch_step_function()
        with torch.autograd.profiler.record_function(self._zero_grad_profile_name):
            self._zero_grad(set_to_none)

    def _zero_grad(self, set_to_none: bool) -> None:
        foreach = self.defaults.get("foreach", False) or self.defaults.get("fused", False)
        dense: dict[Any, list[Any]] = {}  # gradients to fill at once, by dtype
        for group in self.param_groups:
            for param in group["params"]:
                grad = param.grad
                if grad is None:
                    continue
                if set_to_none:
                    param.grad = None
                    continue
                if grad.grad_fn is not None:
                    grad.detach_()
                else:
                    grad.requires_grad_(False)
                if foreach and not grad.is_sparse:
                    dense.setdefault(grad.dtype, []).append(grad)
                else:
                    grad.zero_()
        for grads in dense.values():
            torch._foreach_zero_(grads)

    # Groups

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add parameters with their own options; missing options get the optimiser's defaults."""
        if not isinstance(param_group, dict):
            raise TypeError(f"param_group must be a dict, but got {type(param_group)}")
        params = param_group["params"]
        if isinstance(params, torch.Tensor):
            param_group["params"] = [params]
        elif isinstance(params, set):
            raise TypeError(
                "optimizer parameters need to be organized in ordered collections, but the ordering of "
                "tensors in sets will change between runs. Please use a list instead."
            )
        else:
            param_group["params"] = list(params)
        _split_names(param_group)
        for param in param_group["params"]:
            if not isinstance(param, torch.Tensor):
                raise TypeError(
                    f"optimizer can only optimize Tensors, but one of the params is {_type_name(param)}"
                )
            if not (self.defaults.get("differentiable") or param.is_leaf or param.retains_grad):
                raise ValueError("can't optimize a non-leaf Tensor")
        for name, default in self.defaults.items():
            if default is required and name not in param_group:
                raise ValueError(
                    f"parameter group didn't specify a value of required optimization parameter {name}"
                )
            param_group.setdefault(name, default)

        params = param_group["params"]
        if len(params) != len(set(params)):
            warnings.warn(
                "optimizer contains a parameter group with duplicate parameters; in future, this will cause "
                "an error; see github.com/pytorch/pytorch/issues/40967 for more information",
                stacklevel=3,
            )
        existing_params = set(chain.from_iterable(group["params"] for group in self.param_groups))
        if not existing_params.isdisjoint(params):
            raise ValueError("some parameters appear in more than one parameter group")
        if self.param_groups and ("param_names" in param_group) != ("param_names" in self.param_groups[0]):
            kind = "with" if "param_names" in param_group else "without"
            raise ValueError(
                "all optimizer param groups should be with/without names. "
                f"cannot add param group {kind} names to the optimizer"
            )
        self.param_groups.append(param_group)

    # State dicts

    def register_state_dict_pre_hook(
        self, hook: Callable[[Optimizer], None], prepend: bool = False
    ) -> RemovableHandle:
        """Call `hook(optimizer)` before `state_dict`."""
        return _add_hook(self._optimizer_state_dict_pre_hooks, hook, prepend)

    def register_state_dict_post_hook(
        self, hook: Callable[[Optimizer, StateDict], StateDict | None], prepend: bool = False
    ) -> RemovableHandle:
        """Call `hook(optimizer, state_dict)` after `state_dict`; it may return another dict."""
        return _add_hook(self._optimizer_state_dict_post_hooks, hook, prepend)

    def state_dict(self) -> StateDict:
        """State and groups, with the parameters replaced by their index in the groups, as in torch."""
        for pre_hook in self._optimizer_state_dict_pre_hooks.values():
            pre_hook(self)
        indices: dict[int, int] = {}
        packed_groups = []
        for group in self.param_groups:
            packed = {key: value for key, value in group.items() if key != "params"}
            for index, param in enumerate(group["params"], len(indices)):
                indices.setdefault(id(param), index)
            packed["params"] = [indices[id(param)] for param in group["params"]]
            packed_groups.append(packed)
        packed_state = {
            (indices[id(key)] if isinstance(key, torch.Tensor) else key): value
            for key, value in self.state.items()
        }
        state_dict: StateDict = {"state": packed_state, "param_groups": packed_groups}
        for post_hook in self._optimizer_state_dict_post_hooks.values():
            replaced = post_hook(self, state_dict)
            if replaced is not None:
                state_dict = replaced
        return state_dict

    def register_load_state_dict_pre_hook(
        self, hook: Callable[[Optimizer, StateDict], StateDict | None], prepend: bool = False
    ) -> RemovableHandle:
        """Call `hook(optimizer, state_dict)` before `load_state_dict`; it may return another dict to load."""
        return _add_hook(self._optimizer_load_state_dict_pre_hooks, hook, prepend)

    def register_load_state_dict_post_hook(
        self, hook: Callable[[Optimizer], None], prepend: bool = False
    ) -> RemovableHandle:
        """Call `hook(optimizer)` after `load_state_dict`."""
        return _add_hook(self._optimizer_load_state_dict_post_hooks, hook, prepend)

    @staticmethod
    def _process_value_according_to_param_policy(
        param: Tensor, value: Tensor, param_id: int, param_groups: list[dict[Any, Any]], key: Hashable = None
    ) -> Tensor:
        """A loaded tensor converted for the state of `param`: to its dtype, except the step count."""
        if key == "step":
            group = next((group for group in param_groups if param_id in group["params"]), {})
            if group.get("capturable") or group.get("fused"):
                return value.to(dtype=torch.float32, device=param.device)
            return value
        if param.is_floating_point():
            return value.to(dtype=param.dtype, device=param.device)
        return value.to(device=param.device)

    def load_state_dict(self, state_dict: StateDict) -> None:
        """Restore state and options from a `state_dict` of an optimiser with the same groups."""
        state_dict = state_dict.copy()
        for pre_hook in self._optimizer_load_state_dict_pre_hooks.values():
            replaced = pre_hook(self, state_dict)
            if replaced is not None:
                state_dict = replaced
        saved_groups = deepcopy(state_dict["param_groups"])
        if len(self.param_groups) != len(saved_groups):
            raise ValueError("loaded state dict has a different number of parameter groups")
        if any(
            len(own_group["params"]) != len(saved_group["params"])
            for own_group, saved_group in zip(self.param_groups, saved_groups)
        ):
            raise ValueError(
                "loaded state dict contains a parameter group that doesn't match the size of optimizer's "
                "group"
            )
        params = dict(
            zip(
                chain.from_iterable(group["params"] for group in saved_groups),
                chain.from_iterable(group["params"] for group in self.param_groups),
            )
        )
        state: defaultdict[Any, Any] = defaultdict(dict)
        for key, value in state_dict["state"].items():
            if key in params:
                state[params[key]] = self._convert_state(params[key], value, key, state_dict["param_groups"])
            else:
                state[key] = value
        groups = [
            _with_params_of(own_group, saved_group)
            for own_group, saved_group in zip(self.param_groups, saved_groups)
        ]
        self.__setstate__({"state": state, "param_groups": groups})
        for post_hook in self._optimizer_load_state_dict_post_hooks.values():
            post_hook(self)

    def _convert_state(
        self, param: Tensor, value: Any, param_id: int, groups: list[Any], key: Hashable = None
    ) -> Any:
        """A loaded value with all its tensors converted for `param`."""
        if isinstance(value, torch.Tensor):
            return self._process_value_according_to_param_policy(param, value, param_id, groups, key)
        if isinstance(value, dict):
            return {k: self._convert_state(param, v, param_id, groups, k) for k, v in value.items()}
        if isinstance(value, (list, tuple)):
            return type(value)(self._convert_state(param, item, param_id, groups) for item in value)  # type: ignore[call-arg]
        return value

    def _fill_groups(self, **options: Any) -> None:
        """Add options that older state dicts lack, with the values they had then."""
        for group in self.param_groups:
            for name, value in options.items():
                group.setdefault(name, value)

    def _numbers_to_tensors(self, *names: str) -> None:
        """Convert counts that older state dicts store as numbers to tensors."""
        for group in self.param_groups:
            dtype = _get_scalar_dtype(group.get("fused"))
            for param in group["params"]:
                state = self.state.get(param, {})
                for name in names:
                    if name in state and not isinstance(state[name], torch.Tensor):
                        state[name] = torch.tensor(float(state[name]), dtype=dtype)


def _optimizer_step_code(self: Optimizer) -> None:
    """Let an active recording read the optimiser's parameters and state."""
    _dispatch.stepped(self)


def _step_with_hooks(func: Callable[..., R], self: Optimizer, args: Args, kwargs: Kwargs) -> R:
    if _global_optimizer_pre_hooks or self._optimizer_step_pre_hooks:
        pre_hooks = chain(_global_optimizer_pre_hooks.values(), self._optimizer_step_pre_hooks.values())
        for pre_hook in list(pre_hooks):
            result = pre_hook(self, args, kwargs)
            if result is None:
                continue
            if not (isinstance(result, tuple) and len(result) == 2):
                raise RuntimeError(
                    f"{func} must return None or a tuple of (new_args, new_kwargs), but got {result}."
                )
            args, kwargs = result
    out = func(*args, **kwargs)
    _optimizer_step_code(self)
    if _global_optimizer_post_hooks or self._optimizer_step_post_hooks:
        post_hooks = chain(self._optimizer_step_post_hooks.values(), _global_optimizer_post_hooks.values())
        for post_hook in list(post_hooks):
            post_hook(self, args, kwargs)
    return out


def _split_names(param_group: dict[str, Any]) -> None:
    """Split (name, parameter) pairs into `params` and `param_names`."""
    params = param_group["params"]
    named = [isinstance(param, tuple) for param in params]
    if not any(named):
        return
    if not all(named):
        raise ValueError("all optimizer params should be with/without names. Some param names are missing")
    param_group["params"] = [param[1] for param in params]
    param_group["param_names"] = [param[0] for param in params]


def _with_params_of(own: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """A loaded group with this optimiser's parameters, and their names if it has none."""
    new["params"] = own["params"]
    if "param_names" in own and "param_names" not in new:
        new["param_names"] = own["param_names"]
    return new


def _type_name(value: Any) -> str:
    kind = type(value)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def _count_step(optimizer: Optimizer, args: Args, kwargs: Kwargs) -> None:
    from ..profiler.step_tracker import KinetoStepTracker

    KinetoStepTracker.increment_step("Optimizer")


if os.environ.get("KINETO_USE_DAEMON"):  # an external profiling daemon is notified of every step
    register_optimizer_step_post_hook(_count_step)
