"""A small DCGAN: transposed convolutions, spectral norm, weights_init by class name, a gradient penalty."""

import torch, torch.nn as nn

torch.manual_seed(7)


def weights_init(m):
    classname = m.__class__.__name__
    if classname.find("Conv") != -1:
        torch.nn.init.normal_(m.weight, 0.0, 0.02)
    elif classname.find("BatchNorm") != -1:
        torch.nn.init.normal_(m.weight, 1.0, 0.02)
        torch.nn.init.zeros_(m.bias)


nz = 8
G = nn.Sequential(
    nn.ConvTranspose2d(nz, 8, 4, 1, 0, bias=False),
    nn.BatchNorm2d(8),
    nn.ReLU(True),
    nn.ConvTranspose2d(8, 1, 4, 2, 1, bias=False),
    nn.Tanh(),
)
D = nn.Sequential(
    nn.Conv2d(1, 8, 4, 2, 1, bias=False),
    nn.LeakyReLU(0.2, inplace=True),
    nn.utils.spectral_norm(nn.Conv2d(8, 1, 4, 1, 0, bias=False)),
    nn.Sigmoid(),
    nn.Flatten(0),
)
G.apply(weights_init)
D.apply(weights_init)
crit = nn.BCELoss()
oD = torch.optim.Adam(D.parameters(), lr=2e-3, betas=(0.5, 0.999))
oG = torch.optim.Adam(G.parameters(), lr=2e-3, betas=(0.5, 0.999))
fixed = torch.randn(2, nz, 1, 1)
for it in range(4):
    real = torch.randn(8, 1, 8, 8).clamp(-1, 1)
    label = torch.full((8,), 1.0, dtype=real.dtype)
    D.zero_grad()
    errR = crit(D(real), label)
    errR.backward()
    D_x = D(real).mean().item()
    noise = torch.randn(8, nz, 1, 1)
    fake = G(noise)
    label.fill_(0.0)
    out = D(fake.detach())
    errF = crit(out, label)
    errF.backward()
    oD.step()
    G.zero_grad()
    label.fill_(1)
    errG = crit(D(fake), label)
    errG.backward()
    oG.step()
    print("[%d] Loss_D: %.4f Loss_G: %.4f D(x): %.4f" % (it, (errR + errF).item(), errG.item(), D_x))
# gradient penalty
alpha = torch.rand(8, 1, 1, 1)
inter = (alpha * real + (1 - alpha) * fake.detach()).requires_grad_(True)
d = D(inter)
(g,) = torch.autograd.grad(
    outputs=d, inputs=inter, grad_outputs=torch.ones_like(d), create_graph=True, retain_graph=True
)
gp = ((g.view(8, -1).norm(2, dim=1) - 1) ** 2).mean()
gp.backward()
print(gp, D[0].weight.grad.abs().mean())
print(G(fixed)[0, 0, :2, :4])
