"""torch.nested: tensors whose components have different sizes, stored one after another in one buffer.

Supported are element-wise functions, `linear`, softmax over the last dimension, padding and unbinding, all
with gradients. Everything else that torch supports raises NotImplementedError.
"""

from __future__ import annotations

import itertools
import math
import warnings
from typing import Any

import mindtorch_v2 as torch

__all__ = ["as_nested_tensor", "nested_tensor", "nested_tensor_from_jagged", "to_padded_tensor"]

_UNARY = frozenset(
    "abs acos asin atan ceil celu clamp clip clone cos cosh detach double elu erf exp expm1 float floor gelu half hardtanh leaky_relu log "
    "log1p logical_not logit neg negative __neg__ nan_to_num reciprocal relu round rsqrt sgn sigmoid sign silu sin sinh sqrt square tan tanh "
    "to trunc dropout contiguous".split()
)
_BINARY = frozenset(
    "add sub mul div __add__ __sub__ __mul__ __truediv__ __radd__ __rsub__ __rmul__ __rtruediv__ rsub pow __pow__ maximum minimum "
    "true_divide multiply subtract divide".split()
)
_PREDICATES = frozenset(
    "__get__ element_size get_device is_complex is_contiguous is_floating_point storage_offset".split()
)
_NO_SIZES = "Internal error: NestedTensorImpl doesn't support sizes. Please file an issue."
_ragged_ids = itertools.count(1)
_warned = False


class _Ragged:
    """The size of a ragged dimension: it differs between components."""

    def __init__(self) -> None:
        self.number = next(_ragged_ids)

    def __repr__(self) -> str:
        return f"j{self.number}"


class NestedTensor(torch.Tensor):
    """Components of different sizes as one tensor. `_flat` holds their elements, `_shapes` their sizes."""

    # a module name outside the package: its own classes have no `__torch_function__` overrides
    __module__ = "torch.nested._internal.nested_tensor"
    _flat: Any
    _shapes: list[tuple[int, ...]]
    _ragged: _Ragged | None  # for the jagged layout: the size of the components' first dimension

    @staticmethod
    def _from_flat(flat: Any, shapes: list[tuple[int, ...]], ragged: _Ragged | None) -> NestedTensor:
        made = torch.Tensor._make_subclass(NestedTensor, flat.detach(), False)
        made._flat, made._shapes, made._ragged = flat, shapes, ragged
        return made

    is_nested = True

    @property
    def layout(self) -> Any:
        return torch.strided if self._ragged is None else torch.jagged

    @property
    def requires_grad(self) -> bool:
        return self._flat.requires_grad

    @property
    def grad_fn(self) -> Any:
        return self._flat.grad_fn

    @property
    def shape(self) -> Any:
        return self.size()

    @property
    def ndim(self) -> int:
        return self.dim()

    def dim(self) -> int:
        """The number of dimensions: those of the components plus the one that counts them."""
        return len(self._shapes[0]) + 1 if self._shapes else 1

    def numel(self) -> int:
        """The number of elements of all components."""
        return self._flat.numel()

    def __len__(self) -> int:
        if self._ragged is None:
            raise RuntimeError(_NO_SIZES)
        return len(self._shapes)

    def size(self, dim: int | None = None) -> Any:
        """The size of a dimension that is the same in all components; for the jagged layout also the whole
        size.
        """
        if dim is None:
            if self._ragged is None:
                raise RuntimeError(_NO_SIZES)
            return (len(self._shapes), self._ragged, *self._shapes[0][1:])
        dim += self.dim() * (dim < 0)
        if dim == 0:
            return len(self._shapes)
        if dim == 1 and self._ragged is not None:
            return self._ragged
        sizes = {shape[dim - 1] for shape in self._shapes}
        if len(sizes) != 1:
            raise RuntimeError(f"Given dimension {dim} is irregular and does not have a size.")
        return sizes.pop()

    def values(self) -> Any:
        """The elements as one tensor; for the jagged layout with the components concatenated along their
        first dimension.
        """
        return self._flat if self._ragged is None else self._flat.view(-1, *self._shapes[0][1:])

    def offsets(self) -> Any:
        """The start of each component along the jagged dimension, and the end of the last one."""
        if self._ragged is None:
            raise AttributeError("'Tensor' object has no attribute 'offsets'")
        return torch.tensor([0, *itertools.accumulate(shape[0] for shape in self._shapes)])

    def lengths(self) -> None:
        """None: there are no gaps between the components."""

    def unbind(self, dim: int = 0) -> tuple[Any, ...]:
        """The components."""
        pieces = self._flat.split([math.prod(shape) for shape in self._shapes])
        return tuple(piece.view(shape) for piece, shape in zip(pieces, self._shapes))

    def __getitem__(self, index: Any) -> Any:
        if not isinstance(index, int):
            raise NotImplementedError(
                "a nested tensor can be indexed only by the integer index of a component"
            )
        return self.unbind()[index]

    def to_padded_tensor(self, padding: float, output_size: Any = None) -> Any:
        """The components as one ordinary tensor, padded to equal size with `padding`."""
        largest = tuple(map(max, zip(*self._shapes)))
        if output_size is not None:
            largest = tuple(output_size)[1:]
        rows = []
        for part in self.unbind():
            padding_pairs = [(0, padded_size - size) for padded_size, size in zip(largest, part.shape)]
            flat = [amount for pair in reversed(padding_pairs) for amount in pair]
            rows.append(torch.nn.functional.pad(part, flat, value=padding))
        return torch.stack(rows)

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        if self._ragged is not None:
            sizes = ", ".join(map(repr, self.size()))
            return f"NestedTensor(size=({sizes}), offsets={self.offsets()}, contiguous=True)"
        parts = [repr(part).replace("\n", "\n  ") for part in self.unbind()]
        return "nested_tensor([\n" + ",\n".join("  " + text for text in parts) + "\n])"

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        name = func.__name__
        kwargs = kwargs or {}
        first = next((value for value in args if isinstance(value, NestedTensor)), None)
        if first is None:
            raise NotImplementedError(f"torch.nested does not support {name} here")
        if name in _PREDICATES:
            result = func(first._flat, *args[1:], **kwargs)
            if not isinstance(result, torch.Tensor):
                return result
        if name in _UNARY:
            return first._with_values(func(first._flat, *args[1:], **kwargs))
        if name in _BINARY:
            return first._with_values(func(*[first._operand(value, name) for value in args], **kwargs))
        if name == "linear":
            rows = first._flat.view(-1, first.size(-1))
            output = func(rows, *args[1:], **kwargs)
            shapes = [(*shape[:-1], output.shape[-1]) for shape in first._shapes]
            return NestedTensor._from_flat(output.reshape(-1), shapes, first._ragged)
        if name == "sum" and first._ragged is not None and len(args) == 1 and not kwargs:
            return first._flat.sum()
        if name in ("softmax", "log_softmax") and (args[1] if len(args) > 1 else kwargs.get("dim")) in (
            -1,
            first.dim() - 1,
        ):
            rows = first._flat.view(-1, first.size(-1))
            return first._with_values(func(rows, dim=-1).reshape(-1))
        raise NotImplementedError(f"torch.nested does not support {name} here")

    def _with_values(self, flat: Any) -> NestedTensor:
        return NestedTensor._from_flat(flat, self._shapes, self._ragged)

    def _operand(self, value: Any, name: str) -> Any:
        """The elements of the other operand, which must have the same structure."""
        if not isinstance(value, NestedTensor):
            if isinstance(value, torch.Tensor) and value.dim():
                raise RuntimeError(
                    "Expected both self and other to be nested, but got a nested self and non-nested other"
                )
            return value
        if self._ragged is not value._ragged or self._shapes != value._shapes:
            if self._ragged is not None and value._ragged is not None:
                raise RuntimeError(
                    f"cannot call binary pointwise function {name.strip('_')}.Tensor with inputs of shapes {self.size()} and {value.size()}"
                )
            raise RuntimeError(
                f"{name.strip('_')}: the two nested tensors differ in the sizes of their components"
            )
        return value._flat


