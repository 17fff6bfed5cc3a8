"""MAML by gradients of gradients, and torch.func over a module."""

import torch, torch.nn.functional as F
from torch import nn
from collections import OrderedDict

torch.manual_seed(0)


def net(p, x):
    x = F.relu(F.linear(x, p["w1"], p["b1"]))
    x = F.relu(F.linear(x, p["w2"], p["b2"]))
    return F.linear(x, p["w3"], p["b3"])


P = OrderedDict(
    w1=torch.randn(10, 1) * 0.5,
    b1=torch.zeros(10),
    w2=torch.randn(10, 10) * 0.3,
    b2=torch.zeros(10),
    w3=torch.randn(1, 10) * 0.3,
    b3=torch.zeros(1),
)
for p in P.values():
    p.requires_grad_()
opt = torch.optim.Adam(P.values(), lr=1e-2)


def task():
    A, ph = torch.rand(1) * 4 + 0.1, torch.rand(1) * 3.14
    return lambda x: A * torch.sin(x + ph)


for it in range(5):
    ml = 0.0
    for _ in range(3):
        f = task()
        xs, xq = torch.rand(5, 1) * 10 - 5, torch.rand(5, 1) * 10 - 5
        fast = P
        for k in range(2):
            l = F.mse_loss(net(fast, xs), f(xs))
            gr = torch.autograd.grad(l, list(fast.values()), create_graph=True)
            fast = OrderedDict((n, p - 0.05 * g) for (n, p), g in zip(fast.items(), gr))
        ml = ml + F.mse_loss(net(fast, xq), f(xq))
    opt.zero_grad()
    ml.backward()
    opt.step()
    print(it, f"{ml.item() / 3:.4f}", f"{P['w2'].grad.norm():.4f}")
# functional_call version
from torch.func import functional_call, grad, vmap

m = nn.Sequential(nn.Linear(1, 4), nn.Tanh(), nn.Linear(4, 1))
params = dict(m.named_parameters())


def loss_fn(p, x, y):
    return F.mse_loss(functional_call(m, p, (x,)), y)


x, y = torch.randn(6, 1), torch.randn(6, 1)
g = grad(loss_fn)(params, x, y)
print({k: v.flatten()[:2] for k, v in g.items()})
