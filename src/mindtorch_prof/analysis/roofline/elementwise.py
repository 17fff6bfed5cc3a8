"""Elementwise ops, copies among them: inputs in; work out.

One operation per element of the result, whatever it is: an exponential, a comparison, a copy that may convert. Inputs are read and the
result is written once.
"""

from __future__ import annotations

from collections.abc import Mapping

from ...inputs import ElementType
from .work import (
    BOOL,
    FLOAT32,
    VECTOR,
    Call,
    Model,
    NotModelled,
    Tensor,
    Work,
    broadcast,
    contiguous,
    element_of_number,
    is_float,
    moved,
    promoted,
)

CATEGORY = "elementwise"


def _names(text: str, prefix: str = "aten::") -> list[str]:
    return [prefix + name for name in text.split()]


# how many of the first arguments are operands, numbers or tensors; a tensor after these is where the result is written
_OPERANDS = {
    1: """abs acos acosh angle asin asinh atan atanh bitwise_not ceil celu cos cosh deg2rad digamma elu erf erfc erfinv exp exp2 expm1 fix
    floor frac gelu hardshrink hardsigmoid hardswish hardtanh i0 isfinite isinf isnan isneginf isposinf leaky_relu lgamma log log10 log1p
    log2 log_sigmoid logical_not logit mish nan_to_num neg negative positive rad2deg reciprocal relu relu6 round rsqrt rrelu selu sgn
    sigmoid sign signbit silu sin sinc sinh softplus softshrink sqrt square tan tanh threshold trunc""",
    2: """add atan2 bitwise_and bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor clamp_max clamp_min copysign div divide eq
    float_power floor_divide fmax fmin fmod ge gt heaviside hypot ldexp le logaddexp logaddexp2 logical_and logical_or logical_xor lt
    maximum minimum mul multiply ne nextafter not_equal polar pow remainder rsub sub subtract true_divide xlogy
    __and__ __or__ __xor__ __lshift__ __rshift__
    gelu_backward hardsigmoid_backward hardswish_backward hardtanh_backward leaky_relu_backward log_sigmoid_backward logit_backward
    mish_backward sigmoid_backward silu_backward softplus_backward softshrink_backward tanh_backward threshold_backward
    native_dropout_backward""",
    3: "addcdiv addcmul clamp clip lerp masked_fill where",
    6: "elu_backward",
}
_COMPARISONS = frozenset(
    _names(
        """eq ne lt le gt ge not_equal logical_and logical_or logical_xor logical_not isfinite isinf isnan isneginf isposinf signbit"""
    )
)
# whole numbers give floating-point results
_TO_FLOAT = frozenset(
    _names(
        """acos acosh asin asinh atan atan2 atanh cos cosh deg2rad digamma div divide erf erfc erfinv exp exp2 expm1 lgamma log log10 log1p
        log2 logit rad2deg reciprocal rsqrt sigmoid sin sinc sinh sqrt tan tanh true_divide xlogy"""
    )
)


def _elementwise(call: Call, operands: int) -> Work:
    name = call.name
    in_place = name.endswith("_") and not name.endswith("__")
    plain = name[:-1] if in_place else name
    read = [tensor for tensor in map(call.optional, range(operands)) if tensor is not None]
    beyond = [tensor for tensor in map(call.optional, range(operands, len(call))) if tensor is not None]
    if not read:
        raise NotModelled("no tensor was recorded among the inputs")
    shape = broadcast([tensor.shape for tensor in read])
    if plain == "aten::where":
        read_types = read[1:] or read
    elif plain in ("aten::masked_fill", "aten::native_dropout_backward"):
        read_types = read[:1]
    else:
        read_types = read
    result = contiguous(shape, _result_type(call, plain, read_types))
    if in_place:
        result = read[0]
    elif beyond:
        result = beyond[0]
    return Work(result.numel, moved(*read, result), CATEGORY, VECTOR, promoted(read_types).dtype)


def _result_type(call: Call, plain: str, tensors: list[Tensor]) -> ElementType:
    if plain in _COMPARISONS:
        return BOOL
    element = promoted(tensors)
    if not is_float(element) and (
        plain in _TO_FLOAT or any(isinstance(value, float) for value in call.scalars())
    ):
        return FLOAT32
    return element


def one(call: Call) -> Work:
    return _elementwise(call, 1)


def two(call: Call) -> Work:
    return _elementwise(call, 2)


def three(call: Call) -> Work:
    return _elementwise(call, 3)


