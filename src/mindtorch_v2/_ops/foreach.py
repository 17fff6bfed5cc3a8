"""Lists of tensors: `torch._foreach_*`, one op on every tensor of a list, as optimisers and clipping use it.

On the CPU each calls the plain op on one tensor after another; autograd and profiles see the plain ops.
"""

from __future__ import annotations

from typing import Any

from .. import _dispatch, _op_errors
from .._dispatch import NUMBERS, function
from .._tensor import Tensor
from ._namespace import functions as F
from .creation import below
from .pointwise import mul_scalar

# Names of the op and of its in-place form.
_UNARY = (
    ("aten::_foreach_abs", "aten::_foreach_abs_"),
    ("aten::_foreach_acos", "aten::_foreach_acos_"),
    ("aten::_foreach_asin", "aten::_foreach_asin_"),
    ("aten::_foreach_atan", "aten::_foreach_atan_"),
    ("aten::_foreach_ceil", "aten::_foreach_ceil_"),
    ("aten::_foreach_cos", "aten::_foreach_cos_"),
    ("aten::_foreach_cosh", "aten::_foreach_cosh_"),
    ("aten::_foreach_erf", "aten::_foreach_erf_"),
    ("aten::_foreach_erfc", "aten::_foreach_erfc_"),
    ("aten::_foreach_exp", "aten::_foreach_exp_"),
    ("aten::_foreach_expm1", "aten::_foreach_expm1_"),
    ("aten::_foreach_floor", "aten::_foreach_floor_"),
    ("aten::_foreach_frac", "aten::_foreach_frac_"),
    ("aten::_foreach_lgamma", "aten::_foreach_lgamma_"),
    ("aten::_foreach_log", "aten::_foreach_log_"),
    ("aten::_foreach_log10", "aten::_foreach_log10_"),
    ("aten::_foreach_log1p", "aten::_foreach_log1p_"),
    ("aten::_foreach_log2", "aten::_foreach_log2_"),
    ("aten::_foreach_neg", "aten::_foreach_neg_"),
    ("aten::_foreach_reciprocal", "aten::_foreach_reciprocal_"),
    ("aten::_foreach_round", "aten::_foreach_round_"),
    ("aten::_foreach_rsqrt", "aten::_foreach_rsqrt_"),
    ("aten::_foreach_sigmoid", "aten::_foreach_sigmoid_"),
    ("aten::_foreach_sign", "aten::_foreach_sign_"),
    ("aten::_foreach_sin", "aten::_foreach_sin_"),
    ("aten::_foreach_sinh", "aten::_foreach_sinh_"),
    ("aten::_foreach_sqrt", "aten::_foreach_sqrt_"),
    ("aten::_foreach_tan", "aten::_foreach_tan_"),
    ("aten::_foreach_tanh", "aten::_foreach_tanh_"),
    ("aten::_foreach_trunc", "aten::_foreach_trunc_"),
)
# The same, the op for a tensor and a number, and the op for two tensors.
_BINARY = (
    ("aten::_foreach_add", "aten::_foreach_add_", "add", "add"),
    ("aten::_foreach_sub", "aten::_foreach_sub_", "sub", "sub"),
    ("aten::_foreach_mul", "aten::_foreach_mul_", "mul", "mul"),
    ("aten::_foreach_div", "aten::_foreach_div_", "div", "div"),
    ("aten::_foreach_clamp_min", "aten::_foreach_clamp_min_", "clamp_min", "clamp_min"),
    ("aten::_foreach_clamp_max", "aten::_foreach_clamp_max_", "clamp_max", "clamp_max"),
    ("aten::_foreach_maximum", "aten::_foreach_maximum_", "clamp_min", "maximum"),
    ("aten::_foreach_minimum", "aten::_foreach_minimum_", "clamp_max", "minimum"),
    ("aten::_foreach_pow", "aten::_foreach_pow_", "pow", "pow"),
)
_TERNARY = (
    ("aten::_foreach_addcmul", "aten::_foreach_addcmul_"),
    ("aten::_foreach_addcdiv", "aten::_foreach_addcdiv_"),
    ("aten::_foreach_lerp", "aten::_foreach_lerp_"),
)
_WITH_ALPHA = ("add", "sub")
_WITH_TENSOR = ("add", "mul", "div")


def composite(text: str, expose: str) -> Any:
    """Declare an op on lists. The ops inside run below autograd unless a tensor requires gradients."""

    def declare(body: Any) -> Any:
        def seen(*arguments: Any) -> Any:
            if _dispatch.grad_state.enabled and not any(t._rg for t in _dispatch._tensors_in(arguments)):
                return below(body, *arguments)
            return body(*arguments)

        return _dispatch.composite(text, expose=expose)(seen)

    return declare


