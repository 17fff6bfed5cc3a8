"""Checkpoints with all random state, whole modules, weights_only, shared storages, prefixes renamed."""

import torch, torch.nn as nn, io, os, tempfile, random, numpy as np
from collections import OrderedDict


def seed_all(s):
    random.seed(s)
    np.random.seed(s)
    torch.manual_seed(s)
    torch.cuda.manual_seed_all(s)
    os.environ["PYTHONHASHSEED"] = str(s)


class Net(nn.Module):
    def __init__(s):
        super().__init__()
        s.a = nn.Linear(4, 8)
        s.bn = nn.BatchNorm1d(8)
        s.b = nn.Linear(8, 2)
        s.d = nn.Dropout(0.3)

    def forward(s, x):
        return s.b(s.d(torch.relu(s.bn(s.a(x)))))


class Trainer:
    def __init__(s, dir):
        s.m = Net()
        s.opt = torch.optim.AdamW(s.m.parameters(), 1e-2)
        s.sch = torch.optim.lr_scheduler.CosineAnnealingLR(s.opt, 10)
        s.dir = dir
        s.ep = 0
        s.hist = []

    def epoch(s):
        s.m.train()
        x = torch.randn(16, 4)
        y = (x.sum(1) > 0).long()
        l = nn.functional.cross_entropy(s.m(x), y)
        s.opt.zero_grad()
        l.backward()
        s.opt.step()
        s.sch.step()
        s.ep += 1
        s.hist.append(round(l.item(), 5))

    def save(s):
        torch.save(
            {
                "epoch": s.ep,
                "model": s.m.state_dict(),
                "opt": s.opt.state_dict(),
                "sch": s.sch.state_dict(),
                "rng": torch.get_rng_state(),
                "hist": s.hist,
            },
            os.path.join(s.dir, "ck.pt"),
        )

    def load(s):
        ck = torch.load(os.path.join(s.dir, "ck.pt"), map_location="cpu", weights_only=True)
        s.m.load_state_dict(ck["model"])
        s.opt.load_state_dict(ck["opt"])
        s.sch.load_state_dict(ck["sch"])
        torch.set_rng_state(ck["rng"])
        s.ep, s.hist = ck["epoch"], ck["hist"]


with tempfile.TemporaryDirectory() as d:
    seed_all(1)
    t = Trainer(d)
    for _ in range(3):
        t.epoch()
    t.save()
    for _ in range(3):
        t.epoch()
    print(t.hist)
    t2 = Trainer(d)
    t2.load()
    for _ in range(3):
        t2.epoch()
    print(t2.hist, t2.hist == t.hist, t2.ep)
    torch.save(t.m, os.path.join(d, "m.pt"))
    try:
        torch.load(os.path.join(d, "m.pt"))
    except Exception as e:
        print(type(e).__module__, type(e).__name__, str(e).splitlines()[0][:100])
    m = torch.load(os.path.join(d, "m.pt"), weights_only=False)
    m.eval()
    t.m.eval()
    x = torch.ones(1, 4)
    print(torch.equal(m(x), t.m(x)))
    b = io.BytesIO()
    torch.save(
        [
            torch.arange(3),
            {"x": torch.tensor(1.0)},
            (1, "a", None),
            OrderedDict(z=torch.ones(1)),
            torch.Size([1]),
            torch.float16,
        ],
        b,
    )
    b.seek(0)
    print(torch.load(b))
    a = torch.arange(6.0)
    b = io.BytesIO()
    torch.save((a, a[2:4]), b)
    b.seek(0)
    c, e = torch.load(b)
    c[2] = 99
    print(e)
    sd = {
        k.replace("a.", "module.a.") if k.startswith("a.") else "module." + k: v
        for k, v in m.state_dict().items()
    }
    new = OrderedDict((k[7:], v) for k, v in sd.items())
    print(Net().load_state_dict(new))
    dp = nn.DataParallel(Net())
    print(list(dp.state_dict())[:2])
    dp.eval()
    print(dp(torch.ones(2, 4)).shape)
    p = nn.Parameter(torch.ones(2))
    b = io.BytesIO()
    torch.save(p, b)
    b.seek(0)
    print(torch.load(b))
