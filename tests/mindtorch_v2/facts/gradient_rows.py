"""Sample inputs for every op that has a derivative: an expression, and what its variables x, y, z, w hold.

An input is a kind and a shape, "n23" for a normal tensor of 2 by 3. Kinds: n normal, p between 0.3 and 1.3, u between -0.9 and
0.9, d far apart from each other, a away from zero, s positive definite, c complex. `op` calls an op that has no public name.
"""

from __future__ import annotations

import zlib
from typing import Any

import mindtorch_v2 as torch
from mindtorch_v2 import _dispatch, nn
from mindtorch_v2.nn import functional as F

D = torch.float64

ROWS: list[tuple[str, ...]] = [
    # complex numbers and views
    ("torch.complex(x, y)", "n23", "n23"),
    ("torch.polar(x, y)", "p3", "n3"),
    ("torch.view_as_real(x)", "c23"),
    ("torch.view_as_complex(x)", "n232"),
    ("torch.view_as_real_copy(x)", "c23"),
    ("torch.view_as_complex_copy(x)", "n232"),
    ("x.conj() * x.resolve_conj()", "c3"),
    ("torch.conj_physical(x) * y", "c3", "c3"),
    ("torch.angle(x)", "c3"),
    ("torch.angle(x)", "a3"),
    ("x.abs()", "c3"),
    ("torch.sgn(x)", "c3"),
    ("x * y / (x + 3)", "c3", "c3"),
    ("x.exp() + x.sin().log()", "c3"),
    ("x @ y", "c23", "c32"),
    ("x.as_strided((2, 2), (3, 1), 1)", "n23"),
    ("x.as_strided((2, 2), (1, 1), 0)", "n23"),
    ("x.view(3, 2)", "n23"),
    ("op('_reshape_alias')(x, (3, 2), (2, 1))", "n23"),
    ("op('_unsafe_view')(x, (3, 2))", "n23"),
    ("x.transpose(0, 1).t().permute(1, 0)", "n23"),
    ("x.sin().sum() + x.t().contiguous().sin().sum()", "n23"),
    ("x.expand(4, 2, 3)", "n23"),
    ("x.expand(2, 3)", "n21"),
    ("x.select(1, 2)", "n23"),
    ("x[:, 1:3:2]", "n24"),
    ("x.unsqueeze(1).squeeze(1)", "n23"),
    ("x.squeeze()", "n213"),
    ("x.squeeze((1, 2))", "n211"),
    ("x.diagonal(1)", "n34"),
    ("x.unfold(0, 3, 2)", "n7"),
    ("torch.cat(x.unbind(1))", "n23"),
    ("torch.cat([a * i for i, a in enumerate(x.split(2))])", "n5"),
    ("torch.cat([a * i for i, a in enumerate(x.split((1, 3), 1))], 1)", "n24"),
    ("torch.cat(torch.unsafe_split(x, 2))", "n5"),
    ("torch.cat(torch.unsafe_split_with_sizes(x, (1, 4)))", "n5"),
    ("x.split(1, 1)[1]", "n23"),
    ("torch.cat([x, y], 1)", "n23", "n21"),
    ("torch.stack([x, y], 1)", "n23", "n23"),
    ("torch.block_diag(x, y)", "n23", "n2"),
    ("x.flip(0).roll(1, 1)", "n23"),
    ("x.roll(2)", "n23"),
    ("x.rot90(1, (0, 1))", "n23"),
    ("x.repeat(2, 1, 2)", "n23"),
    ("x.clone()", "n23"),
    ("x.clone().copy_(y)", "n23", "n3"),
    ("x.clone().fill_(2.0) * y", "n3", "n3"),
    ("x.clone().fill_(y)", "n3", "n"),
    ("x.clone().zero_() + y", "n3", "n3"),
    ("op('copy')(x, y)", "n3", "n3"),
    ("op('fill.Scalar')(x, 2.0) * y", "n3", "n3"),
    ("op('fill.Tensor')(x, y)", "n3", "n"),
    ("op('zero')(x) + y", "n3", "n3"),
    ("op('alias')(x)", "n3"),
    ("x.to(torch.float64, copy=True)", "n3"),
    ("x[...] * 2", "n23"),
    ("x[None, :, 1]", "n23"),
    ("torch.diag_embed(x, 1)", "n23"),
    ("x.tril(-1) + x.triu(1) * 2", "n33"),
    ("x.trace()", "n33"),
    ("torch.select_scatter(x, y, 0, 1)", "n23", "n3"),
    ("torch.slice_scatter(x, y, 1, 0, 2)", "n23", "n22"),
    ("torch.diagonal_scatter(x, y)", "n33", "n3"),
    ("torch.as_strided_scatter(x, y, (2, 2), (3, 1))", "n23", "n22"),
    ("torch.alias_copy(x)", "n3"),
    ("torch.as_strided_copy(x, (2, 2), (3, 1))", "n23"),
    ("torch.diagonal_copy(x)", "n33"),
    ("torch.expand_copy(x, (4, 3))", "n3"),
    ("torch.permute_copy(x, (1, 0))", "n23"),
    ("torch.select_copy(x, 0, 1)", "n23"),
    ("torch.slice_copy(x, 0, 0, 1)", "n23"),
    ("torch.t_copy(x)", "n23"),
    ("torch.transpose_copy(x, 0, 1)", "n23"),
    ("torch.unfold_copy(x, 0, 2, 1)", "n4"),
    ("torch.unsqueeze_copy(x, 0)", "n3"),
    ("torch.squeeze_copy(x) + torch.squeeze_copy(x, 1) + torch.squeeze_copy(x, (1,))", "n31"),
    ("torch.view_copy(x, (6,))", "n23"),
    ("torch.narrow_copy(x, 1, 0, 2)", "n23"),
    ("torch.cat(torch.split_copy(x, 2))", "n5"),
    ("torch.cat(torch.split_with_sizes_copy(x, (2, 3)))", "n5"),
    ("torch.cat(torch.unbind_copy(x))", "n23"),
    ("x.clone().squeeze_()", "n213"),
    ("x.clone().squeeze_(1)", "n213"),
    ("op('squeeze_.dims')(x.clone(), (1,))", "n213"),
    ("x.clone().unsqueeze_(0)", "n3"),
    ("x.clone().t_()", "n23"),
    ("x.clone().transpose_(0, 1)", "n23"),
    ("x.clone().as_strided_((2, 2), (2, 1))", "n4"),
    # pointwise
    ("x + y * 2", "n23", "n3"),
    ("torch.add(x, y, alpha=3)", "n23", "n21"),
    ("torch.sub(x, y, alpha=3)", "n23", "n3"),
    ("torch.rsub(x, y, alpha=3)", "n23", "n3"),
    ("torch.rsub(x, 2.0, alpha=3)", "n23"),
    ("2 - x", "n3"),
    ("x * y", "n23", "n3"),
    ("x / y", "n23", "a3"),
    ("op('mul.Scalar')(x, 3.0)", "n3"),
    ("op('div.Scalar')(x, 3.0)", "n3"),
    ("op('add.Scalar')(x, 3.0, 2)", "n3"),
    ("torch.div(x, y, rounding_mode='floor') + x", "n3", "a3"),
    ("torch.div(x, y, rounding_mode='trunc') + x", "n3", "a3"),
    ("torch.remainder(x, y)", "n3", "a3"),
    ("torch.remainder(x, 0.7)", "n3"),
    ("torch.fmod(x, y)", "n3", "a3"),
    ("torch.fmod(x, 0.7)", "n3"),
    ("x ** 3", "n3"),
    ("x ** 0", "n3"),
    ("x ** y", "p3", "n3"),
    ("2.0 ** x", "n3"),
    ("torch.atan2(x, y)", "a3", "a3"),
    ("torch.hypot(x, y)", "a3", "a3"),
    ("torch.copysign(x, y)", "a3", "a3"),
    ("torch.ldexp(x, y)", "n3", "n3"),
    ("op('ldexp.Tensor')(x, y)", "n3", "n3"),
    ("torch.logaddexp(x, y)", "n3", "n3"),
    ("torch.logaddexp2(x, y)", "n3", "n3"),
    ("torch.maximum(x, y) + torch.minimum(x, y) * 2", "n23", "d23"),
    ("torch.fmax(x, y) + torch.fmin(x, y) * 2", "n23", "d23"),
    ("torch.xlogy(x, y)", "p3", "p3"),
    ("torch.special.xlog1py(x, y)", "p3", "p3"),
    ("torch.special.zeta(torch.tensor(2.5), x)", "p3"),
    ("torch.addcmul(x, y, z, value=2)", "n23", "n3", "n21"),
    ("torch.addcdiv(x, y, z, value=2)", "n23", "n3", "a3"),
    ("torch.lerp(x, y, 0.3)", "n3", "n3"),
    ("torch.lerp(x, y, 0.8)", "n3", "n3"),
    ("torch.lerp(x, y, z)", "n3", "n3", "p3"),
    ("torch.igamma(torch.tensor(1.5), x)", "p3"),
    ("torch.igammac(torch.tensor(1.5), x)", "p3"),
    *[(f"torch.{name}(x)", "n23") for name in (
        "neg", "exp", "exp2", "expm1", "sin", "cos", "atan", "sinh", "cosh", "asinh", "erf", "erfc", "deg2rad", "rad2deg", "i0", "sigmoid",
        "tanh", "sinc", "positive", "square", "nan_to_num", "special.i0e", "special.i1", "special.i1e", "special.erfcx",
        "special.log_ndtr", "special.ndtr", "special.expit",
    )],
    *[(f"torch.{name}(x)", "p23") for name in (
        "log", "log2", "log10", "log1p", "sqrt", "rsqrt", "reciprocal", "lgamma", "digamma", "special.entr", "tan", "abs",
    )],
    *[(f"torch.{name}(x)", "u23") for name in ("asin", "acos", "atanh", "erfinv", "frac")],
    *[(f"torch.{name}(x) + x", "a3") for name in ("floor", "ceil", "trunc", "sign", "round", "sgn")],
    ("torch.round(x, decimals=1) + x", "n3"),
    ("torch.acosh(x + 2)", "p3"),
    ("torch.special.ndtri(x - 0.3)", "p3"),
    ("torch.polygamma(1, x)", "p3"),
    ("torch.special.polygamma(2, x)", "p3"),
    ("torch.mvlgamma(x + 3, 2)", "p3"),
    ("torch.logit(x.abs() / 2, eps=1e-6)", "p3"),
    ("torch.logit(x / 2)", "p3"),
    ("torch.frexp(x)[0]", "a3"),
    ("torch.clamp(x, -0.5, 0.5)", "d23"),
    ("torch.clamp(x, y, z)", "d3", "n3", "n3"),
    ("torch.clamp_min(x, 0.1) + torch.clamp_max(x, 0.1) * 2", "d23"),
    ("torch.where(x > 0, x, y)", "n23", "n3"),
    ("x.masked_fill(x > 0, 2.0)", "n3"),
    ("x.masked_fill(x > 0, y)", "n3", "n"),
    ("x.masked_select(x > 0)", "n23"),
    ("x.masked_scatter(x > 0, y)", "n23", "n6"),
    # reductions
    ("x.sum()", "n23"), ("x.sum(1)", "n23"), ("x.sum((0, 1), keepdim=True)", "n23"),
    ("x.nansum(1)", "n23"), ("x.mean()", "n23"), ("x.mean(0, keepdim=True)", "n23"),
    ("x.prod()", "a23"), ("x.prod(1)", "a23"), ("(x * y).prod()", "a3", "a3"),
    ("x.var()", "n23"), ("x.var(1, correction=0)", "n23"), ("x.std(1)", "n23"),
    ("sum(torch.var_mean(x, 1))", "n23"), ("sum(torch.std_mean(x, 1))", "n23"),
    ("x.max() + x.min() * 2", "d23"), ("x.max(1).values + x.min(1).values", "d23"),
    ("x.amax(1) + x.amin(1) * 2", "d23"), ("sum(torch.aminmax(x, dim=1))", "d23"), ("sum(torch.aminmax(x))", "d23"),
    ("x.logsumexp(1)", "n23"), ("x.cumsum(1)", "n23"), ("x.cumprod(1)", "a23"), ("x.cummax(1).values", "d23"),
    ("x.cummin(1).values", "d23"), ("x.logcumsumexp(1)", "n23"), ("x.median()", "d5"), ("x.median(1).values", "d23"),
    ("x.nanmedian() + x.nanmedian(0).values", "d5"), ("x.mode(1).values", "d23"), ("x.kthvalue(2, 1).values", "d23"),
    ("x.sort(1).values", "d23"), ("x.sort(1, stable=True).values", "d23"), ("x.topk(2, 1).values", "d23"),
    ("torch.segment_reduce(x, 'sum', lengths=torch.tensor([2, 3]))", "n5", "once"),
    ("torch.segment_reduce(x, 'mean', lengths=torch.tensor([2, 3]))", "n5", "once"),
    ("torch.segment_reduce(x, 'max', lengths=torch.tensor([2, 3]))", "d5", "once"),
    ("torch.segment_reduce(x, 'prod', lengths=torch.tensor([2, 3]))", "a5", "once"),
    ("torch.linalg.vector_norm(x)", "n23"), ("torch.linalg.vector_norm(x, 1, 1)", "a23"),
    ("torch.linalg.vector_norm(x, 3.0, 1)", "a23"), ("torch.linalg.vector_norm(x, float('inf'), 1)", "d23"),
    ("torch.linalg.vector_norm(x, 0.5)", "a3"), ("torch.dist(x, y)", "n23", "n23"), ("op('norm.Scalar')(x, 3.0)", "n23"),
    ("torch.renorm(x, 2, 0, 1.0)", "n23"), ("torch.cdist(x, y)", "n23", "n43"), ("torch.cdist(x, y, p=1.0)", "n23", "n43"),
    ("torch.cdist(x, y, p=3.0)", "n23", "n43"), ("torch.pdist(x)", "n43"),
    ("torch.cdist(x, y, compute_mode='use_mm_for_euclid_dist')", "n23", "n43"),
    ("torch.clamp_min(x, y)", "d23", "n23"), ("torch.clamp_max(x, y)", "d23", "n23"), ("op('sub.Scalar')(x, 3.0)", "n23"),
    # matrices
    ("torch.mm(x, y)", "n23", "n32"), ("torch.addmm(x, y, z, beta=2, alpha=3)", "n2", "n23", "n32"),
    ("torch.bmm(x, y)", "n223", "n232"), ("torch.baddbmm(x, y, z, beta=2, alpha=3)", "n2", "n223", "n232"),
    ("torch.addbmm(x, y, z, beta=2, alpha=3)", "n22", "n223", "n232"), ("torch.mv(x, y)", "n23", "n3"),
    ("torch.addmv(x, y, z, beta=2, alpha=3)", "n2", "n23", "n3"), ("torch.dot(x, y)", "n3", "n3"),
    ("torch.vdot(x, y)", "c3", "c3"), ("torch.addr(x, y, z, beta=2, alpha=3)", "n23", "n2", "n3"),
    ("torch.einsum('ij,jk->ik', x, y)", "n23", "n32"),
    ("torch.linalg.cross(x, y)", "n23", "n23"), ("torch.linalg.inv(x)", "s3"), ("torch.linalg.det(x)", "n33"), ("torch.linalg.slogdet(x)[1]", "s3"),
    ("torch.linalg.solve(x, y)", "s3", "n32"), ("torch.linalg.solve(x, y, left=False)", "s3", "n23"),
    ("torch.linalg.solve_triangular(x.tril(), y, upper=False)", "s3", "n32"),
    ("torch.linalg.cholesky(x @ x.mT + torch.eye(3, dtype=x.dtype))", "n33"),
    ("sum(a.sum() for a in torch.linalg.qr(x))", "s3"), ("torch.linalg.eigh(x + x.mT)[0]", "n33"),
    ("torch.linalg.eigh(x + x.mT)[1].abs()", "n33"), ("torch.linalg.eigvals(x @ x.mT).abs()", "n33"),
    ("torch.linalg.eig(x @ x.mT)[1].abs()", "n33"),
    ("torch.linalg.svd(x, full_matrices=False)[1]", "n32"),
    ("(lambda u, s, v: (u * s.unsqueeze(-2)) @ v)(*torch.linalg.svd(x, full_matrices=False))", "n32"),
    ("sum(a.sum() for a in torch.linalg.qr(x))", "n32"), ("sum(a.sum() for a in torch.linalg.qr(x))", "n23"),
    ("torch.linalg.qr(x)[0]", "n23"), ("torch.linalg.qr(x)[1]", "n32"),
    ("(lambda u, s, v: (u * s.unsqueeze(-2)) @ v)(*torch.linalg.svd(x, full_matrices=False))", "n23"),
    ("torch.linalg.svd(x)[0].abs() + torch.linalg.svd(x)[2].abs()", "n33"), ("torch.linalg.svdvals(x)", "n23"),
    ("torch.linalg.eigvalsh(x + x.mT)", "n33"), ("torch.logdet(x @ x.mT)", "n33"),
    ("torch.linalg.solve(x, y)", "s3", "n3"), ("torch.linalg.cholesky(x @ x.mT + torch.eye(3, dtype=x.dtype), upper=True)", "n33"),
    ("op('cholesky')(x @ x.mT + torch.eye(3, dtype=x.dtype))", "n33"),
    ("torch.cholesky_solve(y, x.tril())", "s3", "n32"), ("torch.cholesky_solve(y, x.triu(), True)", "s3", "n32"),
    ("torch.cholesky_inverse(x.tril())", "s3"), ("torch.linalg.pinv(x)", "n23"),
    ("torch.linalg.pinv(x, rtol=torch.tensor(1e-12))", "n32"), ("torch.pinverse(x)", "n32"),
    ("torch.linalg.lstsq(x, y).solution", "n32", "n32"), ("torch.linalg.lstsq(x, y).solution", "n23", "n22"),
    ("torch.linalg.householder_product(x, y)", "n32", "n2"), ("op('triangular_solve')(y, x)[0]", "s3", "n32"),
    ("op('triangular_solve')(y, x, True, True)[0]", "s3", "n32"),
    ("sum(a.sum() for a in torch.linalg.lu(x)[1:])", "s3"), ("sum(a.sum() for a in torch.lu_unpack(x, torch.tensor([2, 3, 3]).int())[1:])", "n33"),
    ("torch.linalg.lu_solve(x, torch.tensor([2, 3, 3]).int(), y)", "s3", "n32"),
    ("torch.linalg.lu_solve(x, torch.tensor([2, 3, 3]).int(), y, adjoint=True)", "s3", "n32"),
    ("torch.linalg.lu_solve(x, torch.tensor([2, 3, 3]).int(), y, left=False)", "s3", "n23"),
    ("torch.linalg.lu_solve(x, torch.tensor([2, 3, 3]).int(), y, left=False, adjoint=True)", "s3", "n23"),
    ("torch.linalg.lu_factor(x)[0]", "s3"), ("torch.linalg.matrix_exp(x)", "n33"),
    ("torch.linalg.pinv(x)", "n32"), ("torch.linalg.matrix_norm(x, 'nuc')", "n32"),
    # indexing
    ("x.gather(1, I((2, 2), 3))", "n23"), ("x.scatter(1, P((2, 2), 3), y)", "n23", "n22"), ("x.scatter(1, P((2, 2), 3), 2.0)", "n23"),
    ("x.scatter_add(1, I((2, 2), 3), y)", "n23", "n22"),
    *[(f"x.scatter_reduce(1, I((2, 2), 3), y + 0.1, '{how}')", "d23", "d22") for how in ("sum", "mean", "amax", "amin")],
    ("x.scatter_reduce(1, P((2, 2), 3), y, 'prod')", "a23", "a22"),
    ("x.scatter_reduce(1, I((2, 2), 3), y, 'sum', include_self=False)", "n23", "n22"),
    ("torch.take(x, I((4,), 6))", "n23"), ("x.put(P((3,), 6), y)", "n23", "n3"), ("x.put(I((3,), 6), y, accumulate=True)", "n23", "n3"),
    ("x.index_select(1, I((4,), 3))", "n23"), ("x.index_add(1, I((4,), 3), y, alpha=2)", "n23", "n24"),
    ("x.index_copy(1, P((2,), 3), y)", "n23", "n22"), ("x.index_fill(1, P((2,), 3), 2.0)", "n23"),
    ("x.index_fill(1, P((2,), 3), y)", "n23", "n"),
    *[(f"x.index_reduce(1, I((2,), 3), y + 0.1, '{how}')", "d23", "d22") for how in ("mean", "amax", "amin")],
    ("x.index_reduce(1, P((2,), 3), y, 'prod')", "a23", "a22"),
    ("x[I((2,), 2), I((2,), 3)]", "n23"), ("x[:, I((2,), 3)]", "n23"), ("x[x > 0]", "n23"),
    ("x.index_put((P((2,), 2), I((2,), 3)), y)", "n23", "n2"), ("x.index_put((I((2,), 2),), y, accumulate=True)", "n23", "n3"),
    ("op('_index_put_impl')(x, [P((2,), 2)], y, False, False)", "n23", "n3"),
    ("put_row(x.clone(), y)", "n23", "n3"),
    # random: the draws are constants
    *[(f"x.clone().{call} * 0 + y", "n3", "n3") for call in (
        "uniform_()", "normal_()", "exponential_()", "cauchy_()", "log_normal_()", "geometric_(0.5)", "random_(1, 5)", "random_(5)", "random_()",
        "bernoulli_(0.5)",
    )],
    ("x.clone().bernoulli_(y / 2) * 0 + z", "n3", "p3", "n3"),
    ("torch.bernoulli(x / 2) * 0 + y", "p3", "n3"),
    ("torch.poisson(x) * 0 + y", "p3", "n3"),
    # activations
    *[(f"F.{call}", "a23") for call in (
        "relu(x)", "threshold(x, 0.1, 2.0)", "leaky_relu(x, 0.2)", "hardtanh(x, -0.7, 0.7)", "hardshrink(x, 0.2)", "softshrink(x, 0.2)", "gelu(x)",
        "gelu(x, approximate='tanh')", "silu(x)", "mish(x)", "elu(x, 0.7)", "celu(x, 0.7)", "selu(x)", "softplus(x, 2, 1.0)", "logsigmoid(x)",
        "hardsigmoid(x)", "hardswish(x)", "softmax(x, 1)", "log_softmax(x, 1)", "softsign(x)", "tanhshrink(x)", "relu6(x)",
        "rrelu(x, 0.1, 0.3, False)", "normalize(x)",
    )],
    ("F.glu(x, 1)", "n24"), ("F.prelu(x, y)", "a23", "n3"),
    ("F.leaky_relu(x * 1, 0.2, inplace=True)", "a3"), ("F.elu(x * 1, 0.7, inplace=True)", "a3"), ("F.relu(x * 1, inplace=True)", "a3"),
    ("F.celu(x * 1, 0.7, inplace=True)", "a3"), ("F.threshold(x * 1, 0.1, 2.0, inplace=True)", "a3"),
    ("op('_masked_softmax')(x, torch.tensor([[True, False, False], [False, False, True]]), 1, None)", "n23", "once"),
    # losses
    ("F.nll_loss(x, I((2,), 3))", "n23"), ("F.nll_loss(x, I((2,), 3), weight=torch.rand(3).double(), reduction='sum')", "n23"),
    ("F.nll_loss(x, I((2, 2, 2), 3), reduction='none')", "n2322"), ("F.nll_loss(x, I((1, 2, 2), 3))", "n1322"),
    *[(f"F.{name}(x, y, reduction='{how}')", "n23", "d23") for name in ("mse_loss", "smooth_l1_loss", "huber_loss", "l1_loss") for how in ("mean", "none")],
    ("F.soft_margin_loss(x, y.detach().sign())", "n23", "a23"), ("F.binary_cross_entropy(x / 2, y / 2)", "p23", "p23"),
    ("F.binary_cross_entropy(x / 2, y / 2, weight=torch.rand(3).double())", "p23", "p23"),
    ("F.binary_cross_entropy_with_logits(x, y)", "n23", "p23"),
    ("F.binary_cross_entropy_with_logits(x, y, pos_weight=torch.rand(3).double(), reduction='none')", "n23", "p23"),
    ("F.cross_entropy(x, I((2,), 3), label_smoothing=0.1)", "n23"), ("F.kl_div(x, y, reduction='batchmean')", "n23", "p23"),
    ("F.multi_margin_loss(x, I((2,), 3))", "d23"), ("F.multilabel_margin_loss(x, torch.tensor([[2, 0, -1], [1, -1, 0]]))", "d23"),
    ("F.ctc_loss(x.log_softmax(2), torch.tensor([[1, 2], [2, 1]]), (4, 4), (2, 2))", "n423", "once"),
    ("F.gaussian_nll_loss(x, y, z)", "n23", "n23", "p23"), ("F.triplet_margin_loss(x, y, z)", "n23", "n23", "n23"),
    ("F.cosine_similarity(x, y)", "n23", "n23"), ("F.pairwise_distance(x, y)", "n23", "n23"),
    # layers
    ("F.linear(x, y, z)", "n23", "n43", "n4"), ("F.bilinear(x, y, z)", "n23", "n24", "n234"),
    ("F.conv1d(x, y, z, stride=2, padding=1)", "n125", "n323", "n3"),
    ("F.conv2d(x, y, z, padding=1, dilation=2)", "n1244", "n2222", "n2"), ("F.conv2d(x, y, groups=2)", "n1233", "n2122"),
    ("F.conv3d(x, y)", "n11222", "n11222"), ("F.conv_transpose2d(x, y, z, stride=2)", "n1222", "n2122", "n1"),
    ("F.layer_norm(x, (3,), y, z)", "n23", "n3", "n3"), ("F.layer_norm(x, (3,))", "n23"),
    ("F.batch_norm(x, None, None, y, z, True)", "n423", "n2", "n2"),
    ("F.batch_norm(x, torch.zeros(2).double(), torch.ones(2).double(), y, z, False)", "n423", "n2", "n2"),
    ("op('_native_batch_norm_legit')(x, y, z, torch.zeros(2).double(), torch.ones(2).double(), True, 0.1, 1e-5)[0]", "n423", "n2", "n2"),
    ("op('_native_batch_norm_legit.no_stats')(x, y, z, True, 0.1, 1e-5)[0]", "n423", "n2", "n2"),
    ("op('_batch_norm_with_update')(x, y, z, torch.zeros(2).double(), torch.ones(2).double(), 0.1, 1e-5)[0]", "n423", "n2", "n2"),
    ("torch.nextafter(x, y)", "n3", "n3"),
    ("F.instance_norm(x)", "n224"), ("F.group_norm(x, 2, y, z)", "n242", "n4", "n4"), ("F.rms_norm(x, (3,), y)", "n23", "n3"),
    ("torch._weight_norm(x, y, 0)", "n23", "a21"),
    ("F.embedding(I((4,), 3), x)", "n32"), ("F.embedding(torch.tensor([0, 2, 2]), x, padding_idx=1)", "n32"),
    *[(f"F.embedding_bag(I((4,), 3), x, torch.tensor([0, 2]), mode='{mode}')", "d32", *more) for mode, more in (("sum", ()), ("mean", ()), ("max", ("once",)))],
    ("F.embedding_bag(I((4,), 3), x, torch.tensor([0, 2]), mode='sum', per_sample_weights=y)", "n32", "n4"),
    ("F.dropout(x, 0.0)", "n23"), ("op('native_dropout')(x, 0.0, True)[0]", "n23"),
    ("F.scaled_dot_product_attention(x, y, z)", "n1123", "n1143", "n1143"),
    ("F.scaled_dot_product_attention(x, y, z, is_causal=True)", "n1133", "n1133", "n1133"),
    ("F.scaled_dot_product_attention(x, y, z, attn_mask=w)", "n1123", "n1143", "n1143", "n24"),
    # padding, pooling, images
    ("F.pad(x, (1, 2), value=3.0)", "n23"), ("F.pad(x, (-1, 1, 0, 2))", "n23"), ("F.pad(x, (1, 1), mode='circular')", "n123"),
    *[(f"F.pad(x, (1, 2), mode='{mode}')", "n124") for mode in ("reflect", "replicate")],
    *[(f"F.pad(x, (1, 2, 0, 1), mode='{mode}')", "n1133") for mode in ("reflect", "replicate")],
    *[(f"F.pad(x, (1, 0, 0, 1, 1, 1), mode='{mode}')", "n11222") for mode in ("reflect", "replicate")],
    ("F.max_pool1d(x, 2)", "d125"), ("F.max_pool2d(x, 2, stride=1, padding=1)", "d1144"), ("F.max_pool3d(x, 2)", "d11444"),
    ("F.max_unpool2d(x, torch.tensor([[[[0, 3], [8, 11]]]]), 2)", "n1122"),
    ("F.max_unpool3d(x, torch.tensor([[[[[0, 2]]]]]), (1, 1, 2))", "n11112"),
    ("F.avg_pool1d(x, 2)", "n125"), ("F.avg_pool2d(x, 2, stride=1, padding=1, count_include_pad=False)", "n1133"), ("F.avg_pool3d(x, 2)", "n11222"),
    ("F.adaptive_avg_pool1d(x, 2)", "n125"), ("F.adaptive_avg_pool2d(x, (2, 3))", "n1145"), ("F.adaptive_avg_pool3d(x, 2)", "n11343"),
    ("F.adaptive_max_pool1d(x, 2)", "d125"), ("F.adaptive_max_pool2d(x, (2, 3))", "d1145"), ("F.adaptive_max_pool3d(x, 2)", "d11343"),
    ("F.fractional_max_pool2d(x, 2, 2, _random_samples=torch.full((1, 1, 2), 0.3).double())", "d1155"),
    ("F.fractional_max_pool3d(x, 2, 2, _random_samples=torch.full((1, 1, 3), 0.3).double())", "d11444"),
    ("F.lp_pool2d(x, 2.0, 2)", "p1144"),
    ("F.unfold(x, 2, padding=1)", "n1133"), ("F.fold(x, (3, 3), 2)", "n144"), ("F.pixel_shuffle(x, 2)", "n1422"), ("F.pixel_unshuffle(x, 2)", "n1144"),
    ("torch.channel_shuffle(x, 2)", "n1422"),
    *[(f"F.interpolate(x, size=5, mode='{mode}')", "n123") for mode in ("nearest", "nearest-exact", "linear")],
    *[(f"F.interpolate(x, size=(4, 5), mode='{mode}')", "n1133") for mode in ("nearest", "nearest-exact", "bilinear", "bicubic")],
    *[(f"F.interpolate(x, size=(2, 3, 2), mode='{mode}')", "n11222") for mode in ("nearest", "nearest-exact", "trilinear")],
    *[(f"F.interpolate(x, size=(2, 3), mode='{mode}', antialias=True)", "n1144") for mode in ("bilinear", "bicubic", "lanczos")],
    *[(f"op('upsample_{name}')(x, {args})", shape) for name, args, shape in (
        ("nearest1d", "(5,), None", "n123"), ("nearest2d", "(4, 5), None, None", "n1133"), ("nearest3d", "(2, 3, 2), None, None, None", "n11222"),
        ("linear1d", "(5,), False, None", "n123"), ("bilinear2d", "(4, 5), True, None, None", "n1133"),
        ("trilinear3d", "(2, 3, 2), False, None, None, None", "n11222"), ("bicubic2d", "(4, 5), False, None, None", "n1133"),
    )],
    *[(f"op('_upsample_{name}')(x, {args})", shape) for name, args, shape in (
        ("nearest_exact1d", "(5,), None", "n123"), ("nearest_exact2d", "(4, 5), None, None", "n1133"),
        ("nearest_exact3d", "(2, 3, 2), None, None, None", "n11222"), ("bilinear2d_aa", "(2, 3), False, None, None", "n1144"),
        ("bicubic2d_aa", "(2, 3), False, None, None", "n1144"), ("lanczos2d_aa", "(2, 3), False, None, None", "n1144"),
    )],
    *[(f"F.grid_sample(x, y / 2, mode='{mode}', align_corners=False)", "n1133", "u1222") for mode in ("bilinear", "bicubic")],
    ("F.grid_sample(x, y / 2, align_corners=True)", "n11222", "u12223"),
    ("F.affine_grid(x, (1, 1, 2, 3), align_corners=False)", "n123"),
    # transforms and sequences
    ("torch.fft.fft(x)", "c4"), ("torch.fft.rfft(x)", "n4"), ("torch.fft.irfft(x)", "c4"), ("torch.fft.ifft2(x)", "c23"),
    ("nn.utils.rnn.pack_padded_sequence(x, torch.tensor([3, 2]), batch_first=True).data", "n232"),
    ("cell(nn.LSTM(2, 3), x)", "n322"), ("cell(nn.GRU(2, 3), x)", "n322"), ("cell(nn.RNN(2, 3), x)", "n322"),
]  # fmt: skip

