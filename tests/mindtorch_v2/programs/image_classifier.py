"""A CNN with random_split, DataLoader, label smoothing, momentum and a step schedule."""

import torch, torch.nn as nn, torch.nn.functional as F
from torch.utils.data import TensorDataset, DataLoader, random_split

torch.manual_seed(0)


class Net(nn.Module):
    def __init__(self, n=10):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 8, 3, padding=1),
            nn.BatchNorm2d(8),
            nn.ReLU(inplace=True),
            nn.MaxPool2d(2),
            nn.Conv2d(8, 16, 3, padding=1),
            nn.BatchNorm2d(16),
            nn.ReLU(inplace=True),
            nn.AdaptiveAvgPool2d((2, 2)),
        )
        self.drop = nn.Dropout(0.25)
        self.fc = nn.Linear(64, n)

    def forward(self, x):
        x = self.features(x)
        x = torch.flatten(x, 1)
        return self.fc(self.drop(x))


X = torch.randn(64, 1, 12, 12)
y = torch.randint(0, 10, (64,))
ds = TensorDataset(X, y)
tr, va = random_split(ds, [48, 16], generator=torch.Generator().manual_seed(1))
tl = DataLoader(tr, batch_size=16, shuffle=True)
vl = DataLoader(va, batch_size=16)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
print(device)
net = Net().to(device)
print(net)
opt = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-4, nesterov=True)
sched = torch.optim.lr_scheduler.StepLR(opt, step_size=2, gamma=0.5)
crit = nn.CrossEntropyLoss(label_smoothing=0.1)
for ep in range(3):
    net.train()
    tot = 0.0
    correct = 0
    for xb, yb in tl:
        xb, yb = xb.to(device, non_blocking=True), yb.to(device)
        opt.zero_grad(set_to_none=True)
        out = net(xb)
        loss = crit(out, yb)
        loss.backward()
        opt.step()
        tot += loss.item() * xb.size(0)
        correct += out.argmax(1).eq(yb).sum().item()
    sched.step()
    net.eval()
    with torch.no_grad():
        vloss = sum(crit(net(a), b).item() for a, b in vl)
    print(
        f"epoch {ep} loss {tot / len(tr):.4f} acc {correct / len(tr):.3f} val {vloss:.4f} lr {sched.get_last_lr()}"
    )
print(sum(p.numel() for p in net.parameters() if p.requires_grad))
for n, p in net.named_parameters():
    print(n, tuple(p.shape), f"{p.grad.norm():.4f}")
