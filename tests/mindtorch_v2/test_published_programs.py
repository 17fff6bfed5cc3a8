"""What published programs were found to need: one short excerpt a test, with what torch gives."""

from __future__ import annotations

import warnings
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mindtorch_v2 as torch
from mindtorch_v2._utils import _flatten_dense_tensors, _take_tensors, _unflatten_dense_tensors
from mindtorch_v2.quasirandom import SobolEngine


def test_gradient_of_a_sum_of_one_number_can_be_written() -> None:
    p = torch.nn.Parameter(torch.ones(1))
    p.sum().backward()
    torch.add(p.grad, 1, out=p.grad)
    assert p.grad.tolist() == [2.0]
    p.grad = None
    scaler = torch.amp.GradScaler("cpu", init_scale=8.0)
    scaler.scale(p.sum()).backward()
    scaler.unscale_(torch.optim.SGD([p], lr=0.1))
    assert p.grad.tolist() == [1.0]


def test_sobol_points_are_torchs() -> None:
    engine = SobolEngine(3)
    assert engine.draw(5).tolist() == [
        [0.0, 0.0, 0.0], [0.5, 0.5, 0.5], [0.75, 0.25, 0.25], [0.25, 0.75, 0.75], [0.375, 0.375, 0.625]
    ]  # fmt: skip
    engine.reset().fast_forward(5)
    assert engine.draw(2).tolist() == [[0.875, 0.875, 0.125], [0.625, 0.125, 0.875]]
    scrambled = SobolEngine(2, scramble=True, seed=7)
    assert repr(scrambled) == "SobolEngine(dimension=2, scramble=True, seed=7)"
    expected = torch.tensor([[0.1995, 0.1709], [0.9454, 0.8953], [0.6495, 0.4836], [0.4036, 0.7080]])
    assert torch.allclose(scrambled.draw(4), expected, atol=1e-4)
    with pytest.raises(ValueError, match=r"require n to be a power of 2\. 7 points"):
        engine.draw_base2(3)


def test_fake_quantisation_rounds_to_the_grid_and_passes_gradients_inside_it() -> None:
    x = torch.linspace(-1, 1, 7, requires_grad=True)
    y = torch.fake_quantize_per_tensor_affine(x, 0.1, 2, 0, 15)
    assert torch.allclose(y, torch.tensor([-0.2, -0.2, -0.2, 0.0, 0.3, 0.7, 1.0]))
    assert type(y.grad_fn).__name__ == "FakeQuantizePerTensorAffineCachemaskBackward0"
    y.sum().backward()
    assert x.grad.tolist() == [0, 0, 0, 1, 1, 1, 1]
    same = torch.fake_quantize_per_tensor_affine(x, torch.tensor(0.1), torch.tensor(2), 0, 15)
    assert torch.equal(same, y)
    w = torch.linspace(-1, 1, 6).view(2, 3)
    scale, zero = torch.tensor([0.1, 0.2]), torch.tensor([0, 3], dtype=torch.int32)
    made = torch.fake_quantize_per_channel_affine(w, scale, zero, 0, -4, 7)
    assert torch.allclose(made, torch.tensor([[-0.4, -0.4, -0.2], [0.2, 0.6, 0.8]]))
    with pytest.raises(RuntimeError, match="`zero_point` must be between `quant_min` and `quant_max`"):
        torch.fake_quantize_per_tensor_affine(x, 0.1, 300, 0, 255)
    with pytest.raises(RuntimeError, match="Zero-point must be Int32, Float or Half, found Long"):
        torch.fake_quantize_per_channel_affine(w, scale, zero.long(), 0, -4, 7)


def test_tensors_are_packed_into_one_and_taken_in_bunches() -> None:
    tensors = [torch.ones(2, 2), torch.zeros(3)]
    flat = _flatten_dense_tensors(tensors)
    assert flat.tolist() == [1, 1, 1, 1, 0, 0, 0]
    assert [t.shape for t in _unflatten_dense_tensors(flat, tensors)] == [(2, 2), (3,)]
    mixed = [torch.ones(4), torch.ones(3), torch.ones(2).long(), torch.ones(9)]
    assert [[t.numel() for t in bunch] for bunch in _take_tensors(mixed, 24)] == [[4], [3], [9], [2]]


