"""Top-p sampling, beam search, Viterbi, edit distance and CTC on tensors."""

import torch, torch.nn.functional as F

torch.manual_seed(0)
V = 12
W = torch.randn(V, V)


def model(ids):
    return W[ids[:, -1]] + 0.1 * F.one_hot(ids, V).float().mean(1)


def top_k_top_p(logits, top_k=0, top_p=0.0, filt=-float("Inf")):
    top_k = min(top_k, logits.size(-1))
    if top_k > 0:
        logits[logits < torch.topk(logits, top_k)[0][..., -1, None]] = filt
    if top_p > 0.0:
        sl, si = torch.sort(logits, descending=True)
        cp = torch.cumsum(F.softmax(sl, dim=-1), dim=-1)
        rm = cp > top_p
        rm[..., 1:] = rm[..., :-1].clone()
        rm[..., 0] = 0
        logits = logits.masked_fill(rm.scatter(1, si, rm), filt)
    return logits


ids = torch.tensor([[1], [2]])
for _ in range(10):
    lg = model(ids) / 0.9
    sc = torch.gather(lg, 1, ids)
    sc = torch.where(sc < 0, sc * 1.2, sc / 1.2)
    lg = lg.scatter(1, ids, sc)
    ids = torch.cat([ids, torch.multinomial(F.softmax(top_k_top_p(lg, 8, 0.9), -1), 1)], -1)
print(ids)


def beam(start, k=3, n=6, eos=0, lp=0.6):
    seqs = torch.full((1, 1), start)
    scores = torch.zeros(1)
    done = []
    for t in range(n):
        l = F.log_softmax(model(seqs), -1)
        tot = scores[:, None] + l
        s, i = tot.flatten().topk(k)
        b = torch.div(i, V, rounding_mode="floor")
        tok = i % V
        seqs = torch.cat([seqs[b], tok[:, None]], 1)
        scores = s
        e = tok == eos
        for q, sc in zip(seqs[e], scores[e]):
            done.append((sc.item() / (t + 1) ** lp, q.tolist()))
        seqs, scores = seqs[~e], scores[~e]
        if len(seqs) == 0:
            break
    done += [(s.item() / n**lp, q.tolist()) for s, q in zip(scores, seqs)]
    return sorted(done, reverse=True)[:3]


for s, q in beam(3):
    print(f"{s:.4f}", q)
# viterbi & forward
T, S = 6, 3
tr = torch.rand(S, S).log_softmax(1)
em = torch.rand(S, 4).log_softmax(1)
obs = torch.randint(4, (T,))
v = torch.full((S,), 1 / S).log() + em[:, obs[0]]
bp = []
al = v.clone()
for t in range(1, T):
    sc = v[:, None] + tr
    v, ix = sc.max(0)
    v = v + em[:, obs[t]]
    bp.append(ix)
    al = torch.logsumexp(al[:, None] + tr, 0) + em[:, obs[t]]
path = [v.argmax().item()]
for ix in reversed(bp):
    path.append(ix[path[-1]].item())
print(path[::-1], v.max(), al.logsumexp(0))


def edit(a, b):
    d = torch.zeros(len(a) + 1, len(b) + 1, dtype=torch.int)
    d[:, 0] = torch.arange(len(a) + 1)
    d[0] = torch.arange(len(b) + 1)
    for i in range(1, len(a) + 1):
        for j in range(1, len(b) + 1):
            d[i, j] = min(d[i - 1, j] + 1, d[i, j - 1] + 1, d[i - 1, j - 1] + (a[i - 1] != b[j - 1]))
    return d


print(edit("kitten", "sitting"))
lp = torch.randn(10, 2, 5).log_softmax(2)
tg = torch.tensor([[1, 2, 3], [2, 2, 0]])
print(F.ctc_loss(lp, tg, torch.tensor([10, 8]), torch.tensor([3, 2])))
print(lp.argmax(-1).unique_consecutive(dim=0).shape)
vocab = {c: i for i, c in enumerate(sorted(set("the quick brown fox")))}
enc = lambda s: torch.tensor([vocab[c] for c in s])
print(enc("the fox"), "".join(list(vocab)[i] for i in enc("quick")))
