"""The public names of torch are here, or are listed with the reason why not.

The names are recorded with `python facts/record_torch_names.py`.
"""

from __future__ import annotations

import importlib
import re
from typing import Any

import fact_files
import pytest

import mindtorch_v2 as torch

NAMES = fact_files.read("torch_names.json")

# reason -> the names it holds for, as patterns of whole names
LEFT_OUT = {
    "kernels of other devices and libraries": r"(cudnn|miopen|mkldnn|fbgemm)_.*|is_vulkan_available|ipu|mtia"
    r"|to_mkldnn|batch_norm_(backward_elemt|backward_reduce|elemt|gather_stats.*|stats|update_stats)"
    r"|profiler_allow_cudagraph_cupti_lazy_reinit_cuda12",
    "autocast of devices that are not here": r"(set|get|is)_autocast_(ipu|xla|gpu)_?(dtype|enabled)?",
    "quantisation": r"quantize.*|quantized_.*|fused_moving_avg_obs_fake_quant|dequantize"
    r"|empty_quantized|choose_qparams.*|q_.*|qscheme|int_repr|q(u?)int.*",
    "types of less than a byte, bits, floats without arithmetic": r"u?int[1-7]|bits?.*|float[48]_.*",
    "sparse layouts other than COO": r"sparse_(bsc|bsr|csc)|(ccol|crow|col|row)_indices(_copy)?"
    r"|SparseSemiStructuredTensor.*",
    "copies that serve torch's functionalisation": r"indices_copy|values_copy|slice_inverse",
    "for sparse tensors only, which have it": r"sparse_resize_(and_clear_)?|resize_as_sparse_",
    "TorchScript": r"fork|wait|import_ir_module.*|parse_(ir|schema|type_comment)|(merge|unify)_type_.*"
    r"|compiled_with_cxx11_abi",
    "symbolic shapes": r"sym_(constrain_range.*|fresh_size)",
    "nested tensors": r"jagged|to_padded_tensor",
    "torch's own workings": r"classproperty|get_file_path|prepare_multiprocessing_environment"
    r"|init_num_threads|thread_safe_generator",
    "removed from torch, or never worked": r"eig|symeig|solve|volatile|reinforce|native_norm",
}


def found_in(path: str) -> Any:
    return (
        torch.Tensor
        if path == "torch.Tensor"
        else importlib.import_module("mindtorch_v2" + path[len("torch") :])
    )


def is_left_out(name: str) -> bool:
    return any(re.fullmatch(pattern, name) for pattern in LEFT_OUT.values())


@pytest.mark.parametrize("path", sorted(NAMES))
def test_every_public_name_of_torch_is_here_or_left_out_with_a_reason(path: str) -> None:
    owner = found_in(path)
    missing = [name for name in NAMES[path] if not hasattr(owner, name) and not is_left_out(name)]
    assert missing == []


def test_no_reason_is_given_for_a_name_that_is_here() -> None:
    every = {name: path for path, names in NAMES.items() for name in names}
    for reason, pattern in LEFT_OUT.items():
        held = [name for name in every if re.fullmatch(pattern, name)]
        assert held, reason
        assert any(not hasattr(found_in(every[name]), name) for name in held), reason


def test_the_namespace_lists_its_lazy_names() -> None:
    assert {"nn", "save", "FloatTensor", "use_deterministic_algorithms", "special"} <= set(dir(torch))


def test_names_of_errors_and_of_arithmetic_on_sizes_are_there() -> None:
    assert torch.cuda.OutOfMemoryError is torch.OutOfMemoryError
    assert issubclass(torch.AcceleratorError, RuntimeError)
    assert repr(torch.OutOfMemoryError) == "<class 'torch.OutOfMemoryError'>"
    assert torch.GradScaler is torch.amp.GradScaler
    assert torch.autograd.DeviceType.CPU.name == "CPU"
    assert (torch.sym_int(-2.7), torch.sym_max(2, 3.0), torch.sym_not(False)) == (-2, 3.0, True)
    assert (torch.sym_ite(True, 1, 2), torch.sym_sum([1, 2]), torch.sym_sqrt(4)) == (1, 3, 2.0)


def test_functional_has_the_same_objects_as_the_top_level() -> None:
    for name in torch.functional.__all__:
        assert getattr(torch.functional, name) is getattr(torch, name), name