def test_names_of_errors_and_of_arithmetic_on_sizes_are_there() -> None:
    assert torch.cuda.OutOfMemoryError is torch.OutOfMemoryError
    assert issubclass(torch.AcceleratorError, RuntimeError)
    assert repr(torch.OutOfMemoryError) == "<class 'torch.OutOfMemoryError'>"
    assert torch.GradScaler is torch.amp.GradScaler
    assert torch.autograd.DeviceType.CPU.name == "CPU"
    assert (torch.sym_int(-2.7), torch.sym_max(2, 3.0), torch.sym_not(False)) == (-2, 3.0, True)
    assert (torch.sym_ite(True, 1, 2), torch.sym_sum([1, 2]), torch.sym_sqrt(4)) == (1, 3, 2.0)


def test_gradgradcheck_draws_torchs_gradients() -> None:
    x = torch.tensor([0.5, 1.0], dtype=torch.double, requires_grad=True)
    torch.manual_seed(0)
    assert torch.autograd.gradgradcheck(torch.exp, (x,))
    assert torch.rand(1).item() == pytest.approx(0.307423, abs=1e-6)


CALLS = {
    "A window was not provided. A rectangular window will be applied,which": lambda: torch.stft(
        torch.arange(64.0), 16, return_complex=True
    ),
    "A window was not provided. A rectangular window will be applied.Please": lambda: torch.istft(
        torch.ones(9, 5, dtype=torch.cfloat), 16
    ),
    "Sparse invariant checks are implicitly disabled": lambda: torch.sparse_coo_tensor(
        [[0], [1]], [2.0], (2, 2)
    ),
    "Creating a tensor from a list of numpy.ndarrays": lambda: torch.tensor([np.ones(2), np.ones(2)]),
    "The given NumPy array is not writable": lambda: torch.from_numpy(np.broadcast_to(np.ones(1), (3,))),
    "torch.qr is deprecated": lambda: torch.qr(torch.eye(2)),
    "torch.lu is deprecated": lambda: torch.lu(torch.eye(2)),
    "torch.triangular_solve is deprecated": lambda: torch.triangular_solve(torch.eye(2), torch.eye(2)),
    "The use of `x.T` on tensors": lambda: torch.ones(2, 2, 2).T,
}


