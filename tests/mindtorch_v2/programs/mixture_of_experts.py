"""Top-2 routing with one_hot, where and index_add_, load balancing."""

import torch, torch.nn as nn, torch.nn.functional as F

torch.manual_seed(0)


class MoE(nn.Module):
    def __init__(s, d, E=4, k=2):
        super().__init__()
        s.gate = nn.Linear(d, E, bias=False)
        s.experts = nn.ModuleList(
            [nn.Sequential(nn.Linear(d, 2 * d), nn.SiLU(), nn.Linear(2 * d, d)) for _ in range(E)]
        )
        s.k, s.E = k, E

    def forward(s, x):
        sh = x.shape
        x = x.view(-1, sh[-1])
        logits = s.gate(x)
        w, sel = torch.topk(F.softmax(logits, dim=1, dtype=torch.float), s.k, dim=-1)
        w /= w.sum(dim=-1, keepdim=True)
        w = w.to(x.dtype)
        out = torch.zeros_like(x)
        em = F.one_hot(sel, num_classes=s.E).permute(2, 1, 0)
        for e in range(s.E):
            idx, top = torch.where(em[e])
            cur = s.experts[e](x[None, top].reshape(-1, sh[-1])) * w[top, idx, None]
            out.index_add_(0, top, cur.to(x.dtype))
        load = F.one_hot(sel, s.E).float().mean((0, 1))
        imp = logits.softmax(-1).mean(0)
        return out.view(sh), s.E * (load * imp).sum()


m = MoE(8)
x = torch.randn(2, 10, 8)
t = torch.randn(2, 10, 8)
opt = torch.optim.NAdam(m.parameters(), 1e-2)
for i in range(4):
    o, aux = m(x)
    l = F.huber_loss(o, t, delta=0.5) + 0.01 * aux
    opt.zero_grad()
    l.backward()
    opt.step()
    print(f"{l.item():.5f} {aux.item():.4f}")
print([f"{e[0].weight.grad.abs().sum():.4f}" for e in m.experts])
print(m.gate.weight.grad)
