"""A BiLSTM tagger with a conditional random field written by hand."""

import torch, torch.nn as nn

torch.manual_seed(1)


class CRF(nn.Module):
    def __init__(s, n):
        super().__init__()
        s.tr = nn.Parameter(torch.randn(n, n) * 0.1)
        s.st = nn.Parameter(torch.zeros(n))
        s.en = nn.Parameter(torch.zeros(n))

    def norm(s, em, mask):
        a = s.st + em[0]
        for t in range(1, len(em)):
            nx = torch.logsumexp(a.unsqueeze(2) + s.tr + em[t].unsqueeze(1), dim=1)
            a = torch.where(mask[t].unsqueeze(1), nx, a)
        return torch.logsumexp(a + s.en, 1)

    def score(s, em, tags, mask):
        T, B = tags.shape
        ar = torch.arange(B)
        sc = s.st[tags[0]] + em[0, ar, tags[0]]
        m = mask.float()
        for t in range(1, T):
            sc += s.tr[tags[t - 1], tags[t]] * m[t]
            sc += em[t, ar, tags[t]] * m[t]
        last = mask.long().sum(0) - 1
        return sc + s.en[tags[last, ar]]

    def forward(s, em, tags, mask):
        return (s.norm(em, mask) - s.score(em, tags, mask)).mean()

    def decode(s, em, mask):
        T, B, _ = em.shape
        sc = s.st + em[0]
        h = []
        for t in range(1, T):
            nx, ix = (sc.unsqueeze(2) + s.tr + em[t].unsqueeze(1)).max(1)
            sc = torch.where(mask[t].unsqueeze(1), nx, sc)
            h.append(ix)
        out = []
        for b in range(B):
            n = int(mask[:, b].sum())
            best = [(sc[b] + s.en).argmax().item()]
            for ix in reversed(h[: n - 1]):
                best.append(ix[b][best[-1]].item())
            out.append(best[::-1])
        return out


emb = nn.Embedding(30, 8, padding_idx=0)
rnn = nn.LSTM(8, 6, bidirectional=True)
lin = nn.Linear(12, 4)
crf = CRF(4)
mods = nn.ModuleList([emb, rnn, lin, crf])
opt = torch.optim.Adam(mods.parameters(), 0.02)
lens = [6, 4, 2]
X = torch.zeros(6, 3, dtype=torch.long)
Y = torch.zeros(6, 3, dtype=torch.long)
for i, n in enumerate(lens):
    X[:n, i] = torch.randint(1, 30, (n,))
    Y[:n, i] = torch.randint(0, 4, (n,))
mask = X.ne(0)


def em():
    p = nn.utils.rnn.pack_padded_sequence(emb(X), lens)
    o, (h, c) = rnn(p)
    return lin(nn.utils.rnn.pad_packed_sequence(o, total_length=6)[0])


for i in range(5):
    l = crf(em(), Y, mask)
    opt.zero_grad()
    l.backward()
    opt.step()
    print(f"{l.item():.4f}")
print(crf.decode(em(), mask))
print(crf.tr.grad)
