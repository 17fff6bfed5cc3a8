"""Parameters and buffers: a tensor in, a tensor on the same memory that modules register out."""

from __future__ import annotations

import sys
from typing import Any

import mindtorch_v2 as torch

from .. import _dispatch, _dtype
from .._overrides import ALL_OFF, disabled_torch_function, overrides_limited, process_state
from .._tensor import Tensor

__all__ = [
    "Parameter",
    "UninitializedParameter",
    "is_lazy",
    "Buffer",
    "UninitializedBuffer",
    "UninitializedTensorMixin",
]


class _ParameterMeta(type(Tensor)):  # type: ignore[misc]
    """Makes tensors of other classes that were turned into parameters count as instances of Parameter."""

    def __instancecheck__(self, instance: Any) -> bool:
        if self is Parameter and isinstance(instance, Tensor) and getattr(instance, "_is_param", False):
            return True
        return super().__instancecheck__(instance)


def _has_gradients(data: Any) -> bool:
    """Whether the dtype is floating-point or complex; read without calling `__torch_function__` handlers."""
    if data._is_sparse_layout:
        return data.is_floating_point() or data.is_complex()
    kind = _dtype.BY_NUM[(data._array_description if data._array_missing else data._array).dtype.num]
    return kind.is_floating_point or kind.is_complex


def _detach_without_overrides(data: Any) -> Any:
    with overrides_limited(ALL_OFF):
        return data.detach()


class Parameter(Tensor, metaclass=_ParameterMeta):
    """A tensor that a module registers as one of its parameters when it is assigned as an attribute."""

    __torch_function__ = disabled_torch_function  # type: ignore[assignment]

    def __new__(cls, data: Any = None, requires_grad: bool = True) -> Any:
        if data is None:
            data = torch.empty(0)
        if type(data) is Tensor or type(data) is Parameter:
            if requires_grad and not _has_gradients(data):
                raise RuntimeError("Only Tensors of floating point and complex dtype can require gradients")
            detached = _detach_without_overrides(data) if process_state.n_function_modes else data.detach()
            return Tensor._make_subclass(cls, detached, requires_grad)
        parameter = data.detach().requires_grad_(requires_grad)
        if type(parameter) is not type(data):
            raise RuntimeError(
                f"Creating a Parameter from an instance of type {type(data).__name__} requires that "
                "detach() returns "
                f"an instance of the same type, but return type {type(parameter).__name__} was found instead. "
                "To use the "
                "type as a Parameter, please correct the detach() semantics defined by its "
                "__torch_dispatch__() "
                "implementation."
            )
        parameter._is_param = True
        return parameter

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        if id(self) in memo:
            return memo[id(self)]
        result = type(self)(self.data.clone(memory_format=torch.preserve_format), self.requires_grad)
        memo[id(self)] = result
        return result

    def __repr__(self) -> str:
        return "Parameter containing:\n" + super().__repr__()


class _BufferMeta(type(Tensor)):  # type: ignore[misc]
    """Tensors made by Buffer keep their class; a marker attribute makes them instances of Buffer."""

    def __instancecheck__(self, instance: Any) -> bool:
        if self is Buffer and isinstance(instance, Tensor) and getattr(instance, "_is_buffer", False):
            return True
        return super().__instancecheck__(instance)


class Buffer(Tensor, metaclass=_BufferMeta):
    """A tensor that a module registers as one of its buffers when it is assigned as an attribute."""

    def __new__(cls, data: Any = None, *, persistent: bool = True) -> Any:
        if data is None:
            data = torch.empty(0)
        made = data.detach().requires_grad_(data.requires_grad)
        made.persistent = persistent
        made._is_buffer = True
        return made


def is_lazy(param: Any) -> bool:
    """Whether a parameter or buffer is uninitialised."""
    return isinstance(param, UninitializedTensorMixin)


