"""Custom autograd functions: `Function` with forward and backward, its context, and the node that calls
backward.
"""

from __future__ import annotations

import functools
import inspect
import warnings
from collections import OrderedDict
from typing import Any

from .. import _dispatch, _dtype
from .._graph import Node, Switches, attach, edge, grad_state, pack_saved, storage_of, unpack, version_of
from .._meta import is_meta
from .._tensor import Tensor
from ._functions import DelayedError
from .inplace import check_inplace, rebase

__all__ = [
    "FunctionCtx", "BackwardCFunction", "FunctionMeta", "Function", "once_differentiable", "InplaceFunction", "NestedIOFunction",
]  # fmt: skip


class FunctionCtx:
    """The context that `forward` fills and `backward` reads."""

    def save_for_backward(self, *tensors: Any) -> None:
        """Save inputs or outputs for the backward pass."""
        for place, tensor in enumerate(tensors):
            if tensor is not None and not isinstance(tensor, Tensor):
                raise TypeError(
                    f"save_for_backward can only save variables, but argument {place} is of type {type(tensor).__name__}"
                )
        self.to_save = tensors

    def save_for_forward(self, *tensors: Any) -> None:
        """Save tensors for forward-mode derivatives."""
        for tensor in tensors:
            if tensor is not None and not isinstance(tensor, Tensor):
                raise AssertionError(
                    "save_for_forward expects all arguments to be tensors; you should save non-tensors as attributes on ctx."
                )
        self.saved_for_forward = tensors

    def mark_dirty(self, *args: Any) -> None:
        """Declare the inputs that `forward` wrote to."""
        self.dirty_tensors = args

    def mark_shared_storage(self, *pairs: Any) -> None:
        """Deprecated: shared storage is detected without it."""
        warnings.warn(
            "`mark_shared_storage` is deprecated. Tensors with shared storages are automatically tracked. Note that calls to `set_()` "
            "are not tracked",
            FutureWarning,
            stacklevel=2,
        )

    def mark_non_differentiable(self, *args: Any) -> None:
        """Declare outputs without a gradient."""
        self.non_differentiable = args

    def set_materialize_grads(self, value: bool) -> None:
        """Set whether missing gradients reach `backward` as zeros (the default) or as None."""
        self.materialize_grads = value


_ContextMethodMixin = FunctionCtx


class _HookMixin:
    """Kept for compatibility: torch exports this name."""

    @staticmethod
    def _register_hook(backward_hooks: Any, hook: Any) -> Any:
        from ..utils.hooks import RemovableHandle

        if backward_hooks is None:
            backward_hooks = OrderedDict()
        handle = RemovableHandle(backward_hooks)
        backward_hooks[handle.id] = hook
        return backward_hooks, handle


class _FunctionBase(Node):
    """State shared by a user's function and its node between forward and backward."""

    to_save: Any = None  # set during forward
    saved_for_forward: Any = None
    dirty_tensors: Any = None
    non_differentiable: Any = None
    materialize_grads = True
    frees_gradients = True
    needs_input_grad: tuple = ()
    saved_names = saved_tensor_names = ("tensors",)
    s_tensors: Any = ()  # what was saved, after forward; released after backward
    v_tensors: tuple = ()
    _input_map: tuple = ()  # for each edge, the index of its tensor among the arguments
    _clear_on_access = False
    _accessed = False

    @property
    def saved_tensors(self) -> tuple:
        """The tensors saved by `save_for_backward`, checked for later writes."""
        if self._clear_on_access:
            if self._accessed:
                raise RuntimeError(
                    "saved_tensors can only be accessed once when clear_saved_tensors_on_access=True is set on the autograd.Function. "
                    "Either access saved_tensors only once, or set clear_saved_tensors_on_access=False."
                )
            self._accessed = True
        tensors = tuple(unpack(self, "tensors"))
        if self._clear_on_access:
            self.maybe_clear_saved_tensors()
        return tensors

    @property
    def saved_variables(self) -> tuple:
        """The old name of `saved_tensors`."""
        warnings.warn(
            "'saved_variables' is deprecated; use 'saved_tensors'", DeprecationWarning, stacklevel=2
        )
        return self.saved_tensors

    @property
    def requires_grad(self) -> bool:
        """Whether the outputs take part in gradients."""
        return any(self.needs_input_grad)

    def maybe_clear_saved_tensors(self) -> None:
        """Release what was saved, unless the running backward pass keeps the graph."""
        if grad_state.run is None or not grad_state.run.keep_graph:
            Node.release(self)

    def _save(self, outputs: tuple) -> None:
        """Turn `to_save` into saved values: outputs without history, so that there is no reference cycle."""
        saved: list[Any] = []
        tensors = self.to_save or ()
        for tensor in tensors:
            number = next(
                (i for i, output in enumerate(outputs) if output is tensor and tensor._grad_fn is self), -1
            )
            saved.append(tensor if tensor is None or number < 0 else _dispatch.save_result(tensor, number))
        self.v_tensors = tuple(0 if tensor is None else version_of(tensor) for tensor in tensors)
        self.s_tensors = tuple(saved)
        self.to_save = None
        if Switches.saved_hooks:
            pack_saved(self)