@pytest.mark.parametrize("text", CALLS)
def test_torch_warns_once_of_what_is_old_or_doubtful(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mindtorch_v2._ops._warn._given", set())
    monkeypatch.setattr("mindtorch_v2._ops.sparse.Invariants.chosen", False)
    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("always")
        CALLS[text]()
        CALLS[text]()
    assert [str(w.message)[: len(text)] for w in given] == [text]


def test_cross_product_of_two_vectors() -> None:
    x, y = torch.tensor([1.0, 0, 0], requires_grad=True), torch.tensor([0.0, 1, 0])
    made = torch.cross(x, y, dim=0)
    assert made.tolist() == torch.linalg.cross(x, y).tolist() == [0, 0, 1]
    made[2].backward()
    assert x.grad.tolist() == [1, 0, 0]


@pytest.mark.parametrize(
    ("op", "call"),
    [
        ("aten::_softmax", lambda x: torch.softmax(x, -1)),
        ("aten::_log_softmax", lambda x: torch.log_softmax(x, 1)),
        ("aten::native_layer_norm", lambda x: torch.nn.functional.layer_norm(x, (3,))),
        ("aten::log_sigmoid_forward", torch.nn.functional.logsigmoid),
    ],
)
def test_a_profile_shows_the_copy_of_a_transposed_input(op: str, call: Any) -> None:
    x = torch.ones(2, 3, 4)
    for given, copies in ((x.transpose(1, 2), 1), (x.transpose(1, 2).contiguous(), 0)):
        with torch.profiler.profile() as prof:
            call(given)
        found = [e for e in prof.events() if e.name == "aten::contiguous" and e.cpu_parent.name == op]
        assert len(found) == copies


def test_a_profile_shows_how_much_memory_is_cleared() -> None:
    shown = {}
    for name, x in {
        "small": torch.ones(32767), "large": torch.ones(32768), "empty": torch.ones(0),
        "column": torch.ones(4, 4)[:, 1], "transposed": torch.ones(4, 4).t(),
    }.items():  # fmt: skip
        with torch.profiler.profile() as prof:
            x.zero_()
        shown[name] = "aten::fill_" in [e.name for e in prof.events()]
        assert not x.any()
        assert x._version == 1
    assert shown == {"small": False, "large": True, "empty": True, "column": True, "transposed": False}


def test_a_profile_shows_the_block_a_large_transpose_is_copied_through() -> None:
    for x, blocks in ((torch.ones(60, 60), 1), (torch.ones(59, 61), 0), (torch.ones(2, 60, 60), 0)):
        with torch.profiler.profile(profile_memory=True) as prof:
            x.transpose(-1, -2).contiguous()
        sizes = [
            e.cpu_memory_usage for e in prof.events() if e.cpu_parent and e.cpu_parent.name == "aten::copy_"
        ]
        assert sizes == [60 * 60 * 4] * blocks


@pytest.mark.parametrize(
    ("steps", "batch", "width", "hidden", "nbytes"),
    [(1, 1, 4, 3, 28672), (5, 16, 4, 3, 61440), (5, 16, 64, 128, 704512), (5, 3, 300, 260, 299008)],
)
def test_an_lstm_keeps_as_much_memory_as_torchs(
    steps: int, batch: int, width: int, hidden: int, nbytes: int
) -> None:
    lstm = torch.nn.LSTM(width, hidden)
    with torch.profiler.profile(record_shapes=True) as prof:
        lstm(torch.ones(steps, batch, width))[0].sum().backward()
    (back,) = [e for e in prof.events() if e.name == "aten::mkldnn_rnn_layer_backward"]
    assert back.input_shapes[-1] == [nbytes]


def test_sizes_that_are_no_integers_are_refused_by_name() -> None:
    refused = {
        "zeros: Dimension size must be non-negative.": lambda: torch.zeros(2, -3),
        "ones(): argument 'size' (position 1) must be tuple of ints, not float": lambda: torch.ones(2.5),
        "randn(): argument 'size' (position 1) must be tuple of ints, "
        "but found element of type float at pos 0": lambda: torch.randn(4 / 2, 3),
        "empty(): argument 'size' failed to unpack the object at pos 2 with error "
        '"type must be tuple of ints,but got float"': lambda: torch.empty(3, 4 / 2),
        "full(): argument 'fill_value' (position 2) must be Number, not str": lambda: torch.full((2,), "a"),
    }
    for text, call in refused.items():
        with pytest.raises((TypeError, RuntimeError)) as caught:
            call()
        assert str(caught.value) == text


def test_attention_chooses_the_kernel_torch_chooses() -> None:
    def kernel(q: Any, **options: Any) -> str:
        with torch.profiler.profile() as prof:
            torch.nn.functional.scaled_dot_product_attention(q, q, q, **options)
        return "flash" if any("flash" in e.name for e in prof.events()) else "math"

    q = torch.ones(2, 2, 6, 4)
    shapes = {(6, 6): "flash", (2, 6, 6): "math", (2, 1, 6, 6): "flash", (1, 6, 6): "math"}
    assert {shape: kernel(q, attn_mask=torch.zeros(shape)) for shape in shapes} == shapes
    assert kernel(q.transpose(1, 2)) == "flash"
    assert kernel(q.transpose(2, 3)) == "math"
    mask = torch.zeros(6, 6).fill_diagonal_(-1.0)
    low = torch.nn.functional.scaled_dot_product_attention(*[q.bfloat16()] * 3, attn_mask=mask)
    assert low.dtype is torch.bfloat16


def test_a_profile_shows_the_copy_of_labels_from_a_table() -> None:
    labels = torch.zeros(3, 2, dtype=torch.long)
    for target, copies in ((labels[:, 0], 1), (labels[:, 0].clone(), 0)):
        with torch.profiler.profile() as prof:
            torch.nn.functional.cross_entropy(torch.ones(3, 4), target)
        assert [e.name for e in prof.events()].count("aten::contiguous") == copies


def test_old_constructors_share_an_arrays_memory_and_new_ones_keep_its_order() -> None:
    array = np.arange(12, dtype=np.float32).reshape(3, 4)
    for make in (torch.Tensor, torch.FloatTensor):
        shared = make(array)
        shared[0, 0] = 99
        assert array[0, 0] == 99
        array[0, 0] = 0
        assert shared[0, 0] == 0
    assert torch.LongTensor(np.where(np.eye(4))[1]).stride() == (2,)
    assert torch.Tensor(np.arange(3)).tolist() == [0.0, 1.0, 2.0]
    copied = torch.tensor(array.T)
    array[0, 0] = 5
    assert copied.stride() == (1, 4)
    assert copied[0, 0] == 0
    assert torch.tensor(array.T, dtype=torch.double).stride() == (1, 4)
    assert torch.tensor(np.broadcast_to(np.ones(1), (2, 3))).stride() == (3, 1)


@pytest.mark.parametrize(
    ("options", "shape"),
    [
        ({"kernel_size": 4, "stride": 2, "padding": 1}, (2, 4, 9, 8)),
        ({"kernel_size": 3, "stride": 2, "groups": 2}, (2, 4, 6, 7)),
        ({"kernel_size": 3, "padding": 2, "dilation": 2}, (2, 4, 6, 7)),
    ],
)
def test_a_gradient_penalty_is_the_same_while_it_is_profiled(options: dict, shape: tuple) -> None:
    torch.manual_seed(0)
    conv, x = torch.nn.Conv2d(4, 8, **options), torch.randn(shape, requires_grad=True)

    def penalty() -> list:
        conv.zero_grad()
        (g,) = torch.autograd.grad(conv(x).pow(2).sum(), x, create_graph=True)
        g.pow(2).sum().backward(inputs=list(conv.parameters()))
        return [p.grad for p in conv.parameters()]

    plain = penalty()
    with torch.profiler.profile() as prof:
        profiled = penalty()
    assert all(torch.allclose(a, b, rtol=1e-4, atol=1e-3) for a, b in zip(plain, profiled))
    inside = [e.name for e in prof.events() if e.cpu_parent and "double_backward" in e.cpu_parent.name]
    assert inside.count("aten::convolution") == 1 + options.get("groups", 1)


def test_a_local_folder_is_a_hub(tmp_path: Path) -> None:
    (tmp_path / "hub_neighbour.py").write_text("N = 7\n")
    (tmp_path / "hubconf.py").write_text(
        "dependencies = ['json']\nfrom hub_neighbour import N\ndef tiny(n=2, **more): return n, N, more\n"
    )
    assert torch.hub.load(str(tmp_path), "tiny", 3, source="local", z=1) == (3, 7, {"z": 1})
    with pytest.raises(RuntimeError, match="Cannot find callable other in hubconf"):
        torch.hub.load(str(tmp_path), "other", source="local")
    with pytest.raises(ValueError, match='Unknown source: "web"'):
        torch.hub.load(str(tmp_path), "tiny", source="web")


def test_causal_biases_start_or_end_at_the_corner() -> None:
    bias = import_module(
        "mindtorch_v2.nn.attention.bias"
    )  # late: its class answers for functions from then on
    attend = torch.nn.functional.scaled_dot_product_attention
    q, k = torch.arange(64.0).sin().view(2, 1, 4, 8), torch.arange(96.0).cos().view(2, 1, 6, 8)
    first, last = bias.causal_upper_left(4, 6), bias.causal_lower_right(4, 6)
    assert repr(last) == repr(torch.ones(4, 6, dtype=torch.bool).tril(2))
    assert torch.allclose(attend(q, k, k, first), attend(q, k, k, is_causal=True))
    mask = torch.ones(4, 6, dtype=torch.bool).tril(2)
    assert torch.allclose(attend(q, k, k, attn_mask=last), attend(q, k, k, attn_mask=mask))
    with pytest.raises(ValueError, match="CausalBias should not be used with causal=True"):
        attend(q, k, k, first, is_causal=True)
    with pytest.warns(UserWarning, match="Lower right causal bias will produce NaNs"):
        bias.causal_lower_right(6, 4)
