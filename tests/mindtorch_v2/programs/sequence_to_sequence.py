"""GRU encoder over packed sequences, attention decoder, teacher forcing."""

import random
import torch, torch.nn as nn, torch.nn.functional as F
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence

torch.manual_seed(2)
random.seed(2)
PAD, SOS, EOS = 0, 1, 2


class Encoder(nn.Module):
    def __init__(s, V, d):
        super().__init__()
        s.e = nn.Embedding(V, d, padding_idx=PAD)
        s.rnn = nn.GRU(d, d, num_layers=2, bidirectional=True, batch_first=True, dropout=0.1)
        s.fc = nn.Linear(2 * d, d)

    def forward(s, x, lens):
        p = pack_padded_sequence(s.e(x), lens.cpu(), batch_first=True, enforce_sorted=False)
        o, h = s.rnn(p)
        o, l = pad_packed_sequence(o, batch_first=True)
        return o, torch.tanh(s.fc(torch.cat((h[-2], h[-1]), dim=1)))


class Attn(nn.Module):
    def __init__(s, d):
        super().__init__()
        s.W = nn.Linear(3 * d, d)
        s.v = nn.Linear(d, 1, bias=False)

    def forward(s, h, enc, mask):
        hh = h.unsqueeze(1).repeat(1, enc.size(1), 1)
        e = s.v(torch.tanh(s.W(torch.cat((hh, enc), 2)))).squeeze(2)
        return F.softmax(e.masked_fill(mask == 0, -1e10), dim=1)


class Decoder(nn.Module):
    def __init__(s, V, d):
        super().__init__()
        s.e = nn.Embedding(V, d)
        s.a = Attn(d)
        s.cell = nn.GRUCell(3 * d, d)
        s.out = nn.Linear(d, V)

    def forward(s, tok, h, enc, mask):
        a = s.a(h, enc, mask)
        c = torch.bmm(a.unsqueeze(1), enc).squeeze(1)
        h = s.cell(torch.cat([s.e(tok), c], -1), h)
        return s.out(h), h, a


E_, D_ = Encoder(20, 12), Decoder(20, 12)
params = list(E_.parameters()) + list(D_.parameters())
for p in params:
    nn.init.uniform_(p.data, -0.08, 0.08)
opt = torch.optim.Adam(params, lr=5e-3)
src = [torch.randint(3, 20, (n,)) for n in (5, 8, 3, 6)]
tgt = [torch.cat([t.flip(0), torch.tensor([EOS])]) for t in src]
X = pad_sequence(src, batch_first=True, padding_value=PAD)
Y = pad_sequence(tgt, batch_first=True)
lens = torch.as_tensor([len(s) for s in src])
for ep in range(4):
    enc, h = E_(X, lens)
    mask = X != PAD
    tok = torch.full((4,), SOS)
    loss = 0
    for t in range(Y.size(1)):
        o, h, a = D_(tok, h, enc, mask)
        loss = loss + F.cross_entropy(o, Y[:, t], ignore_index=PAD, reduction="sum")
        tok = Y[:, t] if random.random() < 0.5 else o.argmax(1)
    loss = loss / (Y != PAD).sum()
    opt.zero_grad()
    loss.backward()
    nn.utils.clip_grad_value_(params, 0.5)
    opt.step()
    print(ep, f"{loss.item():.4f}")
print(a)
print(E_)
E_.eval()
o, h = E_(X, lens)
print(o.shape, h[0, :4])
p = pack_padded_sequence(torch.randn(4, 8, 2), lens, batch_first=True, enforce_sorted=False)
print(p.batch_sizes, p.sorted_indices, p.data.shape)
