"""torch.nn.functional: Python functions from the _functional_* files, and aten ops under their names.

Ops without a Python wrapper are bound to this module on first access.
"""

# ruff: noqa: F401  the names of this module are imports

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .._ops import functions as _ops
from . import _reduction as _Reduction
from ._functional_activation import (
    _get_softmax_dim,
    _threshold,
    alpha_dropout,
    celu,
    dropout,
    dropout1d,
    dropout2d,
    dropout3d,
    elu,
    feature_alpha_dropout,
    glu,
    gumbel_softmax,
    hardsigmoid,
    hardswish,
    hardtanh,
    leaky_relu,
    log_softmax,
    mish,
    relu,
    relu6,
    rrelu,
    selu,
    sigmoid,
    silu,
    softmax,
    softmin,
    softsign,
    tanh,
    tanhshrink,
    threshold,
)
from ._functional_attention import (
    _canonical_mask,
    _check_key_padding_mask,
    _in_projection,
    _in_projection_packed,
    _mha_shape_check,
    _none_or_dtype,
    multi_head_attention_forward,
)
from ._functional_loss import (
    binary_cross_entropy,
    binary_cross_entropy_with_logits,
    cosine_embedding_loss,
    cross_entropy,
    ctc_loss,
    gaussian_nll_loss,
    hinge_embedding_loss,
    huber_loss,
    kl_div,
    l1_loss,
    margin_ranking_loss,
    mse_loss,
    multi_margin_loss,
    multilabel_margin_loss,
    multilabel_soft_margin_loss,
    nll_loss,
    poisson_nll_loss,
    smooth_l1_loss,
    soft_margin_loss,
    triplet_margin_loss,
    triplet_margin_with_distance_loss,
)
from ._functional_norm import (
    _no_grad_embedding_renorm_,
    _verify_batch_size,
    _verify_spatial_size,
    batch_norm,
    embedding,
    embedding_bag,
    group_norm,
    instance_norm,
    layer_norm,
    local_response_norm,
    normalize,
    rms_norm,
)
from ._functional_pool import (
    _adaptive_max_pool1d,
    _adaptive_max_pool2d,
    _adaptive_max_pool3d,
    _check_unpool_output_size,
    _fractional_max_pool2d,
    _fractional_max_pool3d,
    _max_pool1d,
    _max_pool2d,
    _max_pool3d,
    _unpool_output_size,
    adaptive_avg_pool2d,
    adaptive_avg_pool3d,
    adaptive_max_pool1d,
    adaptive_max_pool1d_with_indices,
    adaptive_max_pool2d,
    adaptive_max_pool2d_with_indices,
    adaptive_max_pool3d,
    adaptive_max_pool3d_with_indices,
    fractional_max_pool2d,
    fractional_max_pool2d_with_indices,
    fractional_max_pool3d,
    fractional_max_pool3d_with_indices,
    lp_pool1d,
    lp_pool2d,
    lp_pool3d,
    max_pool1d,
    max_pool1d_with_indices,
    max_pool2d,
    max_pool2d_with_indices,
    max_pool3d,
    max_pool3d_with_indices,
    max_unpool1d,
    max_unpool2d,
    max_unpool3d,
)
from ._functional_vision import (
    GRID_SAMPLE_INTERPOLATION_MODES,
    GRID_SAMPLE_PADDING_MODES,
    _is_integer,
    affine_grid,
    fold,
    grid_sample,
    interpolate,
    pad,
    unfold,
    upsample,
    upsample_bilinear,
    upsample_nearest,
)
from ._linear_cross_entropy import linear_cross_entropy
from .modules.utils import _list_with_default, _pair, _single, _triple

if TYPE_CHECKING:
    from mindtorch_v2 import Tensor
    from mindtorch_v2 import dtype as DType

# Names in this module that are an aten op without a wrapper.
_OPS = {
    name: name
    for name in (
        "adaptive_avg_pool1d avg_pool1d avg_pool2d avg_pool3d bilinear celu_ channel_shuffle conv1d conv2d "
        "conv3d conv_tbc conv_transpose1d conv_transpose2d conv_transpose3d cosine_similarity elu_ gelu "
        "hardshrink hardtanh_ leaky_relu_ linear native_channel_shuffle one_hot pairwise_distance pdist "
        "pixel_shuffle pixel_unshuffle prelu relu_ rrelu_ scaled_dot_product_attention selu_ softplus "
        "softshrink threshold_"
    ).split()
} | {"logsigmoid": "log_sigmoid"}


def grouped_mm(
    mat_a: Tensor,
    mat_b: Tensor,
    *,
    offs: Tensor | None = None,
    bias: Tensor | None = None,
    out_dtype: DType | None = None,
) -> Tensor:
    """Products of groups of two matrices; `offs` holds the end of each group."""
    return _ops._grouped_mm(mat_a, mat_b, offs, bias, out_dtype)


def __getattr__(name: str) -> Any:
    if name not in _OPS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    op: Callable[..., Any] = getattr(_ops, _OPS[name])
    globals()[name] = op
    return op


def __dir__() -> list[str]:
    return sorted({*globals(), *_OPS})


for _function in list(globals().values()):
    # Functions report this module as theirs: pickles and tracebacks name it.
    if getattr(_function, "__module__", "").startswith(__package__ + "._functional"):
        _function.__module__ = __name__
