"""A U-Net: group norm, upsampling, padding, Dice loss."""

import torch, torch.nn as nn, torch.nn.functional as F

torch.manual_seed(3)


class DoubleConv(nn.Sequential):
    def __init__(self, i, o):
        super().__init__(
            nn.Conv2d(i, o, 3, padding=1),
            nn.GroupNorm(2, o),
            nn.SiLU(),
            nn.Conv2d(o, o, 3, padding=1),
            nn.GroupNorm(2, o),
            nn.SiLU(),
        )


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.d1, self.d2, self.d3 = DoubleConv(1, 4), DoubleConv(4, 8), DoubleConv(8, 16)
        self.up2 = nn.ConvTranspose2d(16, 8, 2, stride=2)
        self.u2 = DoubleConv(16, 8)
        self.up1 = nn.Upsample(scale_factor=2, mode="bilinear", align_corners=True)
        self.u1 = DoubleConv(12, 4)
        self.out = nn.Conv2d(4, 1, 1)

    def forward(self, x):
        a = self.d1(x)
        b = self.d2(F.max_pool2d(a, 2))
        c = self.d3(F.avg_pool2d(b, 2))
        y = self.up2(c)
        dy, dx = b.size(2) - y.size(2), b.size(3) - y.size(3)
        y = F.pad(y, [dx // 2, dx - dx // 2, dy // 2, dy - dy // 2])
        y = self.u2(torch.cat([b, y], dim=1))
        y = self.up1(y)
        y = F.interpolate(y, size=a.shape[-2:], mode="nearest")
        return self.out(self.u1(torch.cat((a, y), 1)))


def dice_loss(p, t, eps=1e-6):
    p = torch.sigmoid(p)
    inter = (p * t).sum(dim=(1, 2, 3))
    u = p.sum((1, 2, 3)) + t.sum((1, 2, 3))
    return 1 - ((2 * inter + eps) / (u + eps)).mean()


net = UNet()
opt = torch.optim.RMSprop(net.parameters(), lr=1e-3, momentum=0.5)
x = torch.rand(2, 1, 18, 22)
t = (x > 0.6).float()
for i in range(4):
    p = net(x)
    loss = F.binary_cross_entropy_with_logits(p, t, pos_weight=torch.tensor(2.0)) + dice_loss(p, t)
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(i, "%.4f" % loss)
iou = ((p > 0) & (t > 0)).sum() / ((p > 0) | (t > 0)).sum()
print(iou)
print(net.state_dict().keys())
