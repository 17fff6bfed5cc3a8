"""Cases of nn.utils: clipping, vectors, packed sequences, fusion, functional calls, memory formats."""

from __future__ import annotations

import copy
from typing import Any


def _with_grads(torch: Any, *grads: Any) -> list[Any]:
    params = []
    for grad in grads:
        p = torch.nn.Parameter(torch.zeros_like(torch.tensor(grad)))
        p.grad = torch.tensor(grad)
        params.append(p)
    return params


def clip_grad_norm_scales_gradients_and_returns_the_norm(torch: Any, show: Any) -> None:
    clip = torch.nn.utils.clip_grad_norm_
    for foreach in (None, True, False):
        ps = _with_grads(torch, [3.0, 4.0], [[0.0, 12.0]])
        show(clip(ps, 6.5, foreach=foreach), [p.grad for p in ps])
    for kind in (1, 3.0, float("inf"), float("-inf"), 0, "inf", 0.5):
        ps = _with_grads(torch, [3.0, -4.0], [[0.0, 12.0]])
        show(kind, clip(ps, 1.0, norm_type=kind), [p.grad for p in ps])
    ps = _with_grads(torch, [3.0, 4.0])
    show(clip(ps[0], 1.0), ps[0].grad)
    show(clip(ps, 100.0), ps[0].grad)
    show(clip([], 1.0), clip([torch.nn.Parameter(torch.ones(1))], 1.0))
    show(show.warns(lambda: clip((p for p in ps), 1.0)))
    show(show.warns(lambda: clip((p for p in []), 1.0)))
    ps = _with_grads(torch, [float("nan"), 1.0])
    show(clip(ps, 1.0), ps[0].grad)
    ps = _with_grads(torch, [float("inf"), 1.0])
    show.raises(clip, ps, 1.0, error_if_nonfinite=True)
    show.raises(clip, ps, 1.0, norm_type=1, error_if_nonfinite=True)
    show(clip(ps, 1.0), ps[0].grad)
    lin = torch.nn.Linear(2, 1)
    show.raises(clip, lin, 1.0)
    show.raises(clip, 3, 1.0)
    show(show.warns(lambda: torch.nn.utils.clip_grad_norm(_with_grads(torch, [3.0, 4.0]), 1.0)))
    mixed = _with_grads(torch, [3.0, 4.0])
    other = torch.nn.Parameter(torch.zeros(1, dtype=torch.float64))
    other.grad = torch.full((1,), 12.0, dtype=torch.float64)
    show(clip([*mixed, other], 1.0), mixed[0].grad, other.grad)
    show(clip(_with_grads(torch, [3.0, 4.0]), 0.0))


def total_norm_and_clipping_by_it_are_separate_steps(torch: Any, show: Any) -> None:
    u = torch.nn.utils
    ts = [torch.tensor([3.0, 4.0]), torch.tensor([12.0])]
    show(
        u.get_total_norm(ts),
        u.get_total_norm(ts, 1),
        u.get_total_norm(ts, float("inf")),
        u.get_total_norm([]),
    )
    show(u.get_total_norm(ts[0]), u.get_total_norm(ts, foreach=False), u.get_total_norm(iter(ts)))
    show.raises(u.get_total_norm, [torch.tensor([float("nan")])], error_if_nonfinite=True)
    ps = _with_grads(torch, [3.0, 4.0], [12.0])
    show(u.clip_grads_with_norm_(ps, 6.5, torch.tensor(13.0)), [p.grad for p in ps])
    show(u.clip_grads_with_norm_(ps[0], 1.0, torch.tensor(2.0)), ps[0].grad)
    show(u.clip_grads_with_norm_([torch.nn.Parameter(torch.ones(1))], 1.0, torch.tensor(2.0)))


def clip_grad_value_clamps(torch: Any, show: Any) -> None:
    clip = torch.nn.utils.clip_grad_value_
    for foreach in (None, True, False):
        ps = _with_grads(torch, [3.0, -4.0], [[0.5, float("nan")]])
        show(clip(ps, 1, foreach=foreach), [p.grad for p in ps])
    p = _with_grads(torch, [3.0])[0]
    clip(p, 2.5)
    show(p.grad)


def parameters_become_a_vector_and_back(torch: Any, show: Any) -> None:
    u = torch.nn.utils
    ps = [torch.nn.Parameter(torch.arange(4.0).reshape(2, 2)), torch.nn.Parameter(torch.tensor([5.0]))]
    v = u.parameters_to_vector(ps)
    show(v)
    show(u.vector_to_parameters(v.detach() * 2, ps), ps)
    show(ps[0].data_ptr() - ps[1].data_ptr() == 4 * -4)
    show.raises(u.vector_to_parameters, [1.0], ps)
    show.raises(u.vector_to_parameters, torch.ones(3), ps)
    show.raises(u.parameters_to_vector, [ps[0].t()])
    show.raises(u.parameters_to_vector, [])


