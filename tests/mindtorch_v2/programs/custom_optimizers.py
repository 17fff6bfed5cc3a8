"""Optimizers and schedulers that users write, beside torch's own and their errors."""

import torch, math
from torch.optim import Optimizer
from torch.optim.lr_scheduler import (
    LRScheduler,
    ReduceLROnPlateau,
    ChainedScheduler,
    ExponentialLR,
    ConstantLR,
    MultiStepLR,
    CyclicLR,
    PolynomialLR,
    MultiplicativeLR,
)

torch.manual_seed(0)


class Lion(Optimizer):
    def __init__(self, params, lr=1e-4, betas=(0.9, 0.99), weight_decay=0.0):
        if lr <= 0.0:
            raise ValueError(f"Invalid learning rate: {lr}")
        super().__init__(params, dict(lr=lr, betas=betas, weight_decay=weight_decay))

    @torch.no_grad()
    def step(self, closure=None):
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                p.data.mul_(1 - group["lr"] * group["weight_decay"])
                state = self.state[p]
                if len(state) == 0:
                    state["exp_avg"] = torch.zeros_like(p)
                m = state["exp_avg"]
                b1, b2 = group["betas"]
                u = m * b1 + p.grad * (1 - b1)
                p.add_(torch.sign(u), alpha=-group["lr"])
                m.mul_(b2).add_(p.grad, alpha=1 - b2)
        return loss


class SAM(Optimizer):
    def __init__(s, params, base, rho=0.05, **kw):
        super().__init__(params, dict(rho=rho, **kw))
        s.base = base(s.param_groups, **kw)
        s.param_groups = s.base.param_groups
        s.defaults.update(s.base.defaults)

    @torch.no_grad()
    def first(s):
        n = torch.norm(
            torch.stack(
                [p.grad.norm(p=2) for g in s.param_groups for p in g["params"] if p.grad is not None]
            ),
            p=2,
        )
        for g in s.param_groups:
            for p in g["params"]:
                s.state[p]["old"] = p.data.clone()
                p.add_(p.grad * (g["rho"] / (n + 1e-12)))

    @torch.no_grad()
    def second(s):
        for g in s.param_groups:
            for p in g["params"]:
                p.data = s.state[p]["old"]
        s.base.step()


class Noam(LRScheduler):
    def __init__(s, o, w, last_epoch=-1):
        s.w = w
        super().__init__(o, last_epoch)

    def get_lr(s):
        st = max(1, s._step_count)
        sc = s.w**0.5 * min(st**-0.5, st * s.w**-1.5)
        return [b * sc for b in s.base_lrs]


w = torch.nn.Parameter(torch.randn(5))
A = torch.randn(10, 5)
b = torch.randn(10)
f = lambda: ((A @ w - b) ** 2).mean()
o = Lion([w], lr=0.05, weight_decay=0.01)
s = Noam(o, 3)
for i in range(5):
    o.zero_grad()
    l = f()
    l.backward()
    o.step()
    s.step()
    print(f"{l.item():.4f}", round(o.param_groups[0]["lr"], 5))
print(o.state_dict())
print(o)
o = SAM([w], torch.optim.SGD, lr=0.05, momentum=0.9)
for i in range(3):
    o.zero_grad()
    f().backward()
    o.first()
    o.zero_grad()
    f().backward()
    o.second()
    print(f"{f().item():.4f}")
for name, mk in {
    "plateau": lambda o: ReduceLROnPlateau(o, "min", factor=0.5, patience=1),
    "chain": lambda o: ChainedScheduler([ExponentialLR(o, 0.9), ConstantLR(o, 0.5, 2)]),
    "ms": lambda o: MultiStepLR(o, [1, 3]),
    "cyc": lambda o: CyclicLR(o, 0.01, 0.1, step_size_up=2, mode="triangular2"),
    "poly": lambda o: PolynomialLR(o, 4, 2.0),
    "mul": lambda o: MultiplicativeLR(o, lambda e: 0.9),
}.items():
    o = torch.optim.SGD([w], 0.1, momentum=0.9)
    s = mk(o)
    r = []
    for i in range(6):
        o.step()
        s.step(1.0) if name == "plateau" else s.step()
        r.append(round(o.param_groups[0]["lr"], 6))
    print(name, r)
for c in (
    "SGD",
    "Adam",
    "AdamW",
    "Adagrad",
    "Adadelta",
    "RMSprop",
    "Rprop",
    "ASGD",
    "NAdam",
    "RAdam",
    "Adamax",
    "Adafactor",
):
    torch.manual_seed(1)
    w = torch.nn.Parameter(torch.randn(5))
    o = getattr(torch.optim, c)([w], lr=0.01)
    for _ in range(5):
        o.zero_grad()
        l = f()
        l.backward()
        o.step()
    print(c, f"{l.item():.5f}")
try:
    torch.optim.SGD([], lr=0.1)
except ValueError as e:
    print(e)
try:
    torch.optim.SGD([torch.ones(2, requires_grad=True) * 2], lr=0.1)
except ValueError as e:
    print(e)
try:
    torch.optim.Adam([w], lr=-1)
except ValueError as e:
    print(e)
