"""Categories: the name of an event in, the kind of work it does out. Only the name decides, by the first rule that matches."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from ..arrays import IntArray
from ..communication import is_communication, on_host
from ..trace import ANNOTATION, ENGINE, PYTHON, RUNTIME, Trace

_NEVER = r"(?!)"
# (category, pattern found in the lower-case name without its namespace); the order decides
_RULES: tuple[tuple[str, str], ...] = (
    ("optimizer", r"^optimizer\.|^_?fused_(adam|sgd)|^_foreach_|multi_tensor_apply|fusedoptimizer"),
    ("dataloader", r"dataloader|_next_data"),
    ("pointwise", r"^triton_poi_"),  # named after all that they fuse, such as a convolution's bias
    ("communication", _NEVER),  # `mindtorch_prof.communication` knows these names
    ("convolution", r"conv(olution)?(?!ert)[_\d]*|^slow_conv|winograd|implicit_gemm|im2col|col2im|dgrad|wgrad|fprop"),
    ("attention", r"attention|flash_?attn|attn_(fwd|bwd)|flash_(fwd|bwd)|fmha|sdpa|(^|_|::)mla(_|$|\b)|reshape_and_cache"),
    ("normalization", r"(batch|layer|group|instance|rms|local_response)_?norm|^native_(batch|layer|group)_norm|bn_(fw|bw)_"),
    ("matmul", r"(^|_|\b|::)(mm|bmm|addmm|baddbmm|addbmm|matmul|linear|addmv|mv|dot|vdot|addr|ger|outer|einsum|tensordot|bilinear)(\b|_|$)|(?<!fb)gemm|cublas|cutlass|xmma|cijk_|triton_(mm|bmm|tem)|fused_?moe|moe_forward|fused_experts|nvjet"),
    ("recurrent", r"lstm|gru|rnn"),
    ("loss", r"loss|nll|cross_entropy|kl_div"),
    ("pooling", r"pool(?!ed_)|unpool"),
    ("indexing", r"embedding_\w*codegen|bounds_check_indices|permute_[12]d_"),  # torchrec's tables; some take random states
    ("random", r"(^|_)(rand|randn|randint|normal|uniform|bernoulli|dropout|multinomial|exponential|randperm)(_|$|\b)|philox|curand"),
    ("pointwise", r"rotary|quant(ize)?(_|$|\b)(?!.*gemm)"),
    ("indexing", r"(^|_|\b)(index|gather|scatter|embedding|masked_|take|nonzero|topk|sort|argsort|searchsorted|bucketize|unique|select_backward|slice_backward)"),
    ("copy", r"^(copy|_to_copy|to|clone|contiguous|cat|stack|_copy|pin_memory|item|_local_scalar_dense|type|cpu|cuda|memcpy|pad|constant_pad)(_|$|\b)|memcpy|copy_kernel|catarray|direct_copy|batched_transpose|nchw_?(to|2)_?nhwc|nhwc_?(to|2)_?nchw"),
    ("shape", r"^(view|_?reshape|_unsafe_view|t|transpose|permute|expand|squeeze|unsqueeze|flatten|unflatten|slice|select|narrow|split|chunk|unbind|as_strided|alias|detach|movedim|swapaxes|unfold|diagonal|_reshape_alias|view_as|expand_as|numpy_t|resolve_conj|resolve_neg|lift_fresh|resize|set|broadcast_to|repeat)(_|$|\b)"),
    ("creation", r"^(empty|zeros?|ones|full|fill|arange|linspace|eye|new_|tensor|scalar_tensor|memset|zero_)|^memset|fillfunctor"),
    ("pointwise", r"^(?!log_?softmax|logsumexp)(add|sub|mul|div|pow|neg|abs|exp|log|sqrt|rsqrt|sin|cos|tan|tanh|sigmoid|relu|gelu|silu|elu|selu|celu|leaky_relu|hardtanh|hardswish|hardsigmoid|mish|softplus|threshold|clamp|where|eq|ne|lt|le|gt|ge|logical|bitwise|floor|ceil|round|trunc|sign|reciprocal|lerp|addcmul|addcdiv|erf|maximum|minimum|remainder|fmod|square|isnan|isinf|isfinite|atan|sub|rsub|true_divide|expm1|log1p|sgn|prelu|glu|logit|conj|real|imag|nan_to_num|is_nonzero|clip|masked)(_|$|\b|\d)|elementwise|triton_poi|vectorized_"),
    ("reduction", r"(^|_)(sum|mean|prod|max|min|amax|amin|argmax|argmin|any|all|std|var|norm|logsumexp|cumsum|cumprod|softmax|log_softmax|count_nonzero|median|bincount|histc)(_|$|\b|\d)|reduce_kernel|softmax|triton_(red|per)_"),
    ("autograd", r"backward\d*$|^autograd|accumulategrad|engine::evaluate_function|^graphtask"),
)  # fmt: skip
# operators of Ascend, in snake case and without version, place and direction (aclnnInplaceMuls, ReluGrad, MatMulV2); after these the rules above
_ASCEND_RULES: tuple[tuple[str, str], ...] = (
    ("optimizer", r"^foreach_|^apply_"),
    ("convolution", r"conv"),
    ("attention", r"attention"),
    ("normalization", r"(layer|rms|batch|group|instance)_norm|^bn_"),
    ("matmul", r"mat_?mul|^(addmm|mm|bmm|baddbmm|gemm)"),
    ("loss", r"loss|cross_entropy"),
    ("pooling", r"pool"),
    ("random", r"drop_?out|random|gen_bit_mask|stateless"),
    ("indexing", r"gather|scatter|index|embedding|top_?k|sort|one_hot|masked|non_zero|unique"),
    ("copy", r"^(trans_data|transpose|tensor_move|copy|cast|broadcast_to|concat|split|pad|slice|strided_slice|view_copy|identity|pack|unpack|tile|as_strided)"),
    ("creation", r"^(zero|one|fill|mem_set|range|arange|eye)"),
    ("reduction", r"^reduce_|softmax|^(arg_)?(max|min|sum|mean|cumsum)(_|$)"),
    ("pointwise", r"^(real_div|muls?|adds?|subs?|divs?|equal|eq|not_equal|less|greater|select|select_v|swi_glu|swish|fast_gelu|rotary|power|axpy)(_|$)"),
)  # fmt: skip
_COMPILED = tuple((category, re.compile(pattern)) for category, pattern in _RULES)
_ASCEND = tuple((category, re.compile(pattern)) for category, pattern in _ASCEND_RULES)
# a kernel or call of Ascend: an operator in camel case, before numbers and formats (Conv2D12, MatMulV2_ND_ND_FP32)
_OPERATOR = re.compile(r"([A-Z][A-Za-z0-9]*[a-z][A-Za-z0-9]*?)\d*(?:_\w+)?$")
_NODE = re.compile(r"^(?:autograd::engine::evaluate_function: )?(\w+?)Backward\d*$")
CATEGORIES = (
    *reversed(dict.fromkeys(category for category, _ in reversed(_RULES))),
    "annotation",
    "python",
    "runtime",
    "other",
)


def category(name: str) -> str:
    """The category of an op, a node of the backward pass, or a kernel."""
    node = _NODE.match(name)
    if node is not None:  # MmBackward0 does the same kind of work as mm
        of_op = category(_snake(node[1]))
        return of_op if of_op != "other" else "autograd"
    operator = _ascend_operator(name)
    for result, pattern in _ASCEND if operator else ():
        if pattern.search(operator):
            return result
    lower = name.lower()
    plain = lower.rsplit("::", 1)[-1] if lower.startswith(("aten::", "prims::", "torchvision::")) else lower
    for text in (plain, operator) if operator else (plain,):
        for result, pattern in _COMPILED:
            if is_communication(name) if result == "communication" else pattern.search(text):
                return result
    return "other"


def categories(trace: Trace) -> tuple[IntArray, tuple[str, ...]]:
    """For each event the number of its category, and the categories' names."""
    number = {text: i for i, text in enumerate(CATEGORIES)}
    by_name = np.array([number[category(text)] for text in trace.names] or [0], np.int64)
    by_event = by_name[trace.name]
    # annotations that torch itself records around such work: an optimizer's step, a batch, a collective of NCCL or gloo
    collective = np.append(on_host(trace.names), False)[trace.name]
    keep_category = (by_event == number["optimizer"]) | (by_event == number["dataloader"]) | collective
    by_event = np.where((trace.kind == ANNOTATION) & ~keep_category, number["annotation"], by_event)
    by_event = np.where(trace.kind == ENGINE, number["autograd"], by_event)
    by_event = np.where(trace.kind == PYTHON, number["python"], by_event)
    by_event = np.where(trace.kind == RUNTIME, number["runtime"], by_event)
    return by_event, CATEGORIES


def name_categories(names: Sequence[str]) -> list[str]:
    """The categories of names, e.g. of kernels."""
    return [category(name) for name in names]


def _ascend_operator(name: str) -> str:
    """The operator of a kernel or call of Ascend, in snake case; empty: it is none."""
    if not name.startswith(("aclnn", "trans_")) and not _OPERATOR.fullmatch(name):
        return ""
    parts = [part for part in name.removeprefix("aclnn").removeprefix("trans_").split("_") if part]
    operator = parts[-1] if name.startswith("aclnn") else parts[0]
    text = re.sub(r"_v_?\d+$|v\d+$|\d+$", "", _snake(operator))
    text = re.sub(r"^inplace_", "", text)
    return re.sub(r"_(grad|backward|tensor|scalar)$", "", text) or text


def _snake(text: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", text).lower()