def padded_sequences_are_packed_and_unpacked(torch: Any, show: Any) -> None:
    rnn = torch.nn.utils.rnn
    x = torch.arange(12.0).reshape(4, 3)
    packed = rnn.pack_padded_sequence(x, [4, 2, 1])
    show(packed, type(packed).__name__, packed._fields)
    show(rnn.pad_packed_sequence(packed))
    show(rnn.pad_packed_sequence(packed, batch_first=True, padding_value=-1.0, total_length=5))
    show.raises(rnn.pad_packed_sequence, packed, total_length=3)
    shuffled = rnn.pack_padded_sequence(x, torch.tensor([1, 4, 2]), enforce_sorted=False)
    show(shuffled)
    show(rnn.pad_packed_sequence(shuffled))
    first = rnn.pack_padded_sequence(x.t(), [4, 4, 1], batch_first=True)
    show(first.data, first.batch_sizes, first.sorted_indices)
    show(rnn.pad_packed_sequence(first, batch_first=True))
    wide = torch.arange(24.0).reshape(3, 2, 4)
    packed = rnn.pack_padded_sequence(wide, [3, 1])
    show(packed)
    show(rnn.pad_packed_sequence(packed)[0].shape)
    show.raises(rnn.pack_padded_sequence, x, [1, 4, 2])
    show.raises(rnn.pack_padded_sequence, x, [4, 2])
    show.raises(rnn.pack_padded_sequence, x, [4, 2, 0])
    show.raises(rnn.pack_padded_sequence, x, [4, 2, -1], enforce_sorted=False)
    show.raises(rnn.pack_padded_sequence, x, [5, 2, 1])
    show.raises(rnn.pack_padded_sequence, x, torch.tensor([[4, 2, 1]]))
    show.raises(rnn.pack_padded_sequence, x, [])
    show.raises(rnn.pack_padded_sequence, x, torch.tensor([4.0, 2.0, 1.0]))
    show(show.warns(lambda: rnn.pack_padded_sequence(x, (4, 2, 1))).batch_sizes.dtype)
    show(
        show.warns(
            lambda: rnn.pack_padded_sequence(x, torch.tensor([4, 2, 1], dtype=torch.int32))
        ).batch_sizes
    )


def packing_is_differentiable(torch: Any, show: Any) -> None:
    rnn = torch.nn.utils.rnn
    x = torch.arange(6.0).reshape(3, 2).requires_grad_()
    packed = rnn.pack_padded_sequence(x, [3, 1])
    show(type(packed.data.grad_fn).__name__)
    (packed.data * torch.arange(1.0, 5.0)).sum().backward()
    show(x.grad)
    x.grad = None
    out, lengths = rnn.pad_packed_sequence(rnn.pack_padded_sequence(x, [1, 3], enforce_sorted=False))
    (out * torch.arange(6.0).reshape(3, 2)).sum().backward()
    show(out, lengths, x.grad)


def lists_of_sequences_are_padded_and_packed(torch: Any, show: Any) -> None:
    rnn = torch.nn.utils.rnn
    seqs = [torch.tensor([1.0, 2.0, 3.0]), torch.tensor([4.0]), torch.tensor([5.0, 6.0])]
    show(rnn.pad_sequence(seqs))
    show(rnn.pad_sequence(seqs, batch_first=True, padding_value=-1.0))
    show(rnn.pad_sequence(seqs, True, 0.0, "left"))
    show.raises(rnn.pad_sequence, seqs, padding_side="middle")
    show(rnn.pad_sequence(iter(seqs), batch_first=True))
    show(rnn.pad_sequence(torch.ones(2, 3)))
    show.raises(rnn.pad_sequence, [])
    show.raises(rnn.pad_sequence, 3)
    show.raises(rnn.pad_sequence, [torch.ones(2), torch.ones(2, 2)])
    show.raises(rnn.pad_sequence, [1, 2])
    show(rnn.pad_sequence([torch.ones(1, 2), torch.ones(3, 2)], batch_first=True).shape)
    show(rnn.pad_sequence([torch.tensor([1, 2]), torch.tensor([3])], padding_value=7))
    padded = rnn.pad_sequence(seqs, batch_first=True)
    show(rnn.unpad_sequence(padded, torch.tensor([3, 1, 2]), batch_first=True))
    show(rnn.unpad_sequence(rnn.pad_sequence(seqs), torch.tensor([3, 1, 2])))
    show.raises(rnn.pack_sequence, seqs)
    packed = rnn.pack_sequence(seqs, enforce_sorted=False)
    show(packed)
    show(rnn.unpack_sequence(packed))
    show(rnn.pack_sequence([seqs[0], seqs[2], seqs[1]]))
    show(rnn.invert_permutation(torch.tensor([2, 0, 1])), rnn.invert_permutation(None))


