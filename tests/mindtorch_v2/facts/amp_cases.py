"""Mixed precision: autocast's switches and casts, and the gradient scaler."""

from __future__ import annotations

import pickle
import threading
from typing import Any


def autocast_arguments(torch: Any, show: Any) -> None:
    for arguments in (("cpu",), ("cuda",), ("xpu",), ("cpu", torch.float16), ("cpu", torch.float32)):
        made = show.warns(torch.autocast, *arguments)
        show(made.fast_dtype, made.device, made._enabled, made._cache_enabled)
    for bad in ("foo", "meta", 0, torch.device("cpu")):
        show.raises(torch.autocast, bad)


def autocast_switches(torch: Any, show: Any) -> None:
    show(torch.is_autocast_enabled(), torch.is_autocast_enabled("cpu"), torch.is_autocast_cache_enabled())
    show([torch.get_autocast_dtype(d) for d in ("cpu", "cuda", "xpu", "mps", "hpu", "mtia", "xla")])
    with torch.autocast("cpu", dtype=torch.float16, cache_enabled=False):
        show(torch.is_autocast_enabled("cpu"), torch.is_autocast_enabled(), torch.get_autocast_dtype("cpu"))
        show(
            torch.is_autocast_cache_enabled(),
            torch.autocast_increment_nesting(),
            torch.autocast_decrement_nesting(),
        )
        seen = []
        thread = threading.Thread(target=lambda: seen.append(torch.is_autocast_enabled("cpu")))
        thread.start()
        thread.join()
        show("in another thread", seen)
    show(torch.is_autocast_enabled("cpu"), torch.get_autocast_dtype("cpu"), torch.is_autocast_cache_enabled())
    torch.set_autocast_enabled("cpu", True)
    show(torch.is_autocast_enabled("cpu"))
    torch.set_autocast_enabled("cpu", False)
    show.raises(torch.is_autocast_enabled, "meta")
    show.raises(torch.get_autocast_dtype, "meta")
    show(torch.amp.is_autocast_available("cpu"), torch.amp.is_autocast_available("meta"))


def autocast_casts_what_torch_casts(torch: Any, show: Any) -> None:
    F = torch.nn.functional
    x, low, half = torch.ones(2, 2), torch.ones(2, 2).bfloat16(), torch.ones(2, 2).half()
    with torch.autocast("cpu"):
        show((x @ x).dtype, torch.mm(x, x).dtype, torch.mm(half, half).dtype, (x.double() @ x.double()).dtype)
        show(F.linear(x, x).dtype, F.linear(x, x, x[0]).dtype, torch.bmm(x[None], x[None]).dtype)
        show(torch.addmm(x, x, x).dtype, torch.baddbmm(x[None], x[None], x[None]).dtype)
        show(F.conv2d(torch.ones(1, 1, 3, 3), torch.ones(1, 1, 2, 2)).dtype, F.prelu(x, torch.ones(1)).dtype)
        show(F.scaled_dot_product_attention(x[None, None], x[None, None], x[None, None]).dtype)
        show(torch.mv(x, x[0]).dtype, torch.dot(x[0], x[0]).dtype, (x + x).dtype, F.layer_norm(x, (2,)).dtype)
        show(torch.softmax(low, 0).dtype, F.relu(low).dtype, low.sum().dtype, low.prod().dtype)
        show(
            F.mse_loss(low, x).dtype, F.cross_entropy(low, torch.tensor([0, 1])).dtype, torch.trace(low).dtype
        )
        show(torch.cat([x, low]).dtype, torch.stack([low, low]).dtype, torch.cat([x.double(), low]).dtype)
        show(torch.mm(x.long(), x.long()).dtype, torch.cat([x.long(), low]).dtype)
        show.raises(torch.stack, [half, half])
        with torch.autocast("cpu", enabled=False):
            show((x @ x).dtype)
    show((x @ x).dtype)


def autocast_caches_weights(torch: Any, show: Any) -> None:
    weight = torch.ones(2, 2, requires_grad=True)
    x = torch.ones(1, 2)

    def cast_of(y: Any) -> Any:
        return y.grad_fn.next_functions[1][0].next_functions[0][0]

    for cache in (True, False):
        with torch.autocast("cpu", cache_enabled=cache):
            one, two = torch.nn.functional.linear(x, weight), torch.nn.functional.linear(x, weight)
            show(one.dtype, cast_of(one) is cast_of(two), cast_of(one).name())
    (one.float().sum() + two.float().sum()).backward()
    show(weight.grad)