def _check_lists(name: str, *lists: Any) -> None:
    for position, tensors in enumerate(lists):
        if not isinstance(tensors, (tuple, list)):
            kind = type(tensors).__name__
            raise TypeError(f"{name}(): argument {position + 1} must be tuple of Tensors, not {kind}")
        if not tensors:
            raise RuntimeError("Tensor list must have at least one tensor.")
        for i, tensor in enumerate(tensors):
            if not isinstance(tensor, Tensor):
                raise TypeError(
                    f"expected Tensor as element {i} in argument {position}, but got {type(tensor).__name__}"
                )
        if len(tensors) != len(lists[0]):
            raise RuntimeError(
                f"Tensor lists must have the same number of tensors, got {len(lists[0])} and {len(tensors)}"
            )


def _check_scalars(tensors: Any, scalars: Any) -> None:
    if len(scalars) != len(tensors):
        raise RuntimeError("Tensor list must have same number of elements as scalar list.")


def _is_scalar_list(value: Any) -> bool:
    return isinstance(value, (tuple, list)) and not any(isinstance(v, Tensor) for v in value)


def _declare_unary(aten_name: str, inplace_name: str) -> None:
    name = aten_name.removeprefix("aten::").removeprefix("_foreach_")

    @composite(f"{aten_name}(Tensor[] self) -> Tensor[]", expose="no")
    def each(self: Any) -> Any:
        one = getattr(F, name)
        return [one(t) for t in self]

    @composite(f"{inplace_name}(Tensor(a!)[] self) -> ()", expose="no")
    def each_(self: Any) -> Any:
        one = getattr(Tensor, name + "_")
        for t in self:
            one(t)

    def front(self: Any) -> Any:
        _check_lists(f"_foreach_{name}", self)
        return tuple(each(self))

    def front_(self: Any) -> Any:
        _check_lists(f"_foreach_{name}_", self)
        each_(self)
        return list(self)

    function(f"_foreach_{name}", expose="function")(front)
    function(f"_foreach_{name}_", expose="function")(front_)


def shared_at_ties(name: str, clamp: Any, choose: Any) -> Any:
    """The op `name`: `clamp`, whose gradient goes to the tensor where both operands are equal; with gradients `choose`, which gives each one half."""

    def one(tensor: Any, other: Any) -> Any:
        if tensor.dtype.is_complex:
            raise _op_errors.not_implemented(f"{name}_cpu", tensor._array)
        is_tensor = isinstance(other, Tensor)
        if not _dispatch.grad_state.enabled or not (tensor._rg or (is_tensor and other._rg)):
            return clamp(tensor, other)
        return choose(tensor, other if is_tensor else F.scalar_tensor(other, dtype=tensor.dtype))

    return one


