"""torch.utils.module_tracker: the names of the modules that are running, in the forward and in the backward
pass.
"""

from __future__ import annotations

import logging
import weakref
from collections.abc import Callable
from typing import Any

import mindtorch_v2 as torch

from ._pytree import tree_leaves

__all__ = ["ModuleTracker"]

logger = logging.getLogger(__name__)


class ModuleTracker:
    """Context manager: `parents` has the full names of the running modules, and "Global".

    A name is the path from the outermost called module, which is named by its class. In the backward pass a
    module runs from when the gradients of its outputs arrive until those of its inputs do.
    """

    parents: set[str]

    def __init__(self) -> None:
        self.parents = {"Global"}
        self._known_modules: weakref.WeakKeyDictionary[Any, str] = weakref.WeakKeyDictionary()
        self._seen_modules: weakref.WeakSet[Any] = weakref.WeakSet()
        self._has_callback = False
        self._hooks: list[Any] = []

    @property
    def is_bw(self) -> bool:
        """Whether a backward pass is running."""
        return torch.autograd._current_graph_task_id() != -1

    def _maybe_set_engine_callback(self) -> None:
        """Reset the running modules at the end of this backward pass."""
        if self._has_callback:
            return

        def reset() -> None:
            self.parents = {"Global"}
            self._has_callback = False

        torch.autograd.Variable._execution_engine.queue_callback(reset)
        self._has_callback = True

    def _get_mod_name(self, mod: Any) -> str:
        name = self._known_modules.get(mod)
        if name is None:
            name = self._known_modules[mod] = type(mod).__name__
        if mod not in self._seen_modules:
            for child_name, child in mod.named_children():
                self._known_modules[child] = f"{name}.{child_name}"
                self._get_mod_name(child)
            self._seen_modules.add(mod)
        return name

    def _get_append_fn(self, name: str, is_bw: bool) -> Callable[..., None]:
        def enter(*_: Any) -> None:
            if is_bw:
                self._maybe_set_engine_callback()
            if name in self.parents and not self.is_bw:
                self._log_inconsistency("this Module was already entered", name, is_bw)
            self.parents.add(name)

        return enter

    def _get_pop_fn(self, name: str, is_bw: bool) -> Callable[..., None]:
        def leave(*_: Any) -> None:
            if name in self.parents:
                self.parents.remove(name)
            elif not self.is_bw:
                self._log_inconsistency("the Module we are exiting was never entered", name, is_bw)

        return leave

    def _log_inconsistency(self, problem: str, name: str, is_bw: bool) -> None:
        during = "backward" if is_bw else "forward"
        logger.info(
            "The module hierarchy tracking seems to be broken as %s. %s during %s", problem, name, during
        )

    def _fw_pre_hook(self, mod: Any, input: Any) -> None:
        name = self._get_mod_name(mod)
        self._get_append_fn(name, False)()
        self._watch(input, self._get_pop_fn(name, True))

    def _fw_post_hook(self, mod: Any, input: Any, output: Any) -> None:
        name = self._get_mod_name(mod)
        self._get_pop_fn(name, False)()
        self._watch(output, self._get_append_fn(name, True))

    def _watch(self, values: Any, callback: Callable[..., None]) -> None:
        """Call `callback` when the gradients of all tensors in `values` have arrived."""
        tensors = [t for t in tree_leaves(values) if isinstance(t, torch.Tensor) and t.requires_grad]
        if tensors:
            self._hooks.append(torch.autograd.graph.register_multi_grad_hook(tensors, callback))

    def __enter__(self) -> ModuleTracker:
        from ..nn.modules import module

        self._fw_pre_handle = module.register_module_forward_pre_hook(self._fw_pre_hook)
        self._fw_post_handle = module.register_module_forward_hook(self._fw_post_hook)
        return self

    def __exit__(self, *args: Any) -> None:
        self._fw_pre_handle.remove()
        self._fw_post_handle.remove()
        for hook in self._hooks:
            hook.remove()
        self._hooks.clear()
