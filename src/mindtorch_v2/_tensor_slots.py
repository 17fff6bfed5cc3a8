"""The internal fields of a tensor: their defaults in, the functions that allocate tensors and views out. And what else the
compiled core holds of the library: the operators of the class, the base of annotations, where elements of arrays lie, and attributes
per thread.

The fields are slots of the Tensor class, so that a tensor's `__dict__` holds what the program stored there and nothing else. A slot
has no default on its class: the allocator sets all of them. `_array` is the one that it leaves unset.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar, cast
from weakref import ref

from mindtorch_prof.core import compiled

_compiled = compiled("mindtorch_v2._slots")
_Local = TypeVar("_Local", bound=threading.local)

DEFAULTS: dict[str, Any] = {
    "_storage": None,
    "_form": 0,  # the id of shape, strides and type (`_dispatch.form_of`); 0: not computed yet
    "_tensor_id": 0,  # in a recording with tensor ids; negative: its memory was replaced since
    # requires_grad: True or False. In a view of a tensor that does not require gradients: the list `_views_rg` of that
    # tensor, which is empty (false) until it does.
    "_rg": False,
    "_views_rg": None,  # the list that is `_rg` of the views of this tensor; None if it had no view yet
    "_views": None,  # the views of this tensor that are alive: asked with `views_of`
    "_view_link": None,  # of a view, where `_views` of its base is a ring of links (in the compiled core)
    "_grad_fn": None,
    "_output_nr": 0,
    "_base": None,  # the tensor that this is a view of
    "_multi_view": False,  # one of several views that one op returned
    # "no_grad", "inference" or "function": the view was created there, and writing to it raises
    "_view_made_in": None,
    "_seen_version": 0,  # version of the storage when this view's history was created
    "_replay": None,  # the view ops that gave this view, where its base is a wrapper subclass
    "_grad": None,
    "_accumulator": None,
    "_hooks": None,
    "_post_accumulate_hooks": None,
    "_retain_handle": None,
    "_spoiled": None,  # why a backward pass that saved this may not use it
    "_array_missing": False,  # a meta tensor or a wrapper subclass, which have `_array_description` (shape, dtype, strides)
    "_array_description": None,
    "_shown_device": None,  # the device that a wrapper subclass names
    "_func_level": 0,  # the transform of `torch.func` that made this leaf, counted from the outermost
}


class Allocators(NamedTuple):
    """The functions that allocate tensors and know the views among them."""

    new_tensor: Callable[
        [Any], Any
    ]  # new_tensor(cls): a tensor of class `cls` whose fields have their defaults
    new_view: Callable[
        [Any, Any], Any
    ]  # new_view(source, array): a Tensor that is a view of `source`, or of its base
    add_view: Callable[[Any, Any], None]  # add_view(base, view): registers a view that was made otherwise
    views_of: Callable[[Any], list[Any]]  # views_of(tensor): its views that are alive
    # new_result(array, *operands): a Tensor that holds what a kernel returned. None: `_dispatch.wrap_result` is its twin
    new_result: Callable[..., Any] | None


def allocators(cls: type) -> Allocators:
    """The allocators of `cls`, the class whose slots these fields are."""
    if _compiled is not None:
        return Allocators(*_compiled.allocators(cls, DEFAULTS))

    def new_view(source: Any, array: Any) -> Any:
        base = source if source._base is None else source._base
        view = _new_tensor(cls)
        view._array, view._base = array, base
        _add_view(base, view)
        if not base._rg:
            view._rg = base._views_rg
        return view

    return Allocators(_new_tensor, new_view, _add_view, _views_of, None)


def operator(cls: type, name: str, op: Any) -> Any:
    """The method `name` of `cls`, such as `__add__`: what `op.operator` does."""
    return op.operator if _compiled is None else _compiled.Operator(cls, name, op)


def _address(array: Any) -> int:
    """The address of an array's first element."""
    return int(array.__array_interface__["data"][0])


address = _address if _compiled is None else _compiled.address  # 0.03 instead of 1 us