def autocast_decorates(torch: Any, show: Any) -> None:
    @torch.autocast("cpu")
    def product(x: Any) -> Any:
        return (x @ x).dtype

    show(product(torch.ones(2, 2)), product.__name__, torch.is_autocast_enabled("cpu"))


def custom_functions_keep_their_mode(torch: Any, show: Any) -> None:
    def make(**options: Any) -> Any:
        class Doubled(torch.autograd.Function):
            @staticmethod
            @torch.amp.custom_fwd(device_type="cpu", **options)
            def forward(ctx: Any, x: Any) -> Any:
                show("forward", x.dtype, torch.is_autocast_enabled("cpu"))
                return x * 2

            @staticmethod
            @torch.amp.custom_bwd(device_type="cpu")
            def backward(ctx: Any, grad: Any) -> Any:
                show(
                    "backward",
                    grad.dtype,
                    torch.is_autocast_enabled("cpu"),
                    ctx._fwd_used_autocast,
                    ctx._dtype,
                )
                return grad * 2

        return Doubled

    x = torch.ones(2, requires_grad=True)
    for options in ({}, {"cast_inputs": torch.float32}):
        with torch.autocast("cpu"):
            y = make(**options).apply(x.bfloat16())
        y.float().sum().backward()
    show(x.grad)
    show.raises(torch.amp.custom_fwd, lambda ctx: None, device_type=0)


def old_names_warn(torch: Any, show: Any) -> None:
    show.warns(torch.cuda.amp.autocast)
    show.warns(torch.cpu.amp.autocast)
    show.warns(torch.cuda.amp.GradScaler)
    show.warns(torch.cpu.amp.GradScaler)
    show.warns(torch.cuda.amp.custom_fwd, lambda ctx: None)
    show(torch.cuda.amp.amp_definitely_not_available())


def scaler_that_is_disabled(torch: Any, show: Any) -> None:
    scaler = show.warns(torch.amp.GradScaler)
    p = torch.ones(2, requires_grad=True)
    optimizer = torch.optim.SGD([p], lr=1.0)
    loss = (p * 2).sum()
    show(scaler.is_enabled(), scaler.scale(loss) is loss, scaler.get_scale(), scaler.state_dict())
    loss.backward()
    scaler.unscale_(optimizer)
    show(scaler.step(optimizer), scaler.update(), p)


def scaler_adapts_its_scale(torch: Any, show: Any) -> None:
    scaler = torch.amp.GradScaler("cpu", growth_interval=2)
    p = torch.ones(2, requires_grad=True)
    optimizer = torch.optim.SGD([p], lr=0.1)
    for factor in (1.0, 1.0, 1.0, float("nan"), 1.0, float("inf"), 1.0, 1.0):
        optimizer.zero_grad()
        scaler.scale((p * factor).sum()).backward()
        scaler.unscale_(optimizer)
        scaler.step(optimizer)
        scaler.update()
        show(scaler.get_scale(), scaler._get_growth_tracker(), p)
    again = pickle.loads(pickle.dumps(scaler))
    show(again.state_dict(), scaler.state_dict())
    fresh = torch.amp.GradScaler("cpu")
    fresh.load_state_dict(scaler.state_dict())
    show(fresh.state_dict())
    scaler.update(4.0)
    show(scaler.get_scale(), scaler.scale([torch.ones(1), (torch.ones(2),)]))


def scaler_refuses_a_wrong_order(torch: Any, show: Any) -> None:
    p = torch.ones(2, requires_grad=True)
    optimizer = torch.optim.SGD([p], lr=0.1)
    scaler = torch.amp.GradScaler("cpu")
    show.raises(scaler.update)
    show.raises(scaler.step, optimizer)
    show.raises(scaler.scale, 3)
    scaler.scale(p.sum()).backward()
    show.raises(scaler.update)
    scaler.unscale_(optimizer)
    show.raises(scaler.unscale_, optimizer)
    show.raises(pickle.dumps, scaler)
    scaler.step(optimizer)
    show.raises(scaler.step, optimizer)
    show.raises(scaler.unscale_, optimizer)
    show.raises(scaler.step, optimizer, closure=lambda: 1)
    show.raises(scaler.load_state_dict, {})
    show.raises(scaler.update, torch.ones(2))
    show.raises(torch.amp.GradScaler, "cpu", growth_factor=1.0)
    show.raises(torch.amp.GradScaler, "cpu", backoff_factor=1.0)
    q = torch.ones(2, requires_grad=True, dtype=torch.float16)
    q.grad = torch.ones(2, dtype=torch.float16)
    show.raises(torch.amp.GradScaler("cpu").unscale_, torch.optim.SGD([q], lr=0.1))
