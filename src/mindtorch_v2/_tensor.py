"""The Tensor class: an array, its storage, its place in the autograd graph. `_ops` installs the ops as methods."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _device, _dispatch, _dtype, _storage
from ._dtype import BY_NUM
from ._graph import (
    Node,
    Switches,
    edge,
    grad_state,
    is_inference,
    note_holder,
    set_requires_grad,
    storage_of,
    version_of,
)
from ._overrides import disabled_torch_dispatch
from ._size import Size
from ._storage import UntypedStorage
from ._tensor_slots import DEFAULTS, address, allocators, operator, strides, strides_in_elements
from ._torch_dispatch import track_tensor

_OPS = _dispatch.OPS
_record = _dispatch.record


class Tensor:
    """A multi-dimensional array with gradients."""

    __module__ = "mindtorch_v2"
    __slots__ = ("_array", *DEFAULTS, "__dict__", "__weakref__")
    # What each of the internal fields means is said in `_tensor_slots`. `_array` is missing on meta tensors.
    _array: np.ndarray
    _storage: UntypedStorage | None
    _form: int
    _tensor_id: int
    _rg: bool | list[bool]
    _views_rg: list[bool] | None
    _views: Any
    _view_link: Any
    _grad_fn: Node | None
    _output_nr: int
    _base: Tensor | None
    _multi_view: bool
    _view_made_in: str | None
    _seen_version: int
    _replay: tuple | None
    _grad: Tensor | None
    _accumulator: Any
    _hooks: dict | None
    _post_accumulate_hooks: dict | None
    _retain_handle: Any
    _spoiled: str | None
    _array_missing: bool
    _array_description: Any
    _shown_device: _device.device | None
    _func_level: int
    is_sparse = False
    _is_sparse_layout = False  # of any sparse layout: it has no array
    is_quantized = False
    is_mkldnn = False
    is_nested = False
    is_cuda = False
    is_xpu = False
    is_mps = False
    is_ipu = False
    is_xla = False
    is_vulkan = False
    is_maia = False
    is_mtia = False
    is_hpu = False
    is_ort = False
    is_sparse_csr = False
    __array_priority__ = 1000
    __torch_dispatch__ = staticmethod(disabled_torch_dispatch)
    __hash__ = object.__hash__

    if TYPE_CHECKING:
        # Operators are installed with the ops, at run time.
        __add__: Any
        __radd__: Any
        __iadd__: Any
        __sub__: Any
        __rsub__: Any
        __isub__: Any
        __mul__: Any
        __rmul__: Any
        __imul__: Any
        __truediv__: Any
        __rtruediv__: Any
        __itruediv__: Any
        __floordiv__: Any
        __rfloordiv__: Any
        __mod__: Any
        __rmod__: Any
        __pow__: Any
        __rpow__: Any
        __ipow__: Any
        __matmul__: Any
        __rmatmul__: Any
        __imatmul__: Any
        __and__: Any
        __rand__: Any
        __or__: Any
        __ror__: Any
        __xor__: Any
        __rxor__: Any
        __lshift__: Any
        __rshift__: Any
        __neg__: Any
        __pos__: Any
        __abs__: Any
        __invert__: Any
        __lt__: Any
        __le__: Any
        __gt__: Any
        __ge__: Any
        __getitem__: Any
        __setitem__: Any

        def __getattr__(self, name: str) -> Any: ...

    def __new__(cls, *args: Any, device: Any = None, **kwargs: Any) -> Any:
        return _legacy_new(cls, args, device)

    @staticmethod
    def _make_subclass(cls: Any, data: Tensor, require_grad: bool = False, **_: Any) -> Any:  # noqa: PLW0211  (torch calls it Tensor._make_subclass(cls, data))
        """A tensor of class `cls` on the same memory as `data`, without history."""
        tensor = _new(cls)
        if data._array_missing:
            tensor._array_missing, tensor._array_description = True, data._array_description
        else:
            tensor._array = data._array
            tensor._storage = _alias_for(tensor, data)
        if require_grad:
            kind = BY_NUM[(tensor._array_description if tensor._array_missing else tensor._array).dtype.num]
            if not (kind.is_floating_point or kind.is_complex):
                raise RuntimeError("only Tensors of floating point and complex dtype can require gradients")
            tensor._rg = True
        return track_tensor(tensor)

    @staticmethod
    def _make_wrapper_subclass(
        cls: Any,  # noqa: PLW0211  (torch calls it Tensor._make_wrapper_subclass(cls, size))
        size: Any,
        strides: Any = None,
        storage_offset: Any = None,
        memory_format: Any = None,
        dtype: Any = None,
        layout: Any = None,
        device: Any = None,
        pin_memory: bool = False,
        requires_grad: bool = False,
        **_: Any,
    ) -> Any:
        """A tensor of class `cls` with a shape and a dtype but no memory, for classes that define `__torch_dispatch__`."""
        from ._torch_dispatch import make_wrapper_subclass

        return make_wrapper_subclass(cls, size, strides, dtype, device, requires_grad)

    # ------------------------------------------------------------------------------------------------ properties

    @property
    def shape(self) -> Size:
        return Size(self._array_description.shape if self._array_missing else self._array.shape)

    @property
    def dtype(self) -> _dtype.dtype:
        return BY_NUM[(self._array_description if self._array_missing else self._array).dtype.num]

    @property
    def device(self) -> _device.device:
        # a wrapper subclass has no memory of its own, but names its device
        if not self._array_missing:
            return _device.CPU
        return _device.META if self._shown_device is None else self._shown_device

    @property
    def layout(self) -> _dtype.layout:
        return _dtype.strided

    @property
    def ndim(self) -> int:
        return (self._array_description if self._array_missing else self._array).ndim

    @property
    def itemsize(self) -> int:
        return (self._array_description if self._array_missing else self._array).itemsize

    @property
    def nbytes(self) -> int:
        return self.numel() * self.itemsize

    @property
    def is_meta(self) -> bool:
        return self._array_missing and self._shown_device is None

    @property
    def is_cpu(self) -> bool:
        return not self._array_missing or self._shown_device is not None

    @property
    def names(self) -> tuple:
        return (None,) * self.ndim

    def has_names(self) -> bool:
        """False: dimensions have no names here."""
        return False

    def dim(self) -> int:
        """How many dimensions."""
        return self.ndim

    ndimension = dim

    def numel(self) -> int:
        """How many elements."""
        return math.prod(self._array_description.shape) if self._array_missing else self._array.size

    nelement = numel

    def element_size(self) -> int:
        """Bytes of one element."""
        return self.itemsize

    def size(self, dim: int | None = None) -> Any:
        """The shape, or the length of one dimension."""
        if dim is None:
            return self.shape
        shape = self.shape
        try:
            return tuple.__getitem__(shape, dim)
        except IndexError:
            limits = (-len(shape), len(shape) - 1) if shape else (-1, 0)
            if not shape:
                raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions") from None
            raise IndexError(
                f"Dimension out of range (expected to be in range of [{limits[0]}, {limits[1]}], but got {dim})"
            ) from None

    def stride(self, dim: int | None = None) -> Any:
        """Steps in memory, in elements, along each dimension."""
        if self._array_missing:
            steps = strides_in_elements(self._array_description, self._base is None)
        else:
            steps = strides(self._array, self._base is None)
        if dim is None:
            return steps
        if not -len(steps) <= dim < len(steps):
            self.size(dim)
        return steps[dim]

    def storage_offset(self) -> int:
        """Place of the first element in the storage, in elements."""
        if self._array_missing:
            return 0
        if self._storage is None:
            return 0
        array = self._array
        flat = self._storage._bytes()
        if not flat.nbytes:
            return 0
        return (address(array) - address(flat)) // array.itemsize

    def data_ptr(self) -> int:
        """Address of the first element."""
        if self._array_missing or not self._array.size:
            return 0
        if _storage.register is not None:
            storage_of(self).data_ptr()
        return address(self._array)

    def untyped_storage(self) -> UntypedStorage:
        """The memory of this tensor."""
        if self._array_missing:
            from .storage import _MetaStorage

            return _MetaStorage._sized(
                math.prod(self._array_description.shape) * self._array_description.itemsize
            )
        storage = storage_of(self)
        note_holder(self, self)
        return storage

    def _typed_storage(self) -> Any:
        from .storage import TypedStorage

        return TypedStorage(wrap_storage=self.untyped_storage(), dtype=self.dtype, _internal=True)

    def storage(self) -> Any:
        """The memory of this tensor as a typed storage; deprecated in favour of `untyped_storage`."""
        from .storage import _warn_typed_storage_removal

        _warn_typed_storage_removal(stacklevel=2)
        return self._typed_storage()

    def storage_type(self) -> Any:
        """The class of `storage()`, such as `torch.FloatStorage`."""
        from .storage import _LEGACY

        return _LEGACY[self._typed_storage()._pickle_storage_type()]

    def is_contiguous(self, memory_format: Any = _dtype.contiguous_format) -> bool:
        """Whether elements are stored in the order of the dimensions."""
        array = self._array_description if self._array_missing else self._array
        if memory_format is _dtype.contiguous_format or memory_format is _dtype.preserve_format:
            return bool(array.flags.c_contiguous)
        order = {4: (0, 2, 3, 1), 5: (0, 2, 3, 4, 1)}.get(array.ndim)
        wanted = 4 if memory_format is _dtype.channels_last else 5
        return order is not None and array.ndim == wanted and bool(array.transpose(order).flags.c_contiguous)

    def is_floating_point(self) -> bool:
        """Whether the dtype is a floating one."""
        return self.dtype.is_floating_point

    def is_complex(self) -> bool:
        """Whether the dtype is complex."""
        return self.dtype.is_complex

    def is_signed(self) -> bool:
        """Whether the dtype can be negative."""
        return self.dtype.is_signed

    def is_inference(self) -> bool:
        """Whether this was created in inference mode."""
        return is_inference(self)

    def is_conj(self) -> bool:
        """False: conjugates are never lazy here."""
        return False

    is_neg = is_conj
    is_distributed = is_conj

    def is_pinned(self, device: Any = None) -> bool:
        """False: there is no device to pin memory for."""
        return False

    def pin_memory(self, device: Any = None) -> Tensor:
        """Refuse, as torch without an accelerator does."""
        raise RuntimeError("Cannot access accelerator device when none is available.")

    def is_shared(self) -> bool:
        """Whether the memory is shared between processes."""
        return self._storage is not None and self._storage.is_shared()

    def share_memory_(self) -> Tensor:
        """Move to memory that processes forked from now on share."""
        storage_of(self)
        note_holder(self, self)
        self._storage.share_memory_()  # type: ignore[union-attr]
        return self

    def is_set_to(self, tensor: Tensor) -> bool:
        """Whether both are the same view of the same memory."""
        return (
            self.data_ptr() == tensor.data_ptr()
            and self.shape == tensor.shape
            and self.stride() == tensor.stride()
            and self.dtype is tensor.dtype
        )

    def _is_view(self) -> bool:
        return self._base is not None

    @property
    def _version(self) -> int:
        if is_inference(self):
            raise RuntimeError("Inference tensors do not track version counter.")
        return version_of(self)

    @property
    def _cdata(self) -> int:
        """An id of the tensor: its id in a recording if that tracks tensors."""
        register = _storage.register
        return id(self) if register is None else register.first_id_of(self)

    # ------------------------------------------------------------------------------------------------ autograd

    @property
    def requires_grad(self) -> bool:
        return bool(self._rg or (self._base is not None and self._base._rg))

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        value = bool(value)
        if value is self._rg:
            return
        if not value and self._grad_fn is not None:
            raise RuntimeError(
                "you can only change requires_grad flags of leaf variables. If you want to use a computed variable in a subgraph "
                "that doesn't require differentiation use var_no_grad = var.detach()."
            )
        if value and not (self.dtype.is_floating_point or self.dtype.is_complex):
            raise RuntimeError("only Tensors of floating point and complex dtype can require gradients")
        if value and not grad_state.inference and is_inference(self):
            raise RuntimeError(
                "Setting requires_grad=True on inference tensor outside InferenceMode is not allowed."
            )
        set_requires_grad(self, value)

    def requires_grad_(self, requires_grad: bool = True) -> Tensor:
        """Say whether operations on this tensor are recorded for gradients."""
        if requires_grad and not (self.dtype.is_floating_point or self.dtype.is_complex):
            raise RuntimeError("only Tensors of floating point dtype can require gradients")
        self.requires_grad = requires_grad
        return self

    @property
    def is_leaf(self) -> bool:
        return self.grad_fn is None

    @property
    def grad_fn(self) -> Node | None:
        if self._base is not None and self._storage._version != self._seen_version:  # type: ignore[union-attr]
            from .autograd.inplace import refresh_view

            refresh_view(self)
        return self._grad_fn

    @grad_fn.setter
    def grad_fn(self, value: Any) -> None:
        if value is not None:
            raise AttributeError("attribute 'grad_fn' of 'torch._C.TensorBase' objects is not writable")
        self.detach_()

    @property
    def grad(self) -> Tensor | None:
        if self._grad is None and self._grad_fn is not None and self._retain_handle is None and self._rg:
            import warnings

            warnings.warn(
                "The .grad attribute of a Tensor that is not a leaf Tensor is being accessed. Its .grad attribute won't be "
                "populated during autograd.backward(). If you indeed want the .grad field to be populated for a non-leaf Tensor, "
                "use .retain_grad() on the non-leaf Tensor. If you access the non-leaf Tensor by mistake, make sure you access the "
                "leaf Tensor instead. See github.com/pytorch/pytorch/pull/30531 for more information.",
                UserWarning,
                stacklevel=2,
            )
        return self._grad

    @grad.setter
    def grad(self, value: Tensor | None) -> None:
        if value is None:
            self._grad = None
            return
        if not isinstance(value, Tensor):
            raise TypeError(
                f"assigned grad expected to be a Tensor or None but got grad of type {type(value).__name__}"
            )
        if value is self:
            raise RuntimeError("can't assign Variable as its own grad")
        if value.dtype is not self.dtype and not value.is_sparse:
            raise RuntimeError(
                f"attempting to assign a gradient with dtype '{_C_NAMES.get(value.dtype._abbr, value.dtype._abbr)}' to a tensor with "
                f"grad_dtype '{self.dtype._abbr}'. The gradient must match the tensor's grad_dtype (defaults to the tensor's dtype). You "
                "can set the tensor's grad_dtype attribute with a specific dtype, or None to allow any dtype. Set grad_dtype with "
                "caution. Diverging the dtypes of a tensor and its gradient may break downstream systems that assume they match."
            )
        if value.shape != self.shape:
            raise RuntimeError(
                f"attempting to assign a gradient of size '{list(value.shape)}' to a tensor of size '{list(self.shape)}'. Please ensure "
                "that the gradient and the tensor are the same size"
            )
        self._grad = value

    @grad.deleter
    def grad(self) -> None:
        self._grad = None

    @property
    def output_nr(self) -> int:
        return self._output_nr

    @property
    def _backward_hooks(self) -> dict | None:
        return self._hooks

    @property
    def retains_grad(self) -> bool:
        return self._retain_handle is not None

    def backward(
        self,
        gradient: Any = None,
        retain_graph: bool | None = None,
        create_graph: bool = False,
        inputs: Any = None,
    ) -> None:
        """Compute the gradients of this tensor with respect to the leaves of its graph."""
        from . import autograd

        autograd.backward(self, gradient, retain_graph, create_graph, inputs=inputs)

    def register_hook(self, hook: Any) -> Any:
        """Call `hook(grad)` each time this tensor's gradient is computed; what it returns replaces the gradient."""
        from .autograd.hooks import register_tensor_hook

        return register_tensor_hook(self, hook)

    def register_post_accumulate_grad_hook(self, hook: Any) -> Any:
        """Call `hook(tensor)` each time a gradient was added to this leaf's `.grad`."""
        from .autograd.hooks import register_post_accumulate_hook

        return register_post_accumulate_hook(self, hook)

    def retain_grad(self) -> None:
        """Keep the gradient of this non-leaf tensor in `.grad`."""
        from .autograd.hooks import retain_grad

        retain_grad(self)

    @property
    def data(self) -> Tensor:
        if Switches.asked is not None and Switches.asked(self):
            from ._torch_dispatch import data_attribute

            return data_attribute(self)
        detached = _new(type(self) if not isinstance(self, Tensor) else Tensor)
        if self._array_missing:
            detached._array_missing, detached._array_description = True, self._array_description
            return detached
        detached._array = self._array
        detached._storage = _alias_for(detached, self)
        return detached

    @data.setter
    def data(self, value: Tensor) -> None:
        if not isinstance(value, Tensor):
            raise TypeError(f"Variable data has to be a tensor, but got {type(value).__name__}")
        if self._rg and not (value.dtype.is_floating_point or value.dtype.is_complex):
            raise RuntimeError(
                "data set to a tensor that requires gradients must be floating point or complex dtype"
            )
        _record(_OPS["_has_compatible_shallow_copy_type"], self, value)
        if value is self:
            return
        self._form = 0
        if self._tensor_id > 0:
            self._tensor_id = -self._tensor_id
        if value._array_missing:
            self._array_missing, self._array_description = True, value._array_description
            if hasattr(self, "_array"):
                del self._array
            self._storage = None
            return
        self._array = value._array
        version = version_of(self)
        self._storage = _alias_for(self, value)
        self._storage._version = version
        self._array_missing, self._array_description = False, None

    # ------------------------------------------------------------------------------------------------ to Python and NumPy

    def item(self) -> Any:
        """The only element as a Python number."""
        return _dispatch.FUNCTIONS["item"](self)

    def tolist(self) -> Any:
        """The elements as nested Python lists."""
        if self._shown_device is not None:
            raise RuntimeError(f".tolist() is not supported for tensor subclasses, got {type(self).__name__}")
        array = _resolved(self)._array
        if array.dtype in _dtype.NOT_IN_NUMPY:
            array = array.astype(_dtype.in_numpy(array.dtype))
        return array.tolist()

    def numpy(self, *, force: bool = False) -> np.ndarray:
        """The same memory as a NumPy array."""
        if self._array_missing:
            if self._shown_device is not None:
                raise RuntimeError(".numpy() is not supported for tensor subclasses.")
            raise TypeError(
                "can't convert meta device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host memory first."
            )
        if self._rg and grad_state.enabled and not force:
            raise RuntimeError(
                "Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead."
            )
        if self._array.dtype in _dtype.NOT_IN_NUMPY:
            raise TypeError(f"Got unsupported ScalarType {_dtype.NOT_IN_NUMPY[self._array.dtype]}")
        on_cpu = _OPS["to.dtype_layout"].entry(_record(_OPS["detach"], self), device=_device.CPU)
        array = _resolved(on_cpu)._array.view()
        if not array.flags.writeable and array.base is not None:
            try:
                array.setflags(write=True)
            except ValueError:
                pass  # memory that is read-only in NumPy itself
        return array

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        array = self.numpy()
        if dtype is not None and array.dtype != dtype:
            if copy is False:
                raise ValueError("Unable to avoid copy while creating an array as requested.")
            return array.astype(dtype)
        return array.copy() if copy else array

    def __array_wrap__(self, array: np.ndarray, context: Any = None, return_scalar: bool = False) -> Any:
        tensor = _new(Tensor)
        tensor._array = np.asarray(array)
        return tensor

    def __len__(self) -> int:
        shape = (self._array_description if self._array_missing else self._array).shape
        if not shape:
            raise TypeError("len() of a 0-d tensor")
        return shape[0]

    def __iter__(self) -> Any:
        if self.ndim == 0:
            raise TypeError("iteration over a 0-d tensor")
        return iter(self.unbind(0))

    def __reversed__(self) -> Tensor:
        return self if self.ndim == 0 else self.flip(0)

    def __bool__(self) -> bool:
        array = self._array
        if array.size != 1:
            if array.size == 0:
                raise RuntimeError("Boolean value of Tensor with no values is ambiguous")
            raise RuntimeError("Boolean value of Tensor with more than one value is ambiguous")
        return bool(_dispatch.FUNCTIONS["is_nonzero"](self))

    def _only_item(self) -> Any:
        """The one number in this tensor, for Python's own number types."""
        if self.numel() != 1:
            raise ValueError("only one element tensors can be converted to Python scalars")
        return self.item()

    def __float__(self) -> float:
        return float(self._only_item())

    def __int__(self) -> int:
        return int(self._only_item())

    def __complex__(self) -> complex:
        return complex(self._only_item())

    def __index__(self) -> int:
        if self.numel() != 1 or self.dtype._rank > 1:
            raise TypeError("only integer tensors of a single element can be converted to an index")
        return int(self.item())

    def __contains__(self, element: Any, /) -> bool:
        if isinstance(element, (Tensor, int, float, complex, bool)):
            return bool((element == self).any().item())
        raise RuntimeError(
            f"Tensor.__contains__ only supports Tensor or scalar, but you passed in a {type(element)}."
        )

    def __format__(self, spec: str) -> str:
        if self.ndim == 0 and not self._array_missing and type(self) is Tensor:
            return self.detach().item().__format__(spec)
        return object.__format__(self, spec)

    def __repr__(self, *, tensor_contents: str | None = None) -> str:
        from ._tensor_str import _str

        return _str(self, tensor_contents=tensor_contents)

    def __deepcopy__(self, memo: dict) -> Any:
        if id(self) in memo:
            return memo[id(self)]
        if self._grad_fn is not None:
            raise RuntimeError(
                "Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at the moment.  If you were "
                "attempting to deepcopy a module, this may be because of a torch.nn.utils.weight_norm usage, see "
                "https://github.com/pytorch/pytorch/pull/103001"
            )
        import copy

        if self._shown_device is not None:
            from ._torch_dispatch import deep_copy

            return deep_copy(self, memo)
        clone = _new(type(self))
        memo[id(self)] = clone
        if self._array_missing:
            clone._array_missing, clone._array_description = True, self._array_description
        else:
            storage = storage_of(self)
            twin = memo.get(id(storage))
            if twin is None:
                twin = memo[id(storage)] = storage.clone()
            enabled, grad_state.enabled = grad_state.enabled, False
            try:
                blank = _record(_OPS["new_empty"], self, (), None, None, None, None)
                placed = _placed(blank, twin, self.storage_offset(), self.shape, self.stride())
            finally:
                grad_state.enabled = enabled
            clone._array, clone._storage = placed._array, placed._storage
            note_holder(placed, clone)
        clone._rg = self.requires_grad
        clone.__dict__.update(copy.deepcopy(self.__dict__, memo))
        if self._grad is not None:
            clone._grad = copy.deepcopy(self._grad, memo)
        return clone

    def __reduce_ex__(self, protocol: Any) -> Any:
        from ._utils import reduce_tensor

        return reduce_tensor(self, protocol)

    def __setstate__(self, state: Any) -> None:
        self.__dict__.update(state)

    def __dlpack__(
        self, *, stream: Any = None, max_version: Any = None, dl_device: Any = None, copy: Any = None
    ) -> Any:
        if self._rg:
            raise BufferError("Can't export tensors that require gradient, use tensor.detach()")
        kwargs = {
            k: v
            for k, v in (("max_version", max_version), ("dl_device", dl_device), ("copy", copy))
            if v is not None
        }
        return self._array.__dlpack__(**kwargs)

    def __dlpack_device__(self) -> tuple:
        return (1, 0)

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        from ._overrides import default_torch_function

        return default_torch_function(cls, func, types, args, kwargs)

    def __init_subclass__(cls, **kwargs: Any) -> None:
        from ._overrides import register_subclass

        super().__init_subclass__(**kwargs)
        register_subclass(cls)

    def __dir__(self) -> list[str]:
        return sorted(set(object.__dir__(self)))


