"""Kernel names: short forms say what a kernel does, and different kernels never look the same."""

# ruff: noqa: E501 (names of kernels)

from __future__ import annotations

import csv
import gzip
import sqlite3
from contextlib import closing
from pathlib import Path

import orjson
import pytest

from mindtorch_prof.kernel_names import LONG, fit_names, short_name, short_names

EXAMPLES = {
    "void at::native::vectorized_elementwise_kernel<4, at::native::(anonymous namespace)::silu_kernel(at::TensorIteratorBase&)"
    "::{lambda()#1}::operator()() const::{lambda()#4}::operator()() const::{lambda(c10::BFloat16)#1}, std::array<char*, 2ul> >"
    "(int, std::array<char*, 2ul>)": "vectorized_elementwise<4, silu>",
    "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::func_wrapper_t<float, "
    "at::native::sum_functor<float, float, float>::operator()(at::TensorIterator&)::{lambda(float, float)#1}>, unsigned int, float, 4> >"
    "(at::native::ReduceOp<float, int>)": "reduce<512, 1, sum>",
    "void cutlass::Kernel<cutlass_80_tensorop_s1688gemm_64x64_16x6_nn_align4>(cutlass_80_tensorop_s1688gemm_64x64_16x6_nn_align4"
    "::Params)": "cutlass_80_tensorop_s1688gemm_64x64_16x6_nn_align4",
    "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)": "ncclDevKernel_AllReduce_Sum_bf16_RING_LL",
    # the same kernel as Nsight writes it
    "void at::native::vectorized_elementwise_kernel<(int)4, at::native::rsqrt_kernel_cuda(at::TensorIteratorBase &)::"
    "[lambda() (instance 2)]::operator ()() const::[lambda() (instance 2)]::operator ()() const::[lambda(float) (instance 1)], "
    "std::array<char *, (unsigned long)2>>(int, T2, T3)": "vectorized_elementwise<4, rsqrt>",
    "Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT256x48x64_MI16x16x1_SN_LDSB1_AFC1_AFEM1_AFEM1_ASEM1_CLR1_CADS0_DTVA0": (
        "Cijk_Alik_Bljk_BBS_BH_MT256x48x64_MI16x16x1"
    ),
    "autograd::engine::evaluate_function: ConvolutionBackward0": "evaluate_function: ConvolutionBackward0",
    "_ZN2ck16tensor_operation6device12_GLOBAL__N_149kernel_grouped_conv_fwd_multiple_abd_xdl_cshuffleINS_34GridwiseGemm": (
        "kernel_grouped_conv_fwd_multiple_abd_xdl_cshuffle"
    ),
}  # fmt: skip

KEPT = [
    "aten::addmm",
    "Memcpy DtoH (Device -> Pageable)",
    "Memset (Device)",
    "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__",
    "torch/nn/modules/module.py(1553): _call_impl",
    "<built-in method linear of type object at 0x7f>",
    "nn.Module: Qwen2DecoderLayer_23",
    "triton_poi_fused__to_copy_add_mul_silu_0d1d2d3de_long_name_of_a_kernel",
    "aclnnLogSoftmaxBackward_LogSoftmaxGrad_LogSoftmaxGrad",
    "## Call CompiledFxGraph fabc ##",
    "operator<<(broken",
    "a < b and c > d",
    "",
]


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_kernel_is_named_after_what_it_computes(name: str) -> None:
    assert short_name(name) == EXAMPLES[name]


@pytest.mark.parametrize("name", KEPT)
def test_other_names_stay_as_they_are(name: str) -> None:
    assert short_name(name) == name


def test_names_that_would_look_alike_keep_what_tells_them_apart() -> None:
    fill = "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<{}>, std::array<char*, 1ul> >(int, std::array<char*, 1ul>)"
    names = [fill.format("float"), fill.format("c10::BFloat16"), fill.format("float")]
    assert short_names(names[:1]) == ["vectorized_elementwise<4, Fill>"]
    assert short_names(names) == [
        "vectorized_elementwise<4, Fill<float>>",
        "vectorized_elementwise<4, Fill<BFloat16>>",
        "vectorized_elementwise<4, Fill<float>>",
    ]


def test_names_of_tensile_differ_by_the_parameter_that_differs() -> None:
    long = "Cijk_Ailk_Bljk_BBS_BH_Bias_HAS_SAV_UserArgs_MT16x16x256_MI16x16x1_SN_LDSB1_GRVWA8_GRVWB{}_GSUAMBSK_ISA942"
    first, second = short_names([long.format(4), long.format(8)])
    assert first == "Cijk_Ailk_Bljk_BBS_BH_MT16x16x256_MI16x16x1 [GRVWB4]"
    assert second.endswith("[GRVWB8]")


def recorded_names(ecosystem: Path) -> list[set[str]]:
    """The names of kernels, copies and other device work, file by file: NVIDIA, AMD, Triton, Ascend, Nsight."""
    files = []
    for path in [*sorted(ecosystem.rglob("*.json.gz")), *sorted(ecosystem.rglob("trace_view.json"))]:
        data = path.read_bytes()
        document = orjson.loads(gzip.decompress(data) if path.suffix == ".gz" else data)
        events = document.get("traceEvents", []) if isinstance(document, dict) else document
        kinds = ("kernel", "Kernel", "gpu_memcpy", "gpu_memset", "Memcpy", "Memset")
        names = {str(e.get("name")) for e in events if isinstance(e, dict) and e.get("cat") in kinds}
        if path.name == "trace_view.json":
            names |= {str(e.get("name")) for e in events if e.get("ph") == "X" and not e.get("cat")}
        files.append(names)
    for path in sorted(ecosystem.rglob("kernel_details.csv")):
        with path.open() as lines:
            files.append({row["Name"] for row in csv.DictReader(lines)})
    return files


def nsys_names(ecosystem: Path, folder: Path) -> set[str]:
    path = folder / "nsys.sqlite"
    path.write_bytes(gzip.decompress((ecosystem / "nsys" / "h100_2gpu_1s.sqlite.gz").read_bytes()))
    sql = "select distinct value from CUPTI_ACTIVITY_KIND_KERNEL k join StringIds s on k.demangledName = s.id"
    with closing(sqlite3.connect(path)) as connection:
        return {row[0] for row in connection.execute(sql)}


def test_no_two_recorded_kernels_look_the_same(ecosystem: Path, tmp_path: Path) -> None:
    files = [*recorded_names(ecosystem), nsys_names(ecosystem, tmp_path)]
    together = sorted(set().union(*files))
    assert len(together) > 500
    for names in (*map(sorted, files), together):
        for width in (None, 24, 48, 80):
            shown = short_names(names, width)
            assert len(set(shown)) == len(names)
            assert width is None or max(map(len, shown), default=0) <= width


def test_recorded_kernels_fit_a_screen(ecosystem: Path) -> None:
    for names in recorded_names(ecosystem):
        cpp = [
            name for name in sorted(names) if len(name) > LONG and ("<" in name or name.startswith("Cijk"))
        ]
        short = short_names(cpp)
        assert sum(len(name) <= 60 for name in short) >= 0.75 * len(cpp)
        assert not any("at::native" in name or "anonymous" in name for name in short)


def test_texts_stay_distinct_in_any_width() -> None:
    texts = [f"model.layers.{i}.attention.query_projection" for i in range(40)]
    for width in (6, 8, 12, 20, 50):
        shown = fit_names(texts, width)
        assert len(set(shown)) == 40
        assert max(map(len, shown)) <= width