def packed_sequences_convert_like_tensors(torch: Any, show: Any) -> None:
    rnn = torch.nn.utils.rnn
    p = rnn.pack_sequence([torch.tensor([1.5, 2.5]), torch.tensor([3.5])])
    for name in ("double", "half", "float", "long", "int", "short", "char", "byte"):
        made = getattr(p, name)()
        show(name, made.data, made.batch_sizes, type(made).__name__)
    show(p.to(torch.float64).data.dtype, p.to("cpu") is p, p.to(torch.float32) is p, p.cpu() is p)
    show(p.is_cuda, p.is_pinned())
    show(p.to(device="cpu", dtype=torch.float64).data)
    data, sizes, sorted_indices, unsorted_indices = p
    show(data, sizes, sorted_indices, unsorted_indices)
    show(rnn.PackedSequence(torch.ones(3), torch.tensor([2, 1])))
    show(rnn.PackedSequence(torch.ones(3), torch.tensor([2, 1]), torch.tensor([1, 0])))
    show(rnn.PackedSequence(torch.ones(3), torch.tensor([2, 1]), None, torch.tensor([1, 0])))
    show.raises(rnn.PackedSequence, torch.ones(3), torch.tensor([2, 1], dtype=torch.int32))
    show.raises(rnn.PackedSequence, (torch.ones(3), torch.tensor([2, 1])))
    show(isinstance(p, tuple), len(p), copy.copy(p).data)
    show.raises(rnn.pad_packed_sequence, torch.ones(3))


def convolution_and_linear_fuse_with_batch_norm(torch: Any, show: Any) -> None:
    nn = torch.nn

    def settle(bn: Any) -> Any:
        with torch.no_grad():
            for i, t in enumerate((bn.running_mean, bn.running_var, bn.weight, bn.bias)):
                t.copy_(torch.arange(1.0, t.numel() + 1) / (i + 1))
        return bn.eval()

    conv = nn.Conv1d(2, 3, 2).eval()
    bn = settle(nn.BatchNorm1d(3))
    fused = nn.utils.fuse_conv_bn_eval(conv, bn)
    x = torch.arange(8.0).reshape(1, 2, 4)
    show(type(fused).__name__, fused is conv, torch.allclose(fused(x), bn(conv(x)), atol=1e-5))
    deconv = nn.ConvTranspose1d(2, 3, 2, bias=False).eval()
    fused = nn.utils.fuse_conv_bn_eval(deconv, bn, transpose=True)
    show(fused.bias is not None, torch.allclose(fused(x), bn(deconv(x)), atol=1e-5))
    lin = nn.Linear(2, 3).eval()
    fused = nn.utils.fuse_linear_bn_eval(lin, bn)
    y = torch.arange(4.0).reshape(2, 2)
    show(type(fused).__name__, torch.allclose(fused(y), bn(lin(y)), atol=1e-5))
    show.raises(nn.utils.fuse_conv_bn_eval, nn.Conv1d(2, 3, 2), bn)
    show.raises(nn.utils.fuse_linear_bn_eval, nn.Linear(2, 3), bn)
    show.raises(nn.utils.fuse_linear_bn_eval, nn.Linear(2, 2).eval(), bn)
    no_stats = nn.BatchNorm1d(3, track_running_stats=False).eval()
    show.raises(nn.utils.fuse_conv_bn_eval, conv, no_stats)
    w, b = nn.utils.fuse_conv_bn_weights(
        torch.ones(3, 1, 1), None, bn.running_mean, bn.running_var, bn.eps, None, None
    )
    show(type(w).__name__, w.shape, type(b).__name__, b)
    w, b = nn.utils.fuse_linear_bn_weights(
        torch.ones(3, 2), None, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias
    )
    show(w, b)
    one = settle(nn.BatchNorm1d(1))
    show(nn.utils.fuse_linear_bn_eval(nn.Linear(2, 3).eval(), one).weight.shape)