_C_NAMES = {  # as that text of torch's spells them
    "Float": "float",
    "Double": "double",
    "Long": "long int",
    "Int": "int",
    "Short": "short int",
    "Char": "signed char",
    "Byte": "unsigned char",
    "Bool": "bool",
    "Half": "c10::Half",
    "BFloat16": "c10::BFloat16",
    "ComplexFloat": "c10::complex<float>",
    "ComplexDouble": "c10::complex<double>",
}


def _strided(storage: UntypedStorage, np_dtype: Any, offset: int, shape: Any, steps: Any) -> np.ndarray:
    """An array on a storage's memory."""
    flat = storage._bytes()
    item, nbytes = np_dtype.itemsize, flat.nbytes
    shape = tuple([int(n) for n in shape])
    if 0 in shape:
        start = offset * item
        return np.ndarray(shape, np_dtype, flat, start) if start <= nbytes else np.ndarray(shape, np_dtype)
    reach = offset + sum([(n - 1) * s for n, s in zip(shape, steps)]) + 1
    if reach * item > nbytes or offset < 0:
        raise RuntimeError(
            f"setStorage: sizes {list(shape)}, strides {list(steps)}, storage offset {offset}, and itemsize {item} requiring a storage "
            f"size of {reach * item} are out of bounds for storage of size {nbytes}"
        )
    return np.ndarray(shape, np_dtype, flat, offset * item, tuple([s * item for s in steps]))


