"""autograd.Function in its forms: saved tensors, setup_context, non-differentiable and dirty outputs, errors."""

import torch
from torch.autograd import Function, gradcheck
from torch.autograd.function import once_differentiable


class MyReLU(Function):
    @staticmethod
    def forward(ctx, input):
        ctx.save_for_backward(input)
        return input.clamp(min=0)

    @staticmethod
    def backward(ctx, g):
        (input,) = ctx.saved_tensors
        gi = g.clone()
        gi[input < 0] = 0
        return gi


class STE(Function):
    @staticmethod
    def forward(ctx, x, bits):
        ctx.bits = bits
        s = 2**bits - 1
        return torch.round(x * s) / s

    @staticmethod
    def backward(ctx, g):
        return g, None


class GradReverse(Function):
    @staticmethod
    def forward(ctx, x, lambd):
        ctx.lambd = lambd
        return x.view_as(x)

    @staticmethod
    def backward(ctx, g):
        return g.neg() * ctx.lambd, None


class MulAdd(Function):
    @staticmethod
    def forward(x, y, z):
        return x * y + z, x.detach().argmax()

    @staticmethod
    def setup_context(ctx, inputs, output):
        x, y, z = inputs
        ctx.save_for_backward(x, y)
        ctx.mark_non_differentiable(output[1])

    @staticmethod
    def backward(ctx, g, _):
        x, y = ctx.saved_tensors
        return (g * y if ctx.needs_input_grad[0] else None), g * x, g


class Sort(Function):
    @staticmethod
    def forward(ctx, x):
        v, i = x.sort()
        ctx.save_for_backward(i)
        ctx.mark_non_differentiable(i)
        return v, i

    @staticmethod
    @once_differentiable
    def backward(ctx, gv, gi):
        (i,) = ctx.saved_tensors
        return torch.zeros_like(gv).scatter_(0, i, gv)


torch.manual_seed(0)
x = torch.randn(5, requires_grad=True)
y = MyReLU.apply(x)
print(y, y.grad_fn.name())
y.sum().backward()
print(x.grad)
x.grad.zero_()
q = STE.apply(torch.sigmoid(x), 3)
q.sum().backward()
print(q, x.grad)
x.grad = None
GradReverse.apply(x, 0.5).pow(2).sum().backward()
print(x.grad)
a, b, c = (torch.randn(4, dtype=torch.float64, requires_grad=True) for _ in range(3))
o, i = MulAdd.apply(a, b, c)
print(o, i, i.requires_grad)
print(gradcheck(lambda *z: MulAdd.apply(*z)[0], (a, b, c)))
v, i = Sort.apply(a)
v.dot(torch.arange(4.0).double()).backward()
print(a.grad, i)


class Bad(Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, g):
        return g, g


try:
    Bad.apply(x).sum().backward()
except RuntimeError as e:
    print(e)


class Exp(Function):
    @staticmethod
    def forward(ctx, i):
        r = i.exp()
        ctx.save_for_backward(r)
        return r

    @staticmethod
    def backward(ctx, g):
        (r,) = ctx.saved_tensors
        return g * r


z = torch.tensor(1.0, requires_grad=True)
(g1,) = torch.autograd.grad(Exp.apply(z), z, create_graph=True)
(g2,) = torch.autograd.grad(g1, z)
print(g1, g2)


class Inplace(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.mark_dirty(x)
        x.mul_(2)
        return x

    @staticmethod
    def backward(ctx, g):
        return g * 2


w = torch.ones(3, requires_grad=True)
t = w.clone()
Inplace.apply(t)
t.sum().backward()
print(t, w.grad)
try:
    MyReLU()(x)
except RuntimeError as e:
    print(str(e)[:80])
