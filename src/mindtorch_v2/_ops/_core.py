"""The fused loops of the compiled core, for kernels: arrays in, an array out, or None where the kernel's NumPy code has to run.

A kernel calls its fused loop first and goes on with NumPy if the result is None: without the compiled core, for other dtypes than
float32 and float64, and for arrays that are not contiguous. The NumPy code is the definition; both give the same bits.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mindtorch_prof.core import compiled

_fused = compiled("mindtorch_v2._ops._fused")


def _not_compiled(*_: Any) -> None:
    return None


def _loop(name: str) -> Callable[..., Any]:
    if _fused is None:
        return _not_compiled
    loop: Callable[..., Any] | None = getattr(_fused, name, None)
    if loop is None:
        raise ImportError(
            f"{_fused.__file__} has no loop {name!r}: it is older than the Python sources; build it again with `pip install .`, "
            "in a checkout with `python setup.py build_ext --inplace`, or set MINDTORCH_CORE=python"
        )
    return loop


add_scaled = _loop("add_scaled")
threshold_backward = _loop("threshold_backward")
masked_fill = _loop("masked_fill")
nll_losses = _loop("nll_losses")
nll_gradient = _loop("nll_gradient")
multilabel_margins = _loop("multilabel_margins")
lerp = _loop("lerp")
addcmul = _loop("addcmul")
addcdiv = _loop("addcdiv")
add_row = _loop("add_row")
sum_columns = _loop("sum_columns")
sum_at_rows = _loop("sum_at_rows")
softmax = _loop("softmax")
softmax_backward = _loop("softmax_backward")
log_softmax = _loop("log_softmax")
log_softmax_backward = _loop("log_softmax_backward")
layer_norm = _loop("layer_norm")
layer_norm_backward = _loop("layer_norm_backward")
clamp = _loop("clamp")
row_sums = _loop("row_sums")
topk = _loop("topk")
strided = _loop("strided")
inside = _loop("inside")
exp = _loop("exp")
sigmoid = _loop("sigmoid")
silu = _loop("silu")
gelu = _loop("gelu")
gelu_backward = _loop("gelu_backward")
convolve = _loop("convolve")
convolve_weight = _loop("convolve_weight")
convolve_input = _loop("convolve_input")
lstm_forward = _loop("lstm_forward")
lstm_backward = _loop("lstm_backward")
max_pool = _loop("max_pool")
adaptive_max_pool = _loop("adaptive_max_pool")
max_pool_at = _loop("max_pool_at")
avg_pool = _loop("avg_pool")
avg_pool_backward = _loop("avg_pool_backward")
adaptive_avg_pool = _loop("adaptive_avg_pool")
adaptive_avg_pool_backward = _loop("adaptive_avg_pool_backward")
scatter_planes = _loop("scatter_planes")
move_columns = _loop("move_columns")
grid_sample = _loop("grid_sample")
grid_sample_backward = _loop("grid_sample_backward")
sign = _loop("sign")
reciprocal = _loop("reciprocal")
rsqrt = _loop("rsqrt")
leaky_relu = _loop("leaky_relu")
hardswish = _loop("hardswish")
leaky_relu_backward = _loop("leaky_relu_backward")
hardtanh_backward = _loop("hardtanh_backward")
hardswish_backward = _loop("hardswish_backward")
sigmoid_backward = _loop("sigmoid_backward")
tanh_backward = _loop("tanh_backward")
squared_difference = _loop("squared_difference")
smooth_l1 = _loop("smooth_l1")
lerp_by = _loop("lerp_by")
log = _loop("log")
log1p = _loop("log1p")
expm1 = _loop("expm1")
erf = _loop("erf")
elu = _loop("elu")
softplus = _loop("softplus")
mish = _loop("mish")
elu_backward = _loop("elu_backward")
softplus_backward = _loop("softplus_backward")
silu_backward = _loop("silu_backward")
mish_backward = _loop("mish_backward")
select = _loop("select")
remainder = _loop("remainder")
converted = _loop("converted")
accumulated = _loop("accumulated")
running_extremes = _loop("running_extremes")
reduced_rows = _loop("reduced_rows")
reversed_rows = _loop("reversed_rows")
gathered = _loop("gathered")
scattered = _loop("scattered")
depthwise = _loop("depthwise")
depthwise_weight = _loop("depthwise_weight")
planes_affine = _loop("planes_affine")