def _from_storage(
    storage: UntypedStorage,
    dtype: Any,
    storage_offset: int,
    size: Any,
    stride: Any,
    requires_grad: bool = False,
) -> Tensor:
    """A tensor on the memory of a storage."""
    tensor = _placed(_blank((0,), dtype, pin_memory=None), storage, storage_offset, size, stride)
    if requires_grad:
        tensor.requires_grad = True
    return tensor


def _alias_for(tensor: Tensor, source: Tensor) -> UntypedStorage:
    """A storage for `tensor`, on the memory of `source`, with a version counter of its own."""
    alias = storage_of(source)._alias()
    note_holder(source, tensor)
    return alias


def _blank(size: Any, dtype: _dtype.dtype, layout: Any = None, pin_memory: Any = _dtype.LEFT_OUT) -> Tensor:
    """A new tensor with memory that is not initialised."""
    return _record(_OPS["empty.memory_format"], tuple(size), dtype, layout, None, pin_memory, None)


def _placed(tensor: Tensor, storage: UntypedStorage, offset: int, size: Any, stride: Any) -> Tensor:
    """Put a tensor on the memory of a storage."""
    set_ = _OPS["set_.source_Storage_storage_offset"]
    return _record(set_, tensor, storage, offset, tuple(size), tuple(stride))


