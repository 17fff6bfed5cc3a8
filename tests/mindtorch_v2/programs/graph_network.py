"""GCN and GAT by index_add and scatter_reduce, sparse products."""

import torch, torch.nn as nn, torch.nn.functional as F

torch.manual_seed(0)
N = 12
E = torch.randint(0, N, (2, 40))
E = torch.unique(torch.cat([E, E.flip(0)], 1), dim=1)
E = E[:, E[0] != E[1]]
print(E.shape, E[:, :6])


def degree(i, n):
    return torch.zeros(n).scatter_add_(0, i, torch.ones(i.numel()))


class GCN(nn.Module):
    def __init__(s, i, o):
        super().__init__()
        s.lin = nn.Linear(i, o, bias=False)
        s.bias = nn.Parameter(torch.zeros(o))

    def forward(s, x, ei):
        loop = torch.arange(x.size(0)).unsqueeze(0).repeat(2, 1)
        ei = torch.cat([ei, loop], 1)
        r, c = ei
        d = degree(c, x.size(0)).pow(-0.5)
        d[d == float("inf")] = 0
        nrm = d[r] * d[c]
        x = s.lin(x)
        return torch.zeros_like(x).index_add_(0, c, nrm.view(-1, 1) * x[r]) + s.bias


class GAT(nn.Module):
    def __init__(s, i, o, h=2):
        super().__init__()
        s.lin = nn.Linear(i, o * h)
        s.a = nn.Parameter(torch.empty(1, h, 2 * o))
        nn.init.xavier_normal_(s.a)
        s.h, s.o = h, o

    def forward(s, x, ei):
        r, c = ei[0], ei[1]
        z = s.lin(x).view(-1, s.h, s.o)
        e = F.leaky_relu((torch.cat([z[r], z[c]], -1) * s.a).sum(-1), 0.2)
        mx = torch.full((x.size(0), s.h), -1e9).scatter_reduce(
            0, c[:, None].expand(-1, s.h), e, reduce="amax", include_self=True
        )
        e = (e - mx[c]).exp()
        den = torch.zeros(x.size(0), s.h).index_add(0, c, e)
        a = e / (den[c] + 1e-16)
        return torch.zeros_like(z).index_add(0, c, a.unsqueeze(-1) * z[r]).mean(1)


class Net(nn.Module):
    def __init__(s):
        super().__init__()
        s.g1 = GCN(5, 8)
        s.g2 = GAT(8, 3)

    def forward(s, x, ei):
        return F.log_softmax(s.g2(F.dropout(F.elu(s.g1(x, ei)), 0.3, s.training), ei), 1)


x = torch.randn(N, 5)
y = torch.randint(0, 3, (N,))
tm = torch.zeros(N, dtype=torch.bool)
tm[:8] = True
net = Net()
opt = torch.optim.Adam(net.parameters(), 0.02, weight_decay=5e-4)
for ep in range(5):
    net.train()
    o = net(x, E)
    l = F.nll_loss(o[tm], y[tm])
    opt.zero_grad()
    l.backward()
    opt.step()
    print(ep, f"{l.item():.4f}")
net.eval()
pred = net(x, E).argmax(dim=-1)
print(pred, int((pred[~tm] == y[~tm]).sum()) / int((~tm).sum()))
A = torch.sparse_coo_tensor(E, torch.ones(E.size(1)), (N, N))
print(torch.sparse.mm(A, x)[:2])
print((A.to_dense() @ x - A @ x).abs().max() < 1e-5)
print(A.coalesce().values().sum())
batch = torch.tensor([0] * 5 + [1] * 7)
print(torch.zeros(2, 5).index_reduce_(0, batch, x, "mean", include_self=False))
print(torch.bincount(batch), torch.bincount(E[1], minlength=N))
print(torch.zeros(2, 5).scatter_reduce(0, batch[:, None].expand_as(x), x, "prod", include_self=False))