def _from_components(parts: list[Any], layout: Any) -> NestedTensor:
    global _warned
    if layout is None or layout is torch.strided:
        if not _warned:
            _warned = True
            warnings.warn(
                "The PyTorch API of nested tensors is in prototype stage and will change in the near future. We recommend specifying "
                "layout=torch.jagged when constructing a nested tensor, as this layout receives active development, has better operator "
                "coverage, and works with torch.compile.",
                stacklevel=3,
            )
        ragged = None
    elif layout is torch.jagged:
        ragged = _Ragged()
        if len({tuple(part.shape[1:]) for part in parts}) > 1:
            raise RuntimeError(
                "Cannot represent given tensor list as a nested tensor with the jagged layout."
            )
    else:
        raise RuntimeError(f"Specified layout is unsupported for nested tensors: {layout}")
    flat = torch.cat([part.reshape(-1) for part in parts]) if parts else torch.empty(0)
    return NestedTensor._from_flat(flat, [tuple(part.shape) for part in parts], ragged)


def nested_tensor(
    tensor_list: Any,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> torch.Tensor:
    """A nested tensor with a copy of the values in a list; gradients do not flow back to them."""
    parts = [torch.as_tensor(part, dtype=dtype, device=device).detach() for part in tensor_list]
    nested = _from_components(parts, layout)
    if requires_grad:
        nested._flat.requires_grad_()
    return nested


def as_nested_tensor(ts: Any, dtype: Any = None, device: Any = None, layout: Any = None) -> torch.Tensor:
    """A nested tensor of tensors, to which gradients flow back."""
    if isinstance(ts, NestedTensor):
        return ts
    return _from_components([torch.as_tensor(part, dtype=dtype, device=device) for part in ts], layout)


def nested_tensor_from_jagged(
    values: torch.Tensor,
    offsets: torch.Tensor | None = None,
    lengths: torch.Tensor | None = None,
    jagged_dim: int | None = None,
    min_seqlen: int | None = None,
    max_seqlen: int | None = None,
) -> torch.Tensor:
    """A nested tensor of components that are concatenated in `values`."""
    if jagged_dim not in (None, 1):
        raise NotImplementedError("parts have to lie end to end in the first dimension of the values")
    if offsets is None:
        if lengths is None:
            raise RuntimeError("nested_tensor_from_jagged(): At least one of offsets or lengths is required.")
        ends = [0, *itertools.accumulate(lengths.tolist())]
    elif lengths is not None:
        raise NotImplementedError("components with gaps between them are not supported")
    else:
        ends = offsets.tolist()
    shapes = [(b - a, *values.shape[1:]) for a, b in itertools.pairwise(ends)]
    return NestedTensor._from_flat(values.reshape(-1), shapes, _Ragged())


def to_padded_tensor(input: Any, padding: float, output_size: Any = None, out: Any = None) -> torch.Tensor:
    """The components of a nested tensor as one ordinary tensor, padded to equal size with `padding`."""
    made = input.to_padded_tensor(padding, output_size)
    return made if out is None else out.copy_(made)
