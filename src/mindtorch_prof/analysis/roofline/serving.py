"""Ops of serving libraries (vLLM, SGLang, aiter, torch_npu, fbgemm): inputs of gated activations, rotary embeddings, norms, quantisation and writes to
the cache of keys and values in; work out.

Attention over a paged cache is not modelled: how much of the cache a call reads is in no input. Neither are mixtures of experts, whose weights are
no inputs.
"""

from __future__ import annotations

from ...inputs import ELEMENT_TYPES
from .elementwise import CATEGORY as ELEMENTWISE
from .matmul import CATEGORY as PRODUCT
from .movement import EMBEDDING
from .normalization import rms_norm_of
from .work import MATRIX, VECTOR, Call, Model, NotModelled, Tensor, Work, contiguous, moved

_SILU = 5  # operations per element: exp, add, divide, and the product with the other half
_ROTARY = 3  # two products and a sum per element
_QUANTISE = 2  # scale, round


def gated(call: Call) -> Work:
    """result, input of twice its size"""
    result, image = call.tensor(0), call.tensor(1)
    if image.numel != 2 * result.numel:
        raise NotModelled("the input of a gated activation is not twice as large as its result")
    return Work(_SILU * result.numel, moved(result, image), ELEMENTWISE, VECTOR, image.element.dtype)


def swiglu(call: Call) -> Work:
    """torch_npu: input; the result is half of it"""
    image = call.tensor(0)
    result = contiguous((image.numel // 2,), image.element)
    return Work(_SILU * result.numel, moved(image, result), ELEMENTWISE, VECTOR, image.element.dtype)


def rotary(call: Call) -> Work:
    """vLLM: positions, query, key or nothing, size of a head, cache of cosines and sines, ...: query and key are changed in place"""
    positions, query, key, cache = call.tensor(0), call.tensor(1), call.optional(2), call.tensor(4)
    angles = contiguous((positions.numel, cache.shape[-1]), cache.element)
    nbytes = moved(positions, angles, query, query, key, key)
    elements = query.numel + (0 if key is None else key.numel)
    return Work(_ROTARY * elements, nbytes, ELEMENTWISE, VECTOR, query.element.dtype)


def rotary_mul(call: Call) -> Work:
    """torch_npu: input, cosines, sines"""
    image, cosines, sines = call.tensor(0), call.tensor(1), call.tensor(2)
    nbytes = moved(image, cosines, sines, contiguous(image.shape, image.element))
    return Work(_ROTARY * image.numel, nbytes, ELEMENTWISE, VECTOR, image.element.dtype)


def cache_write(call: Call) -> Work:
    """key, value, caches of both, slots, ...: each slot is written once, in the type of the cache"""
    key, value, key_cache, value_cache, slots = (call.tensor(place) for place in range(5))
    written = contiguous(key.shape, key_cache.element), contiguous(value.shape, value_cache.element)
    return Work(0, moved(key, value, slots, *written), EMBEDDING, VECTOR, key.element.dtype)


def quantise(call: Call) -> Work:
    """result, input, scales"""
    result, image, scale = call.tensor(0), call.tensor(1), call.optional(2)
    return Work(
        _QUANTISE * image.numel, moved(result, image, scale), ELEMENTWISE, VECTOR, image.element.dtype
    )


def rms_norm(call: Call) -> Work:
    """aiter, torch_npu: input, weight, ..."""
    image, weight = call.tensor(0), call.tensor(1)
    return rms_norm_of(image, weight, moved(image, weight, contiguous(image.shape, image.element)))


def add_and_rms_norm_written(call: Call) -> Work:
    """aiter: result, input, residual, new residual, weight, ..."""
    result, image, residual, new_residual, weight = (call.tensor(place) for place in range(5))
    return rms_norm_of(image, weight, moved(result, image, residual, new_residual, weight), further=1)


def row_scaled_mm(call: Call) -> Work:
    """fbgemm: input (M, K) and weight (N, K) in 8 bits, scales of both, bias; the result is bfloat16"""
    left, weight = call.tensor(0), call.tensor(1)
    if len(left.shape) < 2 or len(weight.shape) != 2 or left.shape[-1] != weight.shape[1]:
        raise NotModelled("the shapes of the input and of the weight do not fit")
    rows = left.numel // max(left.shape[-1], 1)
    result = contiguous((rows, weight.shape[0]), ELEMENT_TYPES["c10::BFloat16"])
    others: tuple[Tensor | None, ...] = tuple(call.optional(place) for place in (2, 3, 4))
    flop = 2 * rows * weight.numel
    return Work(flop, moved(left, weight, result, *others), PRODUCT, MATRIX, left.element.dtype)


MODELS: dict[str, Model] = {
    "_C::silu_and_mul": gated,
    "_C::gelu_and_mul": gated,
    "_C::gelu_tanh_and_mul": gated,
    "aiter::silu_and_mul": gated,
    "aiter::gelu_and_mul": gated,
    "sgl_kernel::silu_and_mul": gated,
    "sgl_kernel::gelu_and_mul": gated,
    "sgl_kernel::gelu_tanh_and_mul": gated,
    "npu::npu_swiglu": swiglu,
    "_C::rotary_embedding": rotary,
    "sgl_kernel::rotary_embedding": rotary,
    "npu::npu_rotary_mul": rotary_mul,
    "_C_cache_ops::reshape_and_cache": cache_write,
    "_C_cache_ops::reshape_and_cache_flash": cache_write,
    "_C::static_scaled_fp8_quant": quantise,
    "_C::dynamic_scaled_fp8_quant": quantise,
    "_C::dynamic_per_token_scaled_fp8_quant": quantise,
    "_C::static_scaled_int8_quant": quantise,
    "_C::dynamic_scaled_int8_quant": quantise,
    "aiter::rms_norm": rms_norm,
    "npu::npu_rms_norm": rms_norm,
    "aiter::rmsnorm2d_fwd_with_add_ck": add_and_rms_norm_written,
    "aiter::rmsnorm2d_fwd_with_add": add_and_rms_norm_written,
    "aiter::add_rmsnorm": add_and_rms_norm_written,
    "fbgemm::f8f8bf16_rowwise": row_scaled_mm,
}
