"""Top-k accuracy, confusion matrix, AUC, box IoU and NMS, PSNR and SSIM."""

import torch

torch.manual_seed(0)


def accuracy(output, target, topk=(1,)):
    with torch.no_grad():
        maxk = max(topk)
        bs = target.size(0)
        _, pred = output.topk(maxk, 1, True, True)
        pred = pred.t()
        correct = pred.eq(target.view(1, -1).expand_as(pred))
        res = []
        for k in topk:
            res.append(correct[:k].reshape(-1).float().sum(0, keepdim=True).mul_(100.0 / bs))
        return res


o = torch.randn(20, 6)
t = torch.randint(0, 6, (20,))
print(accuracy(o, t, (1, 3)))


def confmat(p, t, n):
    return torch.bincount(t * n + p, minlength=n * n).reshape(n, n)


cm = confmat(o.argmax(1), t, 6)
print(cm)
tp = cm.diag().float()
prec = tp / cm.sum(0).clamp(min=1)
rec = tp / cm.sum(1).clamp(min=1)
f1 = 2 * prec * rec / (prec + rec)
print(prec, rec, f1, torch.nan_to_num(f1).mean())


def auc(s, y):
    d, i = torch.sort(s, descending=True)
    y = y[i]
    tps = y.cumsum(0)
    fps = (1 - y).cumsum(0)
    tpr = torch.cat([torch.zeros(1), tps / tps[-1]])
    fpr = torch.cat([torch.zeros(1), fps / fps[-1]])
    return torch.trapz(tpr, fpr)


s = torch.rand(50)
y = (s + 0.5 * torch.rand(50) > 0.7).long()
print(auc(s, y))


def ap(s, y):
    i = s.argsort(descending=True)
    y = y[i].float()
    p = y.cumsum(0) / torch.arange(1, len(y) + 1)
    return (p * y).sum() / y.sum()


print(ap(s, y))


def box_iou(a, b):
    lt = torch.max(a[:, None, :2], b[:, :2])
    rb = torch.min(a[:, None, 2:], b[:, 2:])
    wh = (rb - lt).clamp(min=0)
    inter = wh[..., 0] * wh[..., 1]
    ar = lambda q: (q[:, 2] - q[:, 0]) * (q[:, 3] - q[:, 1])
    return inter / (ar(a)[:, None] + ar(b) - inter)


xy = torch.rand(8, 2) * 10
boxes = torch.cat([xy, xy + 1 + torch.rand(8, 2) * 6], 1)
sc = torch.rand(8)


def nms(b, s, th):
    order = s.argsort(descending=True)
    keep = []
    while order.numel() > 0:
        i = order[0].item()
        keep.append(i)
        if order.numel() == 1:
            break
        iou = box_iou(b[i].unsqueeze(0), b[order[1:]])[0]
        order = order[1:][iou <= th]
    return torch.tensor(keep)


print(box_iou(boxes[:2], boxes[2:5]), nms(boxes, sc, 0.2))


def psnr(a, b):
    return 10 * torch.log10(1.0 / torch.nn.functional.mse_loss(a, b))


a = torch.rand(1, 1, 16, 16)
b = (a + 0.1 * torch.randn_like(a)).clamp(0, 1)
print(psnr(a, b))


def ssim(a, b, ws=5):
    g = torch.exp(-((torch.arange(ws).float() - ws // 2) ** 2) / (2 * 1.5**2))
    g = g / g.sum()
    w = (g[:, None] @ g[None]).expand(1, 1, ws, ws).contiguous()
    f = lambda q: torch.nn.functional.conv2d(q, w, padding=ws // 2)
    m1, m2 = f(a), f(b)
    s1, s2, s12 = f(a * a) - m1**2, f(b * b) - m2**2, f(a * b) - m1 * m2
    return (((2 * m1 * m2 + 1e-4) * (2 * s12 + 9e-4)) / ((m1**2 + m2**2 + 1e-4) * (s1 + s2 + 9e-4))).mean()


print(ssim(a, b))


class Meter:
    def __init__(s, name, fmt=":f"):
        s.name, s.fmt = name, fmt
        s.sum = s.cnt = 0

    def update(s, v, n=1):
        s.val = v
        s.sum += v * n
        s.cnt += n
        s.avg = s.sum / s.cnt

    def __str__(s):
        return ("{name} {val" + s.fmt + "} ({avg" + s.fmt + "})").format(**s.__dict__)


m = Meter("Loss", ":.4e")
m.update(torch.tensor(0.5), 2)
m.update(torch.tensor(0.25), 6)
print(str(m))
print(
    torch.tensor([1.0, 2, 3, 4]).quantile(0.75),
    torch.tensor([[3, 1, 2], [6, 5, 4]]).sort(1)[0],
    torch.unique(t, return_counts=True),
)
