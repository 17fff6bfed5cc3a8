"""Common ops: prepares the ops of typical training steps before a recording starts, so that it does not measure their first calls.

The functions of an op are generated and compiled at its first call, which takes about half a millisecond. In a short recording that is
most of the time, and it counts as self time of whatever called the op. All 1,400 ops would take a second, these take a tenth of that, once
per process.
"""

from __future__ import annotations

from . import _dispatch

# what one step of an MLP, CNN, LSTM and transformer calls with the usual losses and optimizers, and the arithmetic around it
COMMON_OPS = """
    _batch_norm_impl_index _foreach_mul_.Tensor _foreach_norm.Scalar _local_scalar_dense _log_softmax
    _log_softmax_backward_data _reshape_alias _safe_softmax _scaled_dot_product_attention_math
    _scaled_dot_product_flash_attention_for_cpu _scaled_dot_product_flash_attention_for_cpu_backward _softmax
    _softmax_backward_data _to_copy _unsafe_view abs adaptive_avg_pool2d add.Tensor add_.Tensor addcdiv
    addcdiv_ addcmul addcmul_ addmm all all.dim any arange argmax batch_norm bernoulli.float bernoulli_.float
    binary_cross_entropy binary_cross_entropy_backward bmm broadcast_tensors cat chunk clamp clone contiguous conv2d
    convolution convolution_backward copy copy_ cross_entropy_loss detach detach_ div.Scalar div.Tensor div_.Tensor
    dropout einsum embedding embedding_backward embedding_dense_backward empty.memory_format empty_like eq.Tensor exp
    expand eye fill.Scalar fill_.Scalar flatten.using_ints full gather gelu gelu_backward gt.Tensor index.Tensor
    index_select isneginf item layer_norm leaky_relu leaky_relu_backward lerp.Scalar lerp_.Scalar lift_fresh
    linalg_vector_norm linear linspace log log_softmax.int lstm.input lt.Tensor masked_fill.Scalar matmul max max.dim
    max_pool2d max_pool2d_with_indices max_pool2d_with_indices_backward mean mean.dim mean.out min mkldnn_rnn_layer
    mkldnn_rnn_layer_backward mm mse_loss mse_loss_backward mul.Scalar mul.Tensor mul_.Tensor native_batch_norm
    native_batch_norm_backward native_layer_norm native_layer_norm_backward neg nll_loss nll_loss_backward
    nll_loss_forward nll_loss_nd normal normal_ ones ones_like permute pow.Tensor_Scalar rand randint.low randn randperm
    reciprocal relu remainder.Scalar reshape resolve_conj resolve_neg rsub.Scalar scalar_tensor
    scaled_dot_product_attention select.int select_backward sigmoid sigmoid_backward softmax.int sort split.Tensor sqrt
    squeeze.dim stack std.correction sub.Tensor sum sum.dim_IntList t tanh tanh_backward threshold_backward to.device
    to.dtype to.dtype_layout topk transpose.int tril unflatten.int uniform uniform_ unsqueeze var.correction view
    where.self where.self_out zero zero_ zeros zeros_like
""".split()

_prepared = False


def prepare() -> None:
    """Compile the functions of the common ops that were not called yet; once per process."""
    global _prepared
    if _prepared:
        return
    _prepared = True
    for name in COMMON_OPS:
        op = _dispatch.OPS.get(name)
        if op is not None and not is_prepared(op):
            op.build()


def is_prepared(op: _dispatch.Op) -> bool:
    """Whether the functions of an op are compiled."""
    return hasattr(op, "source")  # which compiling sets
