"""Categories: the name of an event tells what kind of work it is."""

from __future__ import annotations

import pytest
from trace_builder import make_trace

from mindtorch_prof.analysis.categories import categories, category
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
        ("Optimizer.step#SGD.step", "optimizer"),
        ("torch::autograd::AccumulateGrad", "autograd"),
        ("ampere_sgemm_128x64_tn", "matmul"),
        ("Memcpy HtoD (Pageable -> Device)", "copy"),
    ],
)
def test_names_tell_categories(name: str, expected: str) -> None:
    assert category(name) == expected


def test_an_event_that_is_no_op_has_the_category_of_its_kind() -> None:
    kinds = {
        ("sum of losses", ANNOTATION): "annotation",
        ("Optimizer.step#SGD.step", ANNOTATION): "optimizer",
        ("autograd::engine::evaluate_function: MmBackward0", ENGINE): "autograd",
        ("model.py(3): add", PYTHON): "python",
        ("cudaMemcpyAsync", RUNTIME): "runtime",
    }
    trace = make_trace(*[(name, place, place, 1, kind) for place, (name, kind) in enumerate(kinds)])
    number, names = categories(trace)
    assert [names[n] for n in number] == list(kinds.values())