# Ops that have a derivative and no row, and why.
WITHOUT_ROW = {
    "_ctc_loss_backward": "its derivative only says that there is none, as in torch",
    "bernoulli.p": "its derivative only says that there is none, as in torch",
    "binomial": "its derivative only says that there is none, as in torch",
    "detach_copy": "its derivative only says that there is none, as in torch",
    "heaviside": "its derivative only says that there is none, as in torch",
    "_standard_gamma": "the derivative of a draw is implicit: differences of draws do not show it",
    "_sample_dirichlet": "the derivative of a draw is implicit: differences of draws do not show it",
    "normal.Tensor_Tensor": "a draw counts as a constant, as in torch, though it moves with its parameters",
    "normal.Tensor_float": "a draw counts as a constant, as in torch, though it moves with its parameters",
    "normal.float_Tensor": "a draw counts as a constant, as in torch, though it moves with its parameters",
    "_grouped_mm": "not for float64; test_ops_grouped_matmul compares both derivatives with exact differences of integers",
    "mkldnn_rnn_layer": "for float32 only; the layers' tests hold it against torch",
    "floor_divide": "refused, as in torch",
    "scatter.value_reduce": "refused, as in torch",
    **dict.fromkeys(
        (
            "fake_quantize_per_tensor_affine_cachemask",
            "fake_quantize_per_tensor_affine_cachemask_backward",
            "_fake_quantize_per_tensor_affine_cachemask_tensor_qparams",
            "fake_quantize_per_channel_affine_cachemask",
            "fake_quantize_per_channel_affine_cachemask_backward",
        ),
        "gradients pass straight through rounding, as in torch: differences do not show that",
    ),
    "scatter.reduce": "refused, as in torch; scatter_reduce has one",
}


