"""Functions of one's own: `Function` with forward and backward, its context, and the node that calls backward."""

from __future__ import annotations

import functools
import warnings
from typing import Any

from .. import _dispatch
from .._graph import RELEASED_TEXT, Node, Switches, attach, edge, grad_state, storage_of, version_of
from .._tensor import Tensor
from .inplace import check_inplace, rebase

__all__ = [
    "FunctionCtx", "BackwardCFunction", "FunctionMeta", "Function", "once_differentiable", "InplaceFunction", "NestedIOFunction",
]  # fmt: skip


class FunctionCtx:
    """What `forward` leaves for `backward`."""

    def save_for_backward(self, *tensors: Any) -> None:
        """Keep inputs or outputs for the backward pass."""
        for tensor in tensors:
            if tensor is not None and not isinstance(tensor, Tensor):
                raise TypeError(f"save_for_backward can only save variables, but argument is of type {type(tensor).__name__}")
        self.to_save = tensors

    def save_for_forward(self, *tensors: Any) -> None:
        """Keep tensors for forward-mode derivatives."""
        self.saved_for_forward = tensors

    def mark_dirty(self, *args: Any) -> None:
        """Say which inputs `forward` wrote to."""
        self.dirty_tensors = args

    def mark_shared_storage(self, *pairs: Any) -> None:
        """Deprecated: sharing is found out without it."""
        warnings.warn(
            "mark_shared_storage is deprecated. Tensors with shared storages are automatically tracked. Note that calls to `set_()` are not tracked",
            FutureWarning, stacklevel=2,
        )  # fmt: skip

    def mark_non_differentiable(self, *args: Any) -> None:
        """Say which outputs have no gradient."""
        self.non_differentiable = args

    def set_materialize_grads(self, value: bool) -> None:
        """Say whether missing gradients reach `backward` as zeros (the default) or as None."""
        self.materialize_grads = value


class _HookMixin:
    """Kept for its name."""


class BackwardCFunction(Node, FunctionCtx, _HookMixin):
    """The node of a user's function; it is the `ctx` of its forward and backward."""

    _forward_cls: Any
    to_save: tuple = ()
    dirty_tensors: tuple = ()
    non_differentiable: tuple = ()
    materialize_grads = True
    needs_input_grad: tuple = ()
    _saved: Any = None  # [(tensor or None, version, output number or -1)], or None once freed
    _input_map: tuple = ()  # for each edge, the place of its tensor among the arguments
    _options: tuple = ()  # shape and dtype of each output, for zeros

    @property
    def saved_tensors(self) -> tuple:
        """What save_for_backward kept, checked for writes since."""
        if self._saved is None:
            if self.released:
                raise RuntimeError(RELEASED_TEXT)
            return tuple(self.to_save)
        return tuple(self._unpack(*entry) for entry in self._saved)

    @property
    def saved_variables(self) -> tuple:
        warnings.warn("'saved_variables' is deprecated; use 'saved_tensors'", DeprecationWarning, stacklevel=2)
        return self.saved_tensors

    def _unpack(self, tensor: Any, version: int, number: int, unpack: Any, history: Any) -> Any:
        if tensor is None:
            return None
        if unpack is not None:
            tensor = unpack(tensor)
            if history is not None and tensor._grad_fn is None:
                fresh = object.__new__(Tensor)
                fresh._array, fresh._storage = tensor._array, storage_of(tensor)
                fn, place = history
                if hasattr(fn, "variable"):
                    return fn.variable
                attach(fresh, fn, place)
                return fresh
            return tensor
        if version_of(tensor) != version:
            from .._graph import modified_text

            owner = f", which is output {number} of {self.name()}" if number >= 0 else ""
            raise RuntimeError(modified_text(tensor, owner, version_of(tensor), version))
        if number >= 0 and grad_state.enabled:
            fresh = object.__new__(type(tensor))
            fresh._array, fresh._storage = tensor._array, tensor._storage
            attach(fresh, self, number)
            return fresh
        return tensor

    def _keep(self, outputs: tuple) -> None:
        """Turn `to_save` into saved entries: outputs without history, so that no cycle arises."""
        saved = []
        hooks = grad_state.saved_hooks if Switches.saved_hooks else ()
        for tensor in self.to_save:
            if tensor is None:
                saved.append((None, 0, -1, None, None))
                continue
            number = next((i for i, output in enumerate(outputs) if output is tensor), -1)
            history = edge(tensor)
            kept = tensor
            if number >= 0:
                kept = object.__new__(Tensor)
                kept._array, kept._storage = tensor._array, storage_of(tensor)
            unpack = None
            if hooks:
                from .._graph import _packed

                kept, unpack = _packed(hooks[-1][0], kept), hooks[-1][1]
            saved.append((kept, version_of(tensor), number, unpack, history))
        self._saved = saved
        self.to_save = ()

    def release(self) -> None:
        self.released = True
        self._saved = None
        self.to_save = ()

    def apply(self, *grads: Any) -> tuple:
        cls = self._forward_cls
        if self.materialize_grads:
            grads = tuple(self._zero(i) if g is None else g for i, g in enumerate(grads))
        backward, vjp = cls.backward, cls.vjp
        if backward is not Function.backward and vjp is not Function.vjp:
            raise RuntimeError(
                "Implementing both 'backward' and 'vjp' for a custom Function is not allowed. You should only implement one of them."
            )
        results = (vjp if vjp is not Function.vjp else backward)(self, *grads)
        results = results if isinstance(results, tuple) else tuple(results) if isinstance(results, list) else (results,)
        count = len(self.needs_input_grad)
        if len(results) > count and all(r is None for r in results[count:]):
            results = results[:count]
        if len(results) != count:
            raise RuntimeError(
                f"function {self.name()} returned an incorrect number of gradients (expected {count}, got {len(results)})"
            )
        for place, result in enumerate(results):
            if result is not None and not isinstance(result, Tensor):
                raise TypeError(f"expected Variable or None (got {type(result).__name__})")
            if result is not None and place not in self._input_map:
                raise RuntimeError(
                    f"function {self.name()} returned a gradient different than None at position {place + 1}, but the corresponding "
                    "forward input was not a Variable"
                )
        return tuple(results[place] for place in self._input_map)

    def _zero(self, number: int) -> Any:
        shape, dtype = self._options[number]
        return None if dtype is None else _dispatch.FUNCTIONS["zeros"](shape, dtype=dtype)

    def apply_jvp(self, *args: Any) -> Any:
        """Call the function's jvp."""
        return self._forward_cls.jvp(self, *args)

    def _register_hook_dict(self, hooks: Any) -> None:
        self._post_hooks = hooks