def six(call: Call) -> Work:
    return _elementwise(call, 6)


def copy(call: Call) -> Work:
    """target, source, ..."""
    target, source = call.tensor(0), call.tensor(1)
    return Work(target.numel, moved(target, source), CATEGORY, VECTOR, target.element.dtype)


def new_copy(call: Call) -> Work:
    """source, ...: the result is as large"""
    return _copied(call.tensor(0), call.tensor(0).element)


def converted(call: Call) -> Work:
    """source, dtype, ..."""
    source, number = call.tensor(0), call.value(1)
    if call.is_absent(1):
        return _copied(source, source.element)
    element = element_of_number(number) if isinstance(number, int) else None
    if element is None:
        raise NotModelled("the type that is converted to was not recorded")
    return _copied(source, element)


def _copied(source: Tensor, element: ElementType) -> Work:
    nbytes = moved(source, contiguous(source.shape, element))
    return Work(source.numel, nbytes, CATEGORY, VECTOR, element.dtype)


def dropout(call: Call) -> Work:
    """input, share, ...; the mask is written beside the result"""
    image = call.tensor(0)
    nbytes = moved(image, contiguous(image.shape, image.element), contiguous(image.shape, BOOL))
    return Work(image.numel, nbytes, CATEGORY, VECTOR, image.element.dtype)


def loss(call: Call) -> Work:
    """input, target, reduction (0: none)"""
    image, target = call.tensor(0), call.tensor(1)
    reduction = call.value(2)
    shape = image.shape if reduction == 0 else ()
    nbytes = moved(image, target, contiguous(shape, image.element))
    return Work(3 * image.numel, nbytes, CATEGORY, VECTOR, image.element.dtype)


def loss_backward(call: Call) -> Work:
    """gradient, input, target, ..."""
    gradient, image, target = call.tensor(0), call.tensor(1), call.tensor(2)
    nbytes = moved(gradient, image, target, contiguous(image.shape, image.element))
    return Work(3 * image.numel, nbytes, CATEGORY, VECTOR, image.element.dtype)


def foreach(call: Call) -> Work:
    """`_foreach_*`: one list or more; in place, or with lists as results"""
    lists = [call.tensor_list(place) for place in range(len(call)) if call.is_list(place)]
    if not lists:
        raise NotModelled("the tensors of a list were not recorded")
    read = sum(moved(*tensors) for tensors in lists)
    elements = sum(tensor.numel for tensor in lists[0])
    return Work(elements, read + moved(*lists[0]), CATEGORY, VECTOR, lists[0][0].element.dtype)


# operations per element of a fused optimizer, and how many of its lists it writes, not counting gradients
_OPTIMIZERS = {
    "_fused_adam_": (13, 3),
    "_fused_adamw_": (14, 3),
    "_fused_sgd_": (4, 2),
    "_fused_adagrad_": (6, 2),
}


def optimizer(call: Call) -> Work:
    """parameters, gradients, states ...; all are read, and all but the gradients are written"""
    per_element, written = _OPTIMIZERS[call.name.removeprefix("aten::")]
    parameters, gradients = call.tensor_list(0), call.tensor_list(1)
    states = [call.tensor_list(place) for place in range(2, 1 + written)]
    own = moved(*parameters) + sum(moved(*tensors) for tensors in states)
    flop = per_element * sum(tensor.numel for tensor in parameters)
    return Work(flop, 2 * own + moved(*gradients), CATEGORY, VECTOR, parameters[0].element.dtype)


def _by_name() -> Mapping[str, Model]:
    models: dict[str, Model] = {}
    for count, model in ((1, one), (2, two), (3, three), (6, six)):
        for name in _names(_OPERANDS[count]):
            models[name] = models[name + "_"] = model
    return models


MODELS: dict[str, Model] = {
    **_by_name(),
    "aten::copy_": copy,
    "aten::_to_copy": converted,
    "aten::clone": new_copy,
    "aten::contiguous": new_copy,
    "aten::native_dropout": dropout,
    "aten::mse_loss": loss,
    "aten::l1_loss": loss,
    "aten::smooth_l1_loss": loss,
    "aten::huber_loss": loss,
    "aten::mse_loss_backward": loss_backward,
    "aten::smooth_l1_loss_backward": loss_backward,
    "aten::huber_loss_backward": loss_backward,
    **{f"aten::{name}": optimizer for name in _OPTIMIZERS},
}
FOREACH_PREFIX = "aten::_foreach_"