def _distinct(shape: tuple) -> torch.Tensor:
    """Numbers whose distances are far greater than the steps of the finite differences."""
    count = torch.Size(shape).numel()
    return (torch.randperm(count).to(D) - count / 2 + 0.3).reshape(shape) * 0.3


KINDS: dict[str, Any] = {
    "n": lambda shape: torch.randn(shape, dtype=D),
    "p": lambda shape: torch.rand(shape, dtype=D) + 0.3,
    "u": lambda shape: torch.rand(shape, dtype=D) * 1.8 - 0.9,
    "d": _distinct,
    "a": lambda shape: (torch.rand(shape, dtype=D) + 0.3) * torch.randn(shape).sign().to(D),
    "s": lambda shape: (
        torch.randn(shape * 2, dtype=D) * 0.1 + torch.diag(torch.arange(1.0, shape[0] + 1).to(D))
    ),
    "c": lambda shape: torch.randn(shape, dtype=torch.complex128),
}


def index(shape: tuple, limit: int) -> torch.Tensor:
    """Any places below `limit`."""
    return torch.randint(0, limit, shape, generator=torch.Generator().manual_seed(1))


def places(shape: tuple, limit: int) -> torch.Tensor:
    """Places below `limit`, none twice in a row of the last dimension."""
    rows = torch.Size(shape[:-1]).numel()
    made = [
        torch.randperm(limit, generator=torch.Generator().manual_seed(i))[: shape[-1]] for i in range(rows)
    ]
    return torch.stack(made).reshape(shape)