class UninitializedTensorMixin:
    """A tensor whose shape is not known yet; `materialize` turns it into an ordinary one."""

    cls_to_become: Any = None
    _lazy_dtype: Any
    _lazy_device: Any

    @classmethod
    def _make(cls, requires_grad: bool, device: Any, dtype: Any) -> Any:
        made: Any = _dispatch.new_tensor(cls)
        made._lazy_dtype = torch.get_default_dtype() if dtype is None else dtype
        made._lazy_device = torch.get_default_device() if device is None else torch.device(device)
        if requires_grad:
            made.requires_grad = True
        return made

    @property
    def _array(self) -> Any:
        """Read by kernels for the elements; raises, because there are none yet."""
        op = sys._getframe(1).f_code.co_filename.removeprefix("<op ").partition(".")[0].rstrip(">")
        raise ValueError(
            f"Attempted to use an uninitialized parameter in <method '{op}' of 'torch._C.TensorBase' "
            "objects>. "
            "This error happens when you are using a `LazyModule` or explicitly manipulating "
            "`torch.nn.parameter.UninitializedParameter` objects. When using LazyModules Call `forward` "
            "with a "
            "dummy batch to initialize the parameters before calling torch functions"
        )

    @property
    def shape(self) -> Any:
        """Raises: there is no shape yet."""
        raise RuntimeError(
            "Can't access the shape of an uninitialized parameter or buffer. "
            "This error usually happens in `load_state_dict` when trying to load "
            "an uninitialized parameter into an initialized one. "
            "Call `forward` to initialize the parameters before accessing their attributes."
        )

    @property
    def dtype(self) -> Any:
        return self._lazy_dtype

    @property
    def device(self) -> Any:
        return self._lazy_device

    def is_floating_point(self) -> bool:
        """Whether the dtype is a floating one."""
        return self._lazy_dtype.is_floating_point

    def is_complex(self) -> bool:
        """Whether the dtype is complex."""
        return self._lazy_dtype.is_complex

    def materialize(self, shape: Any, device: Any = None, dtype: Any = None) -> None:
        """Become an ordinary parameter or buffer of this shape, with undefined values."""
        device = self._lazy_device if device is None else device
        dtype = self._lazy_dtype if dtype is None else dtype
        del self._lazy_dtype, self._lazy_device
        self.__class__ = self.cls_to_become
        self.data = torch.empty(shape, device=device, dtype=dtype)

    def _like(self, device: Any = None, dtype: Any = None) -> Any:
        kind: Any = type(self)
        made = kind(self.requires_grad, device or self._lazy_device, dtype or self._lazy_dtype)
        if hasattr(self, "persistent"):
            made.persistent = self.persistent
        return made

    def detach(self) -> Any:
        """Another uninitialized tensor of the same kind."""
        return self._like()

    @property
    def data(self) -> Any:
        return self._like()

    @data.setter
    def data(self, value: Any) -> None:
        if not is_lazy(value):
            raise ValueError("the data of an uninitialized parameter can only be another uninitialized one")
        self._lazy_dtype, self._lazy_device = value._lazy_dtype, value._lazy_device

    def to(self, *args: Any, **kwargs: Any) -> Any:
        """An uninitialized tensor of another dtype or on another device."""
        from .modules._to import parse_to

        device, dtype, _, _ = parse_to(*args, **kwargs)
        return self._like(device, dtype)

    def type(self, dtype: Any = None, non_blocking: bool = False, **kwargs: Any) -> Any:
        """The name of the tensor type, or an uninitialized tensor of another one."""
        example = torch.empty(0, dtype=self._lazy_dtype, device=self._lazy_device)
        return example.type() if dtype is None else self._like(dtype=example.type(dtype).dtype)

    def float(self) -> Any:
        """As float32."""
        return self._like(dtype=torch.float32)

    def double(self) -> Any:
        """As float64."""
        return self._like(dtype=torch.float64)

    def half(self) -> Any:
        """As float16."""
        return self._like(dtype=torch.float16)

    def bfloat16(self) -> Any:
        """As bfloat16."""
        return self._like(dtype=torch.bfloat16)

    def cpu(self) -> Any:
        """On the CPU."""
        return self._like("cpu")

    def cuda(self, *args: Any, **kwargs: Any) -> Any:
        """Raises as for any tensor: there is no CUDA."""
        return torch.empty(0).cuda(*args, **kwargs)

    def copy_(self, other: Any, *args: Any) -> Any:
        """Copy dtype and device of another uninitialized tensor: there are no values."""
        if not is_lazy(other):
            return self._array
        return self

    def share_memory_(self) -> Any:
        """Raises: there is no memory yet."""
        raise RuntimeError(
            "Can't share memory on an uninitialized parameter or buffer. "
            "Call `forward` to initialize the parameters before calling "
            "`module.share_memory()`."
        )

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"

    def __reduce_ex__(self, proto: Any) -> Any:
        return type(self), (self.requires_grad, self._lazy_device, self._lazy_dtype)


class UninitializedParameter(UninitializedTensorMixin, Parameter):
    """A parameter whose shape is inferred at the first call of a lazy module."""

    cls_to_become = Parameter

    def __new__(cls, requires_grad: bool = True, device: Any = None, dtype: Any = None) -> None:
        return cls._make(requires_grad, device, dtype)

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        if id(self) in memo:
            return memo[id(self)]
        result = memo[id(self)] = self._like()
        return result


class UninitializedBuffer(UninitializedTensorMixin, Tensor):
    """A buffer whose shape is inferred at the first call of a lazy module."""

    cls_to_become = Tensor

    def __new__(
        cls, requires_grad: bool = False, device: Any = None, dtype: Any = None, persistent: bool = True
    ) -> None:
        made = cls._make(requires_grad, device, dtype)
        made.persistent = persistent
        made._is_buffer = True
        return made
