"""Categories: the name of an event tells what kind of work it is."""

from __future__ import annotations

from pathlib import Path

import pytest
from trace_builder import make_trace

from mindtorch_prof import load
from mindtorch_prof.analysis.categories import categories, category
from mindtorch_prof.analysis.groups import groups
from mindtorch_prof.trace import ANNOTATION, ENGINE, PYTHON, RUNTIME


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("aten::addmm", "matmul"),
        ("AddmmBackward0", "matmul"),
        ("aten::conv2d", "convolution"),
        ("aten::convert_element", "other"),
        ("aten::clamp_min", "pointwise"),
        ("aten::_log_softmax", "reduction"),
        ("aten::native_layer_norm", "normalization"),
        ("aten::scaled_dot_product_attention", "attention"),
        ("aten::nll_loss_forward", "loss"),
        ("aten::max_pool2d", "pooling"),
        ("aten::embedding", "indexing"),
        ("aten::_to_copy", "copy"),
        ("aten::transpose", "shape"),
        ("aten::empty_strided", "creation"),
        ("aten::uniform_", "random"),
        ("aten::sum", "reduction"),
        ("nccl:all_reduce", "communication"),
        ("gloo:broadcast", "communication"),
        ("c10d::allreduce_", "communication"),
        ("record_param_comms", "communication"),
        ("ncclDevKernel_Generic(ncclDevKernelArgsStorage<4096ul>)", "communication"),
        ("hcom_allReduce__433_0_1", "communication"),
        ("Optimizer.step#SGD.step", "optimizer"),
        ("torch::autograd::AccumulateGrad", "autograd"),
        ("ampere_sgemm_128x64_tn", "matmul"),
        ("Memcpy HtoD (Pageable -> Device)", "copy"),
        ("attn_fwd", "attention"),
        ("batched_transpose_16x32_half", "copy"),
        ("void cudnn::engines_precompiled::nchwToNhwcKernel<__nv_bfloat16, float>(Params)", "copy"),
        (
            "void cutlass_cudnn_infer::Kernel<cutlass_tensorop_s1688dgrad_optimized_tf32>(Params)",
            "convolution",
        ),
        ("Cijk_Alik_Bljk_BBS_BH_MT64x64x64", "matmul"),
        ("aclnnMm_MatMulCommon_MatMulV2", "matmul"),
        ("aclnnMm_MatMulCommon_MemSet", "creation"),
        ("MatMulV2_ND_ND_FP32_FP32_false_false_all_65537", "matmul"),
        ("trans_TransData_12", "copy"),
        ("Conv2DBackpropFilter6", "convolution"),
        ("aclnnAdaptiveAvgPool2dBackward_AdaptiveAvgPool3dGradAiCore_AdaptiveAvgPool3dGrad", "pooling"),
        ("aclnnInplaceMuls_MulAiCore_Mul", "pointwise"),
        ("aclnnThresholdBackward_ReluGrad_ReluGrad", "pointwise"),
        ("aclnnForeachAddListV2_ForeachAddListV2_ForeachAddList", "optimizer"),
        ("aclnnRmsNorm_RmsNormAiCore_RmsNorm", "normalization"),
        ("aclnnFlashAttentionScoreGrad_FlashAttentionScoreGrad_FlashAttentionScoreGrad", "attention"),
        ("OnesLike_5c5e58e043224cccf51a06108010ae13_high_performance_210000000", "creation"),
    ],
)
def test_names_tell_categories(name: str, expected: str) -> None:
    assert category(name) == expected


def test_an_event_that_is_no_op_has_the_category_of_its_kind() -> None:
    kinds = {
        ("sum of losses", ANNOTATION): "annotation",
        ("Optimizer.step#SGD.step", ANNOTATION): "optimizer",
        ("nccl:all_reduce", ANNOTATION): "communication",
        ("gloo:all_reduce", ANNOTATION): "communication",
        ("my all_reduce phase", ANNOTATION): "annotation",
        ("autograd::engine::evaluate_function: MmBackward0", ENGINE): "autograd",
        ("model.py(3): add", PYTHON): "python",
        ("cudaMemcpyAsync", RUNTIME): "runtime",
    }
    trace = make_trace(*[(name, place, place, 1, kind) for place, (name, kind) in enumerate(kinds)])
    number, names = categories(trace)
    assert [names[n] for n in number] == list(kinds.values())


def test_the_kernels_of_an_annotated_collective_are_communication(ecosystem: Path) -> None:
    rows = groups(load(ecosystem / "ranks" / "dlrm_8" / "rank0.pt.trace.json.gz"), ("category",)).rows()
    device = {row["category"]: row["self_device_share"] for row in rows}
    assert device["communication"] == pytest.approx(0.846, abs=0.001)
    assert device["annotation"] == 0


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("flash_attn::_flash_attn_varlen_forward", "attention"),
        ("void ck_tile::kentry<256, 2, ck_tile::FmhaFwdKernel<ck_tile::BlockFmhaPipeline>>", "attention"),
        ("aiter::fmha_v3_varlen_fwd", "attention"),
        ("_C_cache_ops::reshape_and_cache_flash", "attention"),
        ("aten::_scaled_mm", "matmul"),
        ("nvjet_tst_192x192_64x4_2x1_v_bz_coopB_TNT", "matmul"),
        ("Cijk_Alik_Bljk_F8BS_BH_Bias_HA_S_SAV_UserArgs_MT256x256x128", "matmul"),
        ("triton_tem_fused_mm_3", "matmul"),
        ("vllm::moe_forward", "matmul"),
        ("deep_gemm::fp8_gemm_kernel", "matmul"),
        ("fbgemm::split_embedding_codegen_lookup_rowwise_adagrad_function", "indexing"),
        ("split_embedding_codegen_forward_unweighted_kernel", "indexing"),
        (
            "void split_embedding_backward_codegen_adagrad_kernel_cta_per_row_1<float>(at::PhiloxCudaState)",
            "indexing",
        ),
        ("fbgemm::permute_2D_sparse_data", "indexing"),
        ("_C::rotary_embedding", "pointwise"),
        ("_C::dynamic_scaled_fp8_quant", "pointwise"),
        ("triton_red_fused_native_layer_norm_4", "normalization"),
        ("triton_per_fused_sum_2", "reduction"),
        ("aten::conv_transpose2d", "convolution"),
        ("ConvolutionBackward0", "convolution"),
    ],
)
def test_names_of_other_libraries_are_known(name: str, expected: str) -> None:
    assert category(name) == expected