class BackwardCFunction(_FunctionBase, FunctionCtx, _HookMixin):
    """The node of a user's function; it is the `ctx` of its forward and backward."""

    _forward_cls: Any
    takes_none = is_users = True

    def apply(self, *grads: Any) -> tuple:
        """Call the user's backward; gradients for the tensors among the arguments of forward."""
        cls = self._forward_cls
        if self.materialize_grads:
            grads = tuple(self._zero(i) if g is None else g for i, g in enumerate(grads))
        results = (
            self._get_user_fn()(self, list(grads))
            if cls.boxed_grads_call
            else self._get_user_fn()(self, *grads)
        )
        results = results if isinstance(results, tuple) else (results,)
        count = len(self.needs_input_grad)
        if len(results) > count and all(r is None for r in results[count:]):
            results = results[:count]
        if len(results) != count:
            raise RuntimeError(
                f"function {self.name()} returned an incorrect number of gradients (expected {count}, got {len(results)})"
            )
        for index, result in enumerate(results):
            if result is None:
                continue
            if index not in self._input_map:
                raise RuntimeError(
                    f"function {self.name()} returned a gradient different than None at position {index + 1}, but the corresponding "
                    "forward input was not a Variable"
                )
            if not isinstance(result, Tensor):
                raise RuntimeError(f"expected Variable or None (got {type(result).__name__})")
            if result.dtype.is_complex:
                self._check_complex(self._input_map.index(index))
        return tuple([results[index] for index in self._input_map])

    def _check_complex(self, place: int) -> None:
        """Raise if a real input gets a complex gradient from the user's backward."""
        following = self.next[place]
        if following is not None and following[0]._input_metadata_of(following[1])[1].kind not in "cW":
            raise RuntimeError(
                "Expected isFloatingType(grad.scalar_type()) || (input_is_complex == grad_is_complex) to be true, but got false.  "
                "(Could this error message be improved?  If so, please report an enhancement request to PyTorch.)"
            )

    def _get_user_fn(self) -> Any:
        backward, vjp = self._forward_cls.backward, self._forward_cls.vjp
        if backward is not Function.backward and vjp is not Function.vjp:
            raise RuntimeError(
                "Implementing both 'backward' and 'vjp' for a custom Function is not allowed. You should only implement one of them."
            )
        return vjp if vjp is not Function.vjp else backward

    def _zero(self, number: int) -> Any:
        shape, np_dtype = self._input_metadata_of(number)
        if np_dtype is None:
            return None
        return _dispatch.FUNCTIONS["zeros"](shape, dtype=_dtype.BY_NUM[np_dtype.num])

    def __repr__(self) -> str:
        return f"<torch.autograd.function.{type(self).__name__} object at {id(self):#x}>"

    def apply_jvp(self, *args: Any) -> Any:
        """Call the function's jvp."""
        return self._forward_cls.jvp(self, *args)

    def _compiled_autograd_key(self) -> Any:
        return self._forward_cls._compiled_autograd_key(self)


class FunctionMeta(type):
    """Gives each function its own node class, named after it."""

    def __init__(cls, name: str, bases: Any, attrs: Any) -> None:
        namespace = {"_forward_cls": cls, "__module__": "mindtorch_v2.autograd.function"}
        cls._backward_cls = type(name + "Backward", (BackwardCFunction,), namespace)
        cls._backward_cls._clear_on_access = getattr(cls, "clear_saved_tensors_on_access", False)
        super().__init__(name, bases, attrs)