def _declare_binary(aten_name: str, inplace_name: str, by_number: str, by_tensor: str) -> None:
    name = aten_name.removeprefix("aten::").removeprefix("_foreach_")
    second = "exponent" if name == "pow" else "scalar"
    many = "exponent" if name == "pow" else "scalars"
    other_name = "exponent" if name == "pow" else "other"
    alpha_text = ", *, Scalar alpha=1" if name in _WITH_ALPHA else ""

    # Chosen once per list: the op for two tensors, or for a tensor and a number.
    def plain(with_tensor: bool) -> Any:
        one = getattr(F, by_tensor if with_tensor else by_number)
        return one if by_number == by_tensor else shared_at_ties(by_tensor, one, getattr(F, by_tensor))

    def inplace(with_tensor: bool) -> Any:
        if by_tensor in ("maximum", "minimum"):
            clamp = getattr(F, "clamp_min_" if by_tensor == "maximum" else "clamp_max_")
            choose = getattr(F, by_tensor)
            return shared_at_ties(by_tensor, clamp, lambda t, other: t.copy_(choose(t.clone(), other)))
        if not with_tensor and by_number == "mul":
            return mul_scalar.inplace
        return getattr(Tensor, (by_tensor if with_tensor else by_number) + "_")

    def overloads(declared: str, tensors: str, result: str, do: Any) -> dict[str, Any]:
        """Declare the overloads of one name: with a number, numbers, tensors or one tensor."""

        @composite(f"{declared}.Scalar({tensors} self, Scalar {second}) -> {result}", expose="no")
        def with_scalar(self: Any, scalar: Any) -> Any:
            one = do(False)
            return [one(t, scalar) for t in self]

        @composite(f"{declared}.ScalarList({tensors} self, Scalar[] {many}) -> {result}", expose="no")
        def with_scalars(self: Any, scalars: Any) -> Any:
            one = do(False)
            return [one(t, s) for t, s in zip(self, scalars)]

        @composite(
            f"{declared}.List({tensors} self, Tensor[] {other_name}{alpha_text}) -> {result}", expose="no"
        )
        def with_list(self: Any, other: Any, alpha: Any = 1) -> Any:
            one = do(True)
            if alpha == 1:
                return [one(t, o) for t, o in zip(self, other)]
            return [one(t, o, alpha=alpha) for t, o in zip(self, other)]

        by_kind = {"scalar": with_scalar, "scalars": with_scalars, "list": with_list}
        if name in _WITH_TENSOR:
            alpha_of_tensor = alpha_text if name == "add" else ""

            @composite(
                f"{declared}.Tensor({tensors} self, Tensor other{alpha_of_tensor}) -> {result}", expose="no"
            )
            def with_tensor(self: Any, other: Any, alpha: Any = 1) -> Any:
                one = do(True)
                return [one(t, other) if alpha == 1 else one(t, other, alpha=alpha) for t in self]

            by_kind["tensor"] = with_tensor
        return by_kind

    def call(full_name: str, forms: dict[str, Any], self: Any, other: Any, alpha: Any) -> Any:
        _check_lists(full_name, self)
        options = {} if alpha == 1 else {"alpha": alpha}
        if other.__class__ in NUMBERS:
            return forms["scalar"](self, other)
        if isinstance(other, Tensor):
            if "tensor" not in forms:
                return forms["scalar"](self, other.item())
            if other.dim():
                raise RuntimeError(
                    f"scalar tensor expected to be 0 dim but it has {other.dim()} dimensions and "
                    f"{other.numel()} "
                    "elements."
                )
            return forms["tensor"](self, other, **options)
        if _is_scalar_list(other):
            _check_scalars(self, other)
            return forms["scalars"](self, tuple(other))
        _check_lists(full_name, self, other)
        return forms["list"](self, other, **options)

    forms = overloads(aten_name, "Tensor[]", "Tensor[]", plain)
    forms_ = overloads(inplace_name, "Tensor(a!)[]", "()", inplace)

    def front(self: Any, other: Any, *, alpha: Any = 1) -> Any:
        if name == "pow" and self.__class__ in NUMBERS:
            return tuple(F.pow(self, exponent) for exponent in other)
        return tuple(call(f"_foreach_{name}", forms, self, other, alpha))

    def front_(self: Any, other: Any, *, alpha: Any = 1) -> Any:
        call(f"_foreach_{name}_", forms_, self, other, alpha)
        return list(self)

    function(f"_foreach_{name}", expose="function")(front)
    function(f"_foreach_{name}_", expose="function")(front_)


def _declare_ternary(aten_name: str, inplace_name: str) -> None:
    """addcmul and addcdiv (with a value) and lerp (with a weight)."""
    lerp = aten_name.endswith("lerp")
    lists = "Tensor[] tensors1" if lerp else "Tensor[] tensor1, Tensor[] tensor2"
    scalar = "Scalar weight" if lerp else "Scalar value=1"
    scalars = "Scalar[] weight" if lerp else "Scalar[] scalars"
    kinds = ((aten_name, "Tensor[]", "Tensor[]"), (inplace_name, "Tensor(a!)[]", "()"))

    def forms(declared: str, tensors: str, result: str) -> tuple[Any, Any]:
        method = declared.removeprefix("aten::").removeprefix("_foreach_")

        def body(*args: Any) -> Any:
            one, value = getattr(Tensor, method), args[-1]
            if lerp:
                return [one(t, end, value) for t, end in zip(*args[:-1])]
            return [one(t, a, b, value=value) for t, a, b in zip(*args[:-1])]

        def body_of_list(*args: Any) -> Any:
            one = getattr(Tensor, method)
            if lerp:
                return [one(t, end, value) for t, end, value in zip(*args)]
            return [one(t, a, b, value=value) for t, a, b, value in zip(*args)]

        with_scalar = composite(
            f"{declared}.Scalar({tensors} self, {lists}, {scalar}) -> {result}", expose="no"
        )(body)
        text = f"{declared}.ScalarList({tensors} self, {lists}, {scalars}) -> {result}"
        return with_scalar, composite(text, expose="no")(body_of_list)

    for kind in kinds:
        with_scalar, with_scalars = forms(*kind)
        full_name = kind[0].removeprefix("aten::")
        function(full_name, expose="function")(_ternary_front(full_name, with_scalar, with_scalars, lerp))