def copy_storage(target: UntypedStorage, source: UntypedStorage) -> None:
    """Copy the bytes of a storage to another of the same size."""
    enabled, grad_state.enabled = grad_state.enabled, False
    try:
        set_ = _OPS["set_.source_Storage"]
        source_bytes, target_bytes = (
            _record(set_, _blank((0,), _dtype.uint8), storage) for storage in (source, target)
        )
        _record(_OPS["copy_"], target_bytes, source_bytes, False)
    finally:
        grad_state.enabled = enabled


def _resolved(tensor: Tensor) -> Tensor:
    """A tensor without conjugate and negative bits: its memory holds its values."""
    return _record(_OPS["resolve_neg"], _record(_OPS["resolve_conj"], tensor))


def _legacy_new(cls: Any, args: tuple, device: Any) -> Any:
    """Tensor(), Tensor(2, 3), Tensor([1, 2]), Tensor(other): the old constructor."""
    tensor = _new(cls)
    kind = _dtype.Default.dtype
    if len(args) == 1 and isinstance(args[0], UntypedStorage):
        tensor._array, tensor._storage = args[0]._bytes().view(kind._np), args[0]
        note_holder(tensor, tensor)
        return tensor
    if not args:
        source = _blank((0,), kind, _dtype.strided)
    elif len(args) == 1 and isinstance(args[0], Tensor):
        source = args[0]
        storage_of(source)
    elif len(args) == 1 and isinstance(args[0], Size):
        source = _blank(args[0], kind, _dtype.strided)
    elif len(args) == 1 and isinstance(args[0], (list, tuple, np.ndarray, range)):
        source = _dispatch.FUNCTIONS["as_tensor"](args[0], dtype=kind)
    elif all(hasattr(a, "__index__") for a in args):
        source = _blank([a.__index__() for a in args], kind, _dtype.strided)
    else:
        raise TypeError(f"new(): data must be a sequence (got {type(args[0]).__name__})")
    tensor._array, tensor._storage = source._array, source._storage
    if source._storage is not None:
        note_holder(source, tensor)
    return tensor


_allocators = allocators(Tensor)
_new = _allocators.new_tensor
_dispatch.Tensor, _storage.views_of = Tensor, _allocators.views_of
_dispatch.new = _dispatch.new_tensor = _new
_dispatch.new_view = _dispatch.new_plain_view = _allocators.new_view
_dispatch.new_result = _dispatch.new_plain_result = _allocators.new_result or _dispatch.wrap_result
_dispatch.add_view = _allocators.add_view


def install(methods: dict[str, Any]) -> None:
    """Give the Tensor class the methods that ops declared."""
    for name, method in methods.items():
        if name not in Tensor.__dict__:
            op = _dispatch.OPERATORS.get(name)
            is_operator = op is not None and method is op.operator
            setattr(Tensor, name, operator(Tensor, name, op) if is_operator else method)


__all__ = ["Tensor", "edge"]