class _SingleLevelFunction(_FunctionBase, FunctionCtx, _HookMixin, metaclass=FunctionMeta):
    """The part of `Function` that does not concern how it is called."""

    _backward_cls: Any


class Function(_SingleLevelFunction):
    """Base class of custom differentiable functions: static `forward` and `backward`, called through `apply`."""

    generate_vmap_rule = False
    clear_saved_tensors_on_access = False  # True: backward may read saved_tensors once; they are freed then
    boxed_grads_call = False  # True: backward gets its gradients as one list

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
        """Save what backward needs, if forward takes no ctx."""
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
        raise NotImplementedError(
            "You must implement the jvp function for custom autograd.Function to use it with forward mode AD."
        )

    @staticmethod
    def vmap(info: Any, in_dims: tuple, *args: Any) -> Any:
        """Compute the function over a batch dimension."""
        raise NotImplementedError(
            "To use autograd.Function with vmap, you must either override the vmap staticmethod or set generate_vmap_rule=True."
        )

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Run forward and, if gradients are enabled, add a node to the graph."""
        if cls.setup_context is not Function.setup_context:
            bound = _signature(cls.forward).bind(*args, **kwargs)
            bound.apply_defaults()
            args, kwargs = bound.args, {}
        return _dispatch.in_range(_forward, _apply, cls, (args, kwargs))

    @staticmethod
    def _compiled_autograd_key(ctx: Any) -> Any:
        return (ctx._forward_cls,)


def _forward(cls: Any, arguments: tuple[tuple, dict]) -> tuple:
    """The range of a call of `apply`."""
    inputs = tuple([a for a in arguments[0] if _is_recorded_input(a)])
    return cls.__name__, _dispatch.FUNCTION_SCOPE, grad_state.seq if grad_state.enabled else -1, 0, inputs


_NUMBERS = (int, float, complex, type(None))


def _is_recorded_input(argument: Any) -> bool:
    """Whether a profiler records an argument as an input: tensors, numbers, lists of numbers and None; no
    other object.
    """
    if isinstance(argument, (Tensor, *_NUMBERS)):
        return True
    return isinstance(argument, (list, tuple)) and all(isinstance(item, _NUMBERS) for item in argument)


_signature = functools.lru_cache(maxsize=None)(inspect.signature)


def _apply(cls: Any, arguments: tuple[tuple, dict]) -> Any:
    args, kwargs = arguments
    state = grad_state
    enabled = state.enabled
    ctx = cls._backward_cls()
    tensor_indices = [index for index, a in enumerate(args) if isinstance(a, Tensor)]
    tensors = [args[index] for index in tensor_indices]
    ctx.needs_input_grad = tuple([isinstance(a, Tensor) and a._rg for a in args])
    recording = enabled and any(ctx.needs_input_grad)
    ctx._input_map = tuple(tensor_indices)
    ctx.next = tuple([edge(a) for a in tensors]) if recording else ()
    state.enabled = False
    try:
        if cls.setup_context is Function.setup_context:
            output = cls.forward(ctx, *args, **kwargs)
        else:
            output = cls.forward(*args, **kwargs)
            cls.setup_context(ctx, args, output)
    finally:
        state.enabled = enabled
    outputs = output if isinstance(output, tuple) else (output,)
    _check_dirty(ctx, outputs, recording)
    ctx.n_outputs = len(outputs)
    shapes = tuple([o._array.shape if isinstance(o, Tensor) and not is_meta(o) else () for o in outputs])
    dtypes = tuple([o._array.dtype if isinstance(o, Tensor) and not is_meta(o) else None for o in outputs])
    ctx.shapes, ctx.dtypes = (shapes[0], dtypes[0]) if len(outputs) == 1 else (shapes, dtypes)
    if recording:
        ctx.seq = state.seq
        state.seq = ctx.seq + 1
        _dispatch.mark_node(ctx)
        attached = _attach_outputs(ctx, outputs, tensors)
        ctx._save(attached)
    else:
        attached = tuple(
            [_as_alias(o) if _among(o, tensors) and not _among(o, ctx.dirty_tensors) else o for o in outputs]
        )
        ctx.to_save = None
    ctx.dirty_tensors = ctx.non_differentiable = None
    return attached if isinstance(output, tuple) else attached[0]


def _among(value: Any, tensors: Any) -> bool:
    return isinstance(value, Tensor) and any(value is t for t in tensors or ())


def _check_dirty(ctx: Any, outputs: tuple, recording: bool) -> None:
    for dirty in ctx.dirty_tensors or ():
        if not _among(dirty, outputs):
            raise RuntimeError(
                "Some elements marked as dirty during the forward method were not returned as output. The inputs that are modified "
                "inplace must all be outputs of the Function."
            )
        if recording:
            if dirty._rg and dirty._base is None and dirty._grad_fn is None:
                raise RuntimeError(
                    "a leaf Variable that requires grad has been used in an in-place operation."
                )
            # autograd learns here that forward wrote to the tensor
            if dirty._seen_version != version_of(dirty):
                dirty._seen_version = version_of(dirty)
            check_inplace(dirty)
        storage_of(dirty)._version += 1


def _as_alias(tensor: Tensor) -> Any:
    """A view of an input that a function returned unchanged."""
    state, enabled = grad_state, grad_state.enabled
    state.enabled = False
    try:
        return tensor.view_as(tensor)
    finally:
        state.enabled = enabled


def _attach_outputs(ctx: Any, outputs: tuple, inputs: list) -> tuple:
    """Attach the node to the outputs: new tensors, inputs passed through, inputs written in place."""
    attached: list[Any] = []
    for number, output in enumerate(outputs):
        if not isinstance(output, Tensor) or output.dtype._rank < 2:
            attached.append(output)
        elif _among(output, ctx.non_differentiable):
            attached.append(output.detach() if _among(output, inputs) else output)
        elif _among(output, ctx.dirty_tensors):
            rebase(output, ctx, number)
            attached.append(output)
        else:
            attached.append(_attach(ctx, output, number, _among(output, inputs)))
    return tuple(attached)


def _attach(ctx: Any, output: Any, number: int, is_input: bool) -> Any:
    if is_input:
        output = _as_alias(output)
    if output._base is not None:
        output._view_made_in = "function"
        output._multi_view = ctx.n_outputs > 1
        output._seen_version = version_of(output)
    attach(output, ctx, number)
    return output


def once_differentiable(fn: Any) -> Any:
    """Decorate a backward that is not differentiable: differentiating it again raises."""

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
        error = DelayedError(
            "trying to differentiate twice a function that was marked with @once_differentiable"
        )
        output_tuple = outputs if isinstance(outputs, tuple) else (outputs,)
        delayed = tuple([None if output is None else error(output) for output in output_tuple])
        return delayed if isinstance(outputs, tuple) else delayed[0]

    return once


class InplaceFunction(Function):
    """Kept for old code: a function that may work in place."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace


def _flatten(tree: Any) -> tuple:
    """The tensors in nested lists and tuples, in order."""
    if isinstance(tree, (list, tuple)):
        return tuple(leaf for branch in tree for leaf in _flatten(branch))
    return (tree,) if isinstance(tree, Tensor) else ()


def _unflatten(tree: Any, tensors: Any) -> Any:
    """`tree` with its tensors replaced by those of an iterator, in order."""
    if isinstance(tree, (list, tuple)):
        return type(tree)(_unflatten(branch, tensors) for branch in tree)
    return next(tensors) if isinstance(tree, Tensor) else tree


class NestedIOFunction(Function):
    """A function whose inputs and outputs are nested lists and tuples, as `forward_extended` and
    `backward_extended` see them.
    """

    def _do_forward(self, *input: Any) -> Any:
        self._nested_input = input
        outputs = self.forward_extended(*input)
        self._nested_output = outputs
        return _flatten(outputs)

    def _do_backward(self, gradients: tuple, retain_variables: bool) -> Any:
        self.retain_variables = retain_variables
        return _flatten(self.backward_extended(*_unflatten(self._nested_output, iter(gradients))))

    def backward(self, *gradients: Any) -> Any:  # type: ignore[override]
        """Call `backward_extended` with gradients nested like the outputs."""
        return self.backward_extended(*_unflatten(self._nested_output, iter(gradients)))

    def forward(self, *args: Any) -> Any:  # type: ignore[override]
        """Call `forward_extended`."""
        return self.forward_extended(*args)

    def forward_extended(self, *input: Any) -> Any:
        """Compute the outputs."""
        raise NotImplementedError

    def backward_extended(self, *grad_output: Any) -> Any:
        """Compute the inputs' gradients."""
        raise NotImplementedError