def _ternary_front(full_name: str, with_scalar: Any, with_scalars: Any, lerp: bool) -> Any:
    inplace = full_name.endswith("_")

    def call(lists: Any, value: Any) -> Any:
        _check_lists(full_name, *lists)
        if isinstance(value, Tensor):
            value = value._array.tolist()
            if not isinstance(value, list) or len(value) != len(lists[0]):
                given = len(value) if isinstance(value, list) else 1
                raise RuntimeError(
                    f"Expected length of scalars to match input of length {len(lists[0])} but got {given} "
                    "instead."
                )
        if isinstance(value, (tuple, list)):
            _check_scalars(lists[0], value)
            results = with_scalars(*lists, tuple(value))
        else:
            results = with_scalar(*lists, value)
        return list(lists[0]) if inplace else tuple(results)

    if lerp:
        return lambda self, tensors1, weight: call((self, tensors1), weight)

    def front(self: Any, tensor1: Any, tensor2: Any, value: Any = 1, *, scalars: Any = None) -> Any:
        return call((self, tensor1, tensor2), value if scalars is None else scalars)

    return front


for _names in _UNARY:
    _declare_unary(*_names)
for _row in _BINARY:
    _declare_binary(*_row)
for _names in _TERNARY:
    _declare_ternary(*_names)


@composite(
    "aten::_foreach_norm.Scalar(Tensor[] self, Scalar ord=2, ScalarType? dtype=None) -> Tensor[]", expose="no"
)
def _norm(self: Any, ord: Any = 2, dtype: Any = None) -> Any:
    return [F.linalg_vector_norm(t, ord, dtype=dtype) for t in self]


@function(expose="function")
def _foreach_norm(self: Any, ord: Any = 2, dtype: Any = None) -> Any:
    """The vector norm of each tensor."""
    _check_lists("_foreach_norm", self)
    return tuple(_norm(self, ord, dtype))


@composite("aten::_foreach_mm(Tensor[] self, Tensor[] mat2) -> Tensor[]", expose="no")
def _mm(self: Any, mat2: Any) -> Any:
    return [F.mm(a, b) for a, b in zip(self, mat2)]


@function(expose="function")
def _foreach_mm(self: Any, mat2: Any) -> Any:
    """The product of the matrices at the same place of two lists."""
    _check_lists("_foreach_mm", self, mat2)
    return tuple(_mm(self, mat2))


@composite("aten::_foreach_max(Tensor[] self) -> Tensor[]", expose="no")
def _max(self: Any) -> Any:
    return [F.max(t) for t in self]


@function(expose="function")
def _foreach_max(self: Any) -> Any:
    """The largest element of each tensor."""
    _check_lists("_foreach_max", self)
    return tuple(_max(self))


@composite(
    "aten::_foreach_clone(Tensor[] self, *, MemoryFormat? memory_format=None) -> Tensor[]", expose="no"
)
def _clone(self: Any, memory_format: Any = None) -> Any:
    return [F.clone(t, memory_format=memory_format) for t in self]


@function(expose="function")
def _foreach_clone(self: Any, *, memory_format: Any = None) -> Any:
    """A copy of each tensor."""
    _check_lists("_foreach_clone", self)
    return tuple(_clone(self, memory_format=memory_format))


@composite("aten::_foreach_zero_(Tensor(a!)[] self) -> ()", expose="no")
def _zero_(self: Any) -> Any:
    for t in self:
        t.zero_()


@function(expose="function")
def _foreach_zero_(self: Any) -> Any:
    """Fill each tensor with zeros."""
    _check_lists("_foreach_zero_", self)
    _zero_(self)
    return list(self)


@composite(
    "aten::_foreach_copy_(Tensor(a!)[] self, Tensor[] src, bool non_blocking=False) -> ()", expose="no"
)
def _copy_(self: Any, src: Any, non_blocking: bool = False) -> Any:
    for t, s in zip(self, src):
        t.copy_(s, non_blocking)


@function(expose="function")
def _foreach_copy_(self: Any, src: Any, non_blocking: bool = False) -> Any:
    """Copy each tensor of `src` into the one at its place."""
    _check_lists("_foreach_copy_", self, src)
    _copy_(self, src, non_blocking)
    return list(self)
