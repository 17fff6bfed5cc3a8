"""Calls a module with other tensors as its parameters, without changing the module."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator
from typing import Any

import mindtorch_v2 as torch

from ._named_member_accessor import NamedMemberAccessor

__all__ = ["functional_call"]


def _untie_named_tensors_map(
    module: Any, parameters_and_buffers: dict[str, torch.Tensor]
) -> dict[str, torch.Tensor]:
    """The given tensors, also under the other names of tied members."""
    members: dict[str, Any] = {}
    members.update(module.named_parameters(remove_duplicate=False))
    members.update(module.named_buffers(remove_duplicate=False))
    names_of: dict[int, list[str]] = {}
    for name, tensor in members.items():
        names_of.setdefault(id(tensor), []).append(name)

    untied = dict(parameters_and_buffers)
    for name, tensor in parameters_and_buffers.items():
        if name not in members:
            continue
        tied = names_of[id(members[name])]
        passed_names = [other for other in tied if other in parameters_and_buffers]
        if any(parameters_and_buffers[other] is not tensor for other in passed_names):
            raise ValueError(
                f"functional_call got multiple values for keys {sorted(passed_names)}, which are tied. "
                "Consider using tie_weights=False"
            )
        untied.update(dict.fromkeys(tied, tensor))
    return untied


@contextlib.contextmanager
def _reparametrize_module(
    module: Any,
    parameters_and_buffers: dict[str, torch.Tensor],
    tie_weights: bool = False,
    strict: bool = False,
    stack_weights: bool = False,
) -> Iterator[None]:
    """Context manager: the module uses the given tensors; tensors that it sets itself are stored in the
    dictionary.
    """
    tensors = parameters_and_buffers
    if tie_weights:
        tensors = _untie_named_tensors_map(module, parameters_and_buffers)
    accessor = NamedMemberAccessor(module)
    if strict:
        missing, unexpected = accessor.check_keys(tensors)
        problems = []
        if unexpected:
            problems.append(f"Unexpected key(s): {', '.join(map(repr, unexpected))}.")
        if missing:
            problems.append(f"Missing key(s): {', '.join(map(repr, missing))}.")
        if problems:
            lines = "\n\t".join(problems)
            raise RuntimeError(f"Error(s) in reparametrizing for {module._get_name()}:\n\t{lines}")

    originals: dict[str, torch.Tensor] = {}
    try:
        originals, _ = accessor.swap_tensors_dict(tensors, allow_missing=True)
        yield
    finally:
        names = list(reversed(originals)) if stack_weights else list(originals)
        changed, _ = accessor.swap_tensors_dict({name: originals[name] for name in names}, allow_missing=True)
        parameters_and_buffers.update({k: changed[k] for k in parameters_and_buffers if k in changed})


def functional_call(
    module: Any,
    parameters_and_buffers: dict[str, torch.Tensor],
    args: Any | tuple[Any, ...] | None = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """Deprecated location of `torch.func.functional_call`."""
    warnings.warn(
        "`torch.nn.utils.stateless.functional_call` is deprecated as of PyTorch 2.0 and will be removed in "
        "a future "
        "version of PyTorch. Please use `torch.func.functional_call` instead which is a drop-in replacement.",
        category=FutureWarning,
        stacklevel=2,
    )
    return _functional_call(
        module, parameters_and_buffers, args, kwargs, tie_weights=tie_weights, strict=strict
    )


def _functional_call(
    module: Any,
    parameters_and_buffers: dict[str, torch.Tensor],
    args: Any | tuple[Any, ...] | None = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    if args is None:
        args = ()
    elif not isinstance(args, tuple):
        args = (args,)
    with _reparametrize_module(module, parameters_and_buffers, tie_weights=tie_weights, strict=strict):
        return module(*args, **(kwargs or {}))