def put_row(x: torch.Tensor, row: torch.Tensor) -> torch.Tensor:
    """A write through a view."""
    x[1] = row
    x[:, 0] *= 2
    return x


def cell(layer: Any, x: torch.Tensor) -> torch.Tensor:
    """A recurrent layer with its own weights, the same at each call."""
    for number, parameter in enumerate(layer.parameters()):
        values = torch.randn(parameter.shape, generator=torch.Generator().manual_seed(number))
        parameter.data = values.to(D) * 0.5
    return layer.double()(x)[0]


SPACE = {
    "torch": torch, "F": F, "nn": nn, "I": index, "P": places, "put_row": put_row, "cell": cell,
    "op": lambda name: _dispatch.OPS[name].entry,
}  # fmt: skip


def sample(row: tuple) -> tuple[Any, tuple]:
    """The function of a row and its inputs, the same at each call."""
    torch.manual_seed(zlib.crc32(row[0].encode()))
    kinds = [kind for kind in row[1:] if kind != "once"]
    inputs = tuple(KINDS[kind[0]](tuple(map(int, kind[1:]))).requires_grad_() for kind in kinds)
    code = compile(f"lambda {', '.join('xyzw'[: len(inputs)])}: {row[0]}", row[0], "eval")
    function = eval(code, SPACE)

    def seeded(*given: Any) -> Any:
        torch.manual_seed(0)
        return function(*given)

    return seeded, inputs
