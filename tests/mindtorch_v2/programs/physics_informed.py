"""A network whose loss holds second derivatives; hessian, jacobian, fourth derivatives."""

import torch, torch.nn as nn

torch.manual_seed(0)
u = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 16), nn.Tanh(), nn.Linear(16, 1))
opt = torch.optim.Adam(u.parameters(), lr=5e-3)


def pde(xt):
    xt = xt.requires_grad_(True)
    y = u(xt)
    g = torch.autograd.grad(y, xt, torch.ones_like(y), create_graph=True)[0]
    ux, ut = g[:, 0:1], g[:, 1:2]
    uxx = torch.autograd.grad(ux, xt, grad_outputs=torch.ones_like(ux), create_graph=True)[0][:, :1]
    return ut + y * ux - 0.01 / torch.pi * uxx


for i in range(5):
    xt = torch.rand(50, 2) * torch.tensor([2.0, 1.0]) - torch.tensor([1.0, 0.0])
    x0 = torch.cat([torch.rand(20, 1) * 2 - 1, torch.zeros(20, 1)], 1)
    loss = pde(xt).square().mean() + (u(x0) + torch.sin(torch.pi * x0[:, :1])).pow(2).mean()
    opt.zero_grad(set_to_none=True)
    loss.backward()
    opt.step()
    print(f"{loss.item():.5f}")
lb = torch.optim.LBFGS(u.parameters(), max_iter=5, history_size=5, tolerance_grad=1e-9)
pts = torch.rand(30, 2)


def c():
    lb.zero_grad()
    l = pde(pts).pow(2).mean()
    l.backward()
    return l


print(f"{lb.step(c).item():.5f}", f"{c().item():.5f}")
H = torch.autograd.functional.hessian(lambda z: u(z).sum(), torch.tensor([0.2, 0.3]))
print(H)
J = torch.autograd.functional.jacobian(u, torch.rand(2))
print(J)
x = torch.tensor(1.5, requires_grad=True)
y = x**5
for k in range(4):
    (y,) = torch.autograd.grad(y, x, create_graph=True)
    print(k, y.item())
print(y)