class FunctionMeta(type):
    """Gives each function its own node class, named after it."""

    def __init__(cls, name: str, bases: Any, attrs: Any) -> None:
        cls._backward_cls = type(name + "Backward", (BackwardCFunction,), {"_forward_cls": cls, "__module__": attrs.get("__module__", "")})
        super().__init__(name, bases, attrs)


class Function(FunctionCtx, metaclass=FunctionMeta):
    """Base of one's own differentiable functions: static `forward` and `backward`, called through `apply`."""

    _backward_cls: Any
    generate_vmap_rule = False

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        warnings.warn(
            f"{self.__class__} should not be instantiated. Methods on autograd functions are all static, so you should invoke them on the "
            "class itself. Instantiating an autograd function will raise an error in a future version of PyTorch.",
            DeprecationWarning, stacklevel=2,
        )  # fmt: skip

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(
            "Legacy autograd function with non-static forward method is deprecated. Please use new-style autograd function with static "
            "forward method. (Example: https://pytorch.org/docs/stable/autograd.html#torch.autograd.Function)"
        )

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        """Compute the outputs from the inputs."""
        raise NotImplementedError("You must implement the forward function for custom autograd.Function.")

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple, output: Any) -> Any:
        """Keep what backward needs, when forward takes no ctx."""
        raise NotImplementedError("setup_context is not implemented.")

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        """Compute the inputs' gradients from the outputs'."""
        raise NotImplementedError(
            "You must implement either the backward or vjp method for your custom autograd.Function to use it with backward mode AD."
        )

    vjp = backward

    @staticmethod
    def jvp(ctx: Any, *grad_inputs: Any) -> Any:
        """Compute the outputs' tangents from the inputs'."""
        raise NotImplementedError("You must implement the jvp function for custom autograd.Function to use it with forward mode AD.")

    @staticmethod
    def vmap(info: Any, in_dims: tuple, *args: Any) -> Any:
        """Compute the function over a batch dimension."""
        raise NotImplementedError(
            "To use autograd.Function with vmap, you must either override the vmap staticmethod or set generate_vmap_rule=True."
        )

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Run forward and, if gradients are recorded, put a node into the graph."""
        if cls.setup_context is not Function.setup_context and kwargs:
            import inspect

            bound = inspect.signature(cls.forward).bind(*args, **kwargs)
            bound.apply_defaults()
            args, kwargs = bound.args, {}
        ranges = _dispatch.ranges
        if ranges is None:
            return _apply(cls, args, kwargs)
        token = ranges.enter(cls.__name__, 0, grad_state.seq if grad_state.enabled else -1, 0, args)
        try:
            return _apply(cls, args, kwargs)
        finally:
            ranges.exit(token)

    @staticmethod
    def _compiled_autograd_key(ctx: Any) -> Any:
        return (ctx._forward_cls,)


def _apply(cls: Any, args: tuple, kwargs: dict) -> Any:
    state = grad_state
    enabled = state.enabled
    ctx = cls._backward_cls()
    tensors = [(place, a) for place, a in enumerate(args) if isinstance(a, Tensor)]
    ctx.needs_input_grad = tuple(isinstance(a, Tensor) and a._rg for a in args)
    recording = enabled and any(a._rg for _, a in tensors)
    edges = tuple(edge(a) for _, a in tensors) if recording else ()
    state.enabled = False
    try:
        if cls.setup_context is Function.setup_context:
            output = cls.forward(ctx, *args, **kwargs)
        else:
            output = cls.forward(*args, **kwargs)
            cls.setup_context(ctx, args, output)
    finally:
        state.enabled = enabled
    outputs = output if isinstance(output, (tuple, list)) else (output,)
    outputs = tuple(outputs)
    for dirty in ctx.dirty_tensors:
        storage_of(dirty)._version += 1
    ctx._input_map = tuple(place for place, _ in tensors)
    ctx.next = edges
    ctx.n_outputs = len(outputs)
    if recording:
        ctx.seq = state.seq
        state.seq = ctx.seq + 1
        if _dispatch.recorder is not None:
            _dispatch.mark_node(ctx)
        outputs = _attach_outputs(ctx, outputs, [a for _, a in tensors])
    ctx._options = tuple(
        (tuple(o.shape), o.dtype) if isinstance(o, Tensor) and o.dtype._rank >= 2 else ((), None) for o in outputs
    )
    shapes = tuple(o._array.shape if isinstance(o, Tensor) and not o._array_missing else () for o in outputs)
    dtypes = tuple(o._array.dtype if isinstance(o, Tensor) and not o._array_missing else None for o in outputs)
    ctx.shapes, ctx.dtypes = (shapes[0], dtypes[0]) if len(outputs) == 1 else (shapes, dtypes)
    if recording:
        ctx._keep(outputs)
    if not isinstance(output, (tuple, list)):
        return outputs[0]
    return outputs


def _attach_outputs(ctx: Any, outputs: tuple, inputs: list) -> tuple:
    """Tie the outputs to the node: new tensors, inputs passed through, inputs written in place."""
    made = []
    for number, output in enumerate(outputs):
        if not isinstance(output, Tensor) or any(output is t for t in ctx.non_differentiable):
            if isinstance(output, Tensor) and any(output is t for t in inputs):
                output = output.detach()
            made.append(output)
            continue
        if output.dtype._rank < 2:
            made.append(output)
            continue
        if any(output is t for t in ctx.dirty_tensors):
            check_inplace(output)
            rebase(output, ctx)
        elif any(output is t for t in inputs):
            state, enabled = grad_state, grad_state.enabled
            state.enabled = False
            try:
                output = output.view_as(output)
            finally:
                state.enabled = enabled
            output._base = None
            attach(output, ctx, number)
        else:
            if output._base is not None:
                fresh = object.__new__(type(output))
                fresh._array, fresh._storage = output._array, output._storage
                ctx.to_save = tuple(fresh if t is output else t for t in ctx.to_save)
                output = fresh
            attach(output, ctx, number)
        made.append(output)
    return tuple(made)


def once_differentiable(fn: Any) -> Any:
    """A backward that is not differentiable itself: differentiating it again raises."""

    @functools.wraps(fn)
    def once(ctx: Any, *args: Any) -> Any:
        state, enabled = grad_state, grad_state.enabled
        state.enabled = False
        try:
            outputs = fn(ctx, *args)
        finally:
            state.enabled = enabled
        if not enabled or not any(isinstance(a, Tensor) and a._rg for a in args):
            return outputs
        listed = outputs if isinstance(outputs, tuple) else (outputs,)
        made = []
        for output in listed:
            if output is None:
                made.append(None)
                continue
            fresh = output.detach()
            node = _DelayedErrorNode()
            node.shapes, node.dtypes = fresh._array.shape, fresh._array.dtype
            node.seq = state.seq
            attach(fresh, node)
            made.append(fresh)
        return tuple(made) if isinstance(outputs, tuple) else made[0]

    return once


class _DelayedErrorNode(Node):
    """Raises when the gradient of a once-differentiable backward is asked for."""

    def name(self) -> str:
        return "torch::autograd::Error"

    def apply(self, *grads: Any) -> tuple:
        raise RuntimeError(
            "trying to differentiate twice a function that was marked with @once_differentiable"
        )


class InplaceFunction(Function):
    """Kept for old code: a function that may work in place."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace


class NestedIOFunction(Function):
    """Kept for old code; nested inputs were removed from torch's public interface."""