def strides_in_elements(array: Any, is_fresh: bool) -> tuple[int, ...]:
    """Strides in elements, as torch counts them where NumPy's mean nothing: without elements, and along dimensions of length 1 that
    newaxis made or, in a fresh array, which is the result of an op, all of them."""
    item, shape = array.itemsize, array.shape
    strides = [s // item for s in array.strides]
    plain, step = array.size == 0 or (is_fresh and array.flags.c_contiguous), 1
    for d in range(len(shape) - 1, -1, -1):
        if plain or (shape[d] == 1 and strides[d] == 0):
            strides[d] = step
        step = max(shape[d], 1) * strides[d]
    return tuple(strides)


strides = strides_in_elements if _compiled is None else _compiled.strides
# The twins of these are in `_ops._layout`. None: there is no compiled core.
laid_out = None if _compiled is None else _compiled.laid_out
unlike = None if _compiled is None else _compiled.unlike
copy_across = None if _compiled is None else _compiled.copy_across


def per_thread(cls: type[_Local]) -> _Local:
    """An object of a class whose attributes all have defaults and which each thread has for itself."""
    if _compiled is None:
        return cls()
    # reading an attribute takes 15 instead of 41 ns
    return cast(
        "_Local", _compiled.PerThread({n: value for n, value in vars(cls).items() if not n.startswith("__")})
    )


def own_attributes(state: Any, names: tuple[str, ...]) -> Any:
    """Some attributes of such an object on this thread, by subscript, which stay up to date."""
    if _compiled is not None:
        return state.own()
    for name in names:  # into the dict, where they had their defaults
        setattr(state, name, getattr(state, name))
    return state.__dict__


def set_hooks(recorder: Any, ranges: Any) -> None:
    """Tell the compiled operators and annotations the slots of these names in `_dispatch`, which their twins read themselves."""
    if _compiled is not None:
        _compiled.set_recorder(recorder)
        _compiled.set_ranges(ranges)


def compiled_range() -> Any:
    """The compiled base of `record_function`, and its mark for ranges that were not recorded; None: there is none."""
    return None if _compiled is None else (_compiled.Range, _compiled.NOT_RECORDED)


def make_without_init(cls: type) -> None:
    """Let the compiled core make instances of a subclass of its `Range`, whose `__init__` sets name and args, without a call of it."""
    if _compiled is not None:
        _compiled.set_annotation_type(cls)


def recorded_operators() -> int:
    """How many recorded calls of operators in this process had no Python function in between."""
    return 0 if _compiled is None else _compiled.recorded_operators()


def _add_view(base: Any, view: Any) -> None:
    if base._views is None:
        base._views, base._views_rg = {}, []
    remember(base._views, view)


def _views_of(tensor: Any) -> list[Any]:
    views = [reference() for reference in list((tensor._views or {}).values())]
    return [view for view in views if view is not None]


def _new_tensor(kind: Any) -> Any:
    """What the compiled allocator does. The fields are spelled out: a loop over them takes seven times as long."""
    tensor = object.__new__(kind)
    tensor._storage = tensor._views_rg = tensor._views = tensor._view_link = tensor._grad_fn = None
    tensor._base = tensor._view_made_in = None
    tensor._replay = tensor._grad = tensor._accumulator = tensor._hooks = tensor._post_accumulate_hooks = None
    tensor._retain_handle = tensor._spoiled = tensor._array_description = tensor._shown_device = None
    tensor._rg = tensor._multi_view = tensor._array_missing = False
    tensor._form = tensor._tensor_id = tensor._output_nr = tensor._seen_version = tensor._func_level = 0
    return tensor


def remember(references: dict[int, ref], tensor: Any) -> None:
    """Add a weak reference to a tensor to others by id. Dead ones are dropped when the number has doubled, from 64 on."""
    before = len(references)
    references[id(tensor)] = ref(tensor)
    number = len(references)
    if number != before and number >= 64 and not number & (number - 1):
        for key in [key for key, reference in list(references.items()) if reference() is None]:
            del references[key]


def copy_fields(source: Any, target: Any) -> None:
    """Set the internal fields of `target` to those of `source`."""
    for name in ("_array", *DEFAULTS):
        if hasattr(source, name):
            setattr(target, name, getattr(source, name))
