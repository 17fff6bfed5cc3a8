"""A tiny DDPM: cosine schedule, sinusoidal time, EMA weights, sampling."""

import torch, torch.nn as nn, torch.nn.functional as F, math

torch.manual_seed(0)


class SinusoidalPosEmb(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.dim = dim

    def forward(self, x):
        half = self.dim // 2
        emb = math.log(10000) / (half - 1)
        emb = torch.exp(torch.arange(half, device=x.device) * -emb)
        emb = x[:, None] * emb[None, :]
        return torch.cat((emb.sin(), emb.cos()), dim=-1)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.t = nn.Sequential(SinusoidalPosEmb(16), nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 32))
        self.i = nn.Linear(2, 32)
        self.o = nn.Sequential(nn.Mish(), nn.Linear(32, 32), nn.Softplus(), nn.Linear(32, 2))

    def forward(self, x, t):
        return self.o(self.i(x) + self.t(t))


def cosine_beta(T, s=0.008):
    x = torch.linspace(0, T, T + 1, dtype=torch.float64)
    ac = torch.cos(((x / T) + s) / (1 + s) * math.pi * 0.5) ** 2
    ac = ac / ac[0]
    return torch.clip(1 - ac[1:] / ac[:-1], 0, 0.999).float()


def extract(a, t, shape):
    return a.gather(-1, t).reshape(t.shape[0], *((1,) * (len(shape) - 1)))


T = 20
betas = cosine_beta(T)
alphas = 1.0 - betas
ac = torch.cumprod(alphas, dim=0)
acp = F.pad(ac[:-1], (1, 0), value=1.0)
sq, sq1 = ac.sqrt(), torch.sqrt(1 - ac)
pv = betas * (1 - acp) / (1 - ac)
print(betas[:5], pv[-3:])
m = Model()
ema = torch.optim.swa_utils.AveragedModel(m, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(0.9))
opt = torch.optim.AdamW(m.parameters(), 2e-3)
th = torch.rand(128) * 2 * math.pi
data = torch.stack([th.cos(), th.sin()], 1)
for s in range(10):
    t = torch.randint(0, T, (128,)).long()
    n = torch.randn_like(data)
    xt = extract(sq, t, data.shape) * data + extract(sq1, t, data.shape) * n
    loss = F.smooth_l1_loss(m(xt, t), n)
    opt.zero_grad()
    loss.backward()
    opt.step()
    ema.update_parameters(m)
    if s % 3 == 0:
        print(s, f"{loss.item():.5f}")


@torch.no_grad()
def sample(n):
    x = torch.randn(n, 2)
    for i in reversed(range(T)):
        t = torch.full((n,), i, dtype=torch.long)
        e = ema(x, t)
        mean = (1 / alphas[i].sqrt()) * (x - betas[i] / sq1[i] * e)
        x = mean if i == 0 else mean + pv[i].sqrt() * torch.randn_like(x)
    return x


print(sample(4))
print(ema.n_averaged)