def functional_calls_use_other_tensors_for_one_call(torch: Any, show: Any) -> None:
    nn = torch.nn
    call = torch.func.functional_call
    lin = nn.Linear(2, 1)
    new = {"weight": torch.ones(1, 2), "bias": torch.zeros(1)}
    x = torch.tensor([[1.0, 2.0]])
    before = lin.weight
    show(call(lin, new, x), call(lin, new, (x,)), lin.weight is before, type(lin.weight).__name__)
    show(call(lin, ({"weight": torch.ones(1, 2)}, {"bias": torch.ones(1)}), (x,)))
    show(torch.allclose(call(lin, {"bias": lin.bias + 1}, x), lin(x) + 1))
    show.raises(call, lin, {"nope": torch.ones(1)}, x)
    show.raises(call, lin, {"weight": torch.ones(1, 2)}, x, strict=True)
    show.raises(call, lin, {**new, "nope": torch.ones(1)}, x, strict=True)
    show.raises(call, lin, 3, x)
    show.raises(call, lin, ({"weight": new["weight"]}, {"weight": new["weight"]}), x)
    show.raises(call, lin, (3,), x)
    show(lin.weight is before)
    w = torch.ones(1, 2, requires_grad=True)
    call(lin, {"weight": w}, x).sum().backward()
    show(w.grad, lin.weight.grad)

    class Kw(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.lin = nn.Linear(1, 1, bias=False)
            self.register_buffer("n", torch.zeros(1))

        def forward(self, x: Any, *, scale: float = 1.0) -> Any:
            self.n += 1
            self.n = self.n + 1
            return self.lin(x) * scale + self.n

    kw = Kw()
    tensors = {"lin.weight": torch.full((1, 1), 2.0), "n": torch.full((1,), 10.0)}
    show(call(kw, tensors, (torch.ones(1, 1),), {"scale": 3.0}), tensors["n"], kw.n)
    show(call(kw, tensors, kwargs={"x": torch.ones(1, 1)}), kw.n)

    class Fail(nn.Linear):
        def forward(self, x: Any) -> Any:
            raise ValueError("inside")

    bad = Fail(1, 1)
    old = bad.weight
    show.raises(call, bad, {"weight": torch.ones(1, 1)}, x)
    show(bad.weight is old)


def functional_calls_keep_tied_weights_tied(torch: Any, show: Any) -> None:
    nn = torch.nn
    call = torch.func.functional_call

    class Tied(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a = nn.Parameter(torch.ones(1))
            self.b = self.a

        def forward(self, x: Any) -> Any:
            return self.a * 10 + self.b * x

    m = Tied()
    show(call(m, {"a": torch.full((1,), 2.0)}, torch.ones(1)))
    show(call(m, {"a": torch.full((1,), 2.0)}, torch.ones(1), tie_weights=False))
    show.raises(call, m, {"a": torch.full((1,), 2.0), "b": torch.full((1,), 3.0)}, torch.ones(1))
    same = torch.full((1,), 2.0)
    show(call(m, {"a": same, "b": same}, torch.ones(1)))
    show(call(m, {"a": same}, torch.ones(1), strict=True))
    show.raises(call, m, {"a": same}, torch.ones(1), tie_weights=False, strict=True)
    show(show.warns(lambda: nn.utils.stateless.functional_call(m, {"a": same}, torch.ones(1))))


def batch_norms_lose_their_running_statistics_on_request(torch: Any, show: Any) -> None:
    nn = torch.nn
    m = nn.Sequential(nn.Linear(1, 1), nn.BatchNorm1d(1), nn.Sequential(nn.BatchNorm2d(2)))
    show(torch.func.replace_all_batch_norm_modules_(m) is m, m)
    show([n for n, _ in m.named_buffers()], m[1].running_mean)
    params, buffers = torch.func.stack_module_state([nn.BatchNorm1d(2), nn.BatchNorm1d(2)])
    show({k: (tuple(v.shape), v.requires_grad, v.is_leaf) for k, v in params.items()})
    show({k: (tuple(v.shape), v.requires_grad) for k, v in buffers.items()})
    show.raises(torch.func.stack_module_state, [])
    show.raises(torch.func.stack_module_state, [nn.ReLU(), nn.Tanh()])
    show.raises(torch.func.stack_module_state, [nn.ReLU(), nn.ReLU().eval()])


def weights_change_their_memory_format(torch: Any, show: Any) -> None:
    nn = torch.nn
    m = nn.Sequential(nn.Conv2d(2, 3, 2), nn.ReLU(), nn.Conv3d(2, 3, 2), nn.ConvTranspose2d(2, 3, 2))
    out = nn.utils.convert_conv2d_weight_memory_format(m, torch.channels_last)
    show(out is m, m[0].weight.stride(), m[2].weight.stride(), m[3].weight.stride())
    nn.utils.convert_conv3d_weight_memory_format(m, torch.channels_last_3d)
    show(m[2].weight.stride())


def skip_init_makes_modules_without_values(torch: Any, show: Any) -> None:
    nn = torch.nn
    m = nn.utils.skip_init(nn.Linear, 2, 3, dtype=torch.float64)
    show(m, m.weight.shape, m.weight.dtype, m.weight.device, m.weight.requires_grad)
    show.raises(nn.utils.skip_init, nn.ReLU)
    show.raises(nn.utils.skip_init, 3)
    show.raises(nn.utils.skip_init, dict)
