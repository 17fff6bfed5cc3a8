"""A LLaMA-like model: RMSNorm, rotary embedding by complex numbers, grouped heads, key-value cache, SwiGLU."""

import torch, torch.nn as nn, torch.nn.functional as F, math
from typing import Optional, Tuple

torch.manual_seed(5)


class RMSNorm(torch.nn.Module):
    def __init__(self, dim: int, eps: float = 1e-6):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(dim))

    def _norm(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps)

    def forward(self, x):
        return self._norm(x.float()).type_as(x) * self.weight


def precompute_freqs_cis(dim, end, theta=10000.0):
    freqs = 1.0 / (theta ** (torch.arange(0, dim, 2)[: (dim // 2)].float() / dim))
    t = torch.arange(end, device=freqs.device)
    freqs = torch.outer(t, freqs).float()
    return torch.polar(torch.ones_like(freqs), freqs)


def reshape_for_broadcast(f, x):
    ndim = x.ndim
    assert f.shape == (x.shape[1], x.shape[-1])
    return f.view(*[d if i == 1 or i == ndim - 1 else 1 for i, d in enumerate(x.shape)])


def apply_rotary_emb(xq, xk, f):
    a = torch.view_as_complex(xq.float().reshape(*xq.shape[:-1], -1, 2))
    b = torch.view_as_complex(xk.float().reshape(*xk.shape[:-1], -1, 2))
    f = reshape_for_broadcast(f, a)
    return torch.view_as_real(a * f).flatten(3).type_as(xq), torch.view_as_real(b * f).flatten(3).type_as(xk)


def repeat_kv(x, n):
    bs, s, h, d = x.shape
    return x if n == 1 else x[:, :, :, None, :].expand(bs, s, h, n, d).reshape(bs, s, h * n, d)


class Attention(nn.Module):
    def __init__(s, dim=32, nh=4, nkv=2, mb=2, ms=16):
        super().__init__()
        s.hd = dim // nh
        s.nh, s.nkv = nh, nkv
        s.wq = nn.Linear(dim, nh * s.hd, bias=False)
        s.wk = nn.Linear(dim, nkv * s.hd, bias=False)
        s.wv = nn.Linear(dim, nkv * s.hd, bias=False)
        s.wo = nn.Linear(dim, dim, bias=False)
        s.register_buffer("cache_k", torch.zeros((mb, ms, nkv, s.hd)), persistent=False)
        s.register_buffer("cache_v", torch.zeros((mb, ms, nkv, s.hd)), persistent=False)

    def forward(s, x, start, f, mask, use_cache):
        b, n, _ = x.shape
        q, k, v = (
            s.wq(x).view(b, n, s.nh, s.hd),
            s.wk(x).view(b, n, s.nkv, s.hd),
            s.wv(x).view(b, n, s.nkv, s.hd),
        )
        q, k = apply_rotary_emb(q, k, f)
        if use_cache:
            s.cache_k[:b, start : start + n] = k
            s.cache_v[:b, start : start + n] = v
            k = s.cache_k[:b, : start + n]
            v = s.cache_v[:b, : start + n]
        k, v = repeat_kv(k, s.nh // s.nkv), repeat_kv(v, s.nh // s.nkv)
        q, k, v = q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2)
        sc = torch.matmul(q, k.transpose(2, 3)) / math.sqrt(s.hd)
        if mask is not None:
            sc = sc + mask
        return s.wo(
            torch.matmul(F.softmax(sc.float(), dim=-1).type_as(q), v)
            .transpose(1, 2)
            .contiguous()
            .view(b, n, -1)
        )


class FF(nn.Module):
    def __init__(s, d, h):
        super().__init__()
        s.w1 = nn.Linear(d, h, bias=False)
        s.w2 = nn.Linear(h, d, bias=False)
        s.w3 = nn.Linear(d, h, bias=False)

    def forward(s, x):
        return s.w2(F.silu(s.w1(x)) * s.w3(x))


class Tr(nn.Module):
    def __init__(s, V=20, d=32, L=2):
        super().__init__()
        s.emb = nn.Embedding(V, d)
        s.layers = nn.ModuleList(
            nn.ModuleDict({"a": Attention(d), "f": FF(d, 48), "n1": RMSNorm(d), "n2": RMSNorm(d)})
            for _ in range(L)
        )
        s.norm = RMSNorm(d)
        s.out = nn.Linear(d, V, bias=False)
        s.freqs = precompute_freqs_cis(d // 4, 32)

    def forward(s, tok, start=0, use_cache=False):
        b, n = tok.shape
        h = s.emb(tok)
        f = s.freqs[start : start + n]
        mask = None
        if n > 1:
            mask = torch.full((n, n), float("-inf"))
            mask = torch.triu(mask, diagonal=1)
            mask = torch.hstack([torch.zeros((n, start)), mask]).type_as(h)
        for l in s.layers:
            h = h + l["a"](l["n1"](h), start, f, mask, use_cache)
            h = h + l.f(l.n2(h))
        return s.out(s.norm(h)).float()


m = Tr()
print(m.freqs[:2])
opt = torch.optim.AdamW(m.parameters(), 3e-3)
x = torch.randint(0, 20, (2, 11))
for i in range(5):
    loss = F.cross_entropy(m(x[:, :-1]).flatten(0, 1), x[:, 1:].flatten())
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(f"{loss.item():.4f}")
with torch.inference_mode():
    m.eval()
    full = m(x)
    inc = torch.cat([m(x[:, :4], 0, True)] + [m(x[:, i : i + 1], i, True) for i in range(4, 11)], 1)
    print(torch.allclose(full, inc, atol=1e-4), full[0, -1, :5])
mb = Tr().to(torch.bfloat16)
print(mb(x).dtype, next(mb.parameters()).dtype)
print([k for k in m.state_dict()][:5])
print(nn.RMSNorm(4)(torch.tensor([1.0, 2, 3, 4])))
