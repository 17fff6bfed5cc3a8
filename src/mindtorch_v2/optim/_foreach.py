"""Optimiser updates on lists of tensors (`foreach=True`), in place, by `torch._foreach_*`.

Each function is the update of the file it is named after, for tensors of one dtype; `by_dtype` makes such
lists. Values per tensor (its number of steps, its corrections) are lists of the same length.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import mindtorch_v2 as torch

from .optimizer import _get_value

Lists = tuple[list[Any], ...]


def by_dtype(*lists: list[Any]) -> Iterator[Lists]:
    """The lists split into groups in which the tensors of the first list have one dtype. Empty lists stay
    empty.
    """
    indices_by_dtype: dict[Any, list[int]] = {}
    for index, tensor in enumerate(lists[0]):
        indices_by_dtype.setdefault(tensor.dtype, []).append(index)
    if len(indices_by_dtype) < 2:
        if not indices_by_dtype:
            return
        yield tuple(list(tensors) for tensors in lists)
        return
    for indices in indices_by_dtype.values():
        yield tuple([tensors[index] for index in indices] if tensors else [] for tensors in lists)


def _views_as_real(*lists: list[Any]) -> None:
    """Replace complex tensors in the lists by real views."""
    for tensors in lists:
        for place, tensor in enumerate(tensors):
            if tensor.is_complex():
                tensors[place] = torch.view_as_real(tensor)


def _count(steps: list[Any]) -> None:
    torch._foreach_add_(steps, torch.tensor(1.0, device="cpu"), alpha=1.0)


def _counts(steps: list[Any]) -> list[Any]:
    return [_get_value(step) for step in steps]


def _decayed(grads: list[Any], params: list[Any], weight_decay: Any, writable: bool) -> list[Any]:
    """Gradients with weight decay; in place if `writable`."""
    if writable:
        torch._foreach_add_(grads, params, alpha=weight_decay)
        return grads
    return list(torch._foreach_add(grads, params, alpha=weight_decay))


def _negated(grads: list[Any], maximize: bool) -> list[Any]:
    return list(torch._foreach_neg(grads)) if maximize else grads


def sgd(
    params: list[Any],
    grads: list[Any],
    buffers: list[Any],
    *,
    weight_decay: Any,
    momentum: float,
    lr: Any,
    dampening: float,
    nesterov: bool,
    maximize: bool,
) -> None:
    """SGD. Buffers that are None are created in their list."""
    grads = _negated(grads, maximize)
    if weight_decay != 0:
        grads = _decayed(grads, params, weight_decay, maximize)
    if momentum != 0:
        if all(buffer is not None for buffer in buffers):
            torch._foreach_mul_(buffers, momentum)
            torch._foreach_add_(buffers, grads, alpha=1 - dampening)
        else:
            for index, buffer in enumerate(buffers):
                if buffer is None:
                    buffers[index] = grads[index].detach().clone()
                else:
                    buffer.mul_(momentum).add_(grads[index], alpha=1 - dampening)
        if nesterov:
            torch._foreach_add_(grads, buffers, alpha=momentum)
        else:
            grads = buffers
    if any(grad.is_sparse for grad in grads):
        for param, grad in zip(params, grads):
            param.add_(grad, alpha=-lr)
    else:
        torch._foreach_add_(params, grads, alpha=-lr)


def adam(
    params: list[Any],
    grads: list[Any],
    exp_avgs: list[Any],
    exp_avg_sqs: list[Any],
    max_exp_avg_sqs: list[Any],
    steps: list[Any],
    *,
    beta1: Any,
    beta2: Any,
    lr: Any,
    weight_decay: Any,
    eps: float,
    maximize: bool,
    decoupled_weight_decay: bool,
) -> None:
    """Adam; AMSGrad if there are maxima of the squares, AdamW if the decay is decoupled."""
    _views_as_real(params, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs)
    grads = _negated(grads, maximize)
    _count(steps)
    if weight_decay != 0:
        if decoupled_weight_decay:
            torch._foreach_mul_(params, 1 - lr * weight_decay)
        else:
            grads = _decayed(grads, params, weight_decay, maximize)
    torch._foreach_lerp_(exp_avgs, grads, 1 - beta1)
    torch._foreach_mul_(exp_avg_sqs, beta2)
    torch._foreach_addcmul_(exp_avg_sqs, grads, grads, 1 - beta2)
    sizes = [-(lr / (1 - beta1**count)) for count in _counts(steps)]
    scales = [(1 - beta2**count) ** 0.5 for count in _counts(steps)]
    if max_exp_avg_sqs:
        torch._foreach_maximum_(max_exp_avg_sqs, exp_avg_sqs)
        exp_avg_sqs = max_exp_avg_sqs
    roots = torch._foreach_sqrt(exp_avg_sqs)
    torch._foreach_div_(roots, scales)
    torch._foreach_add_(roots, eps)
    torch._foreach_addcdiv_(params, exp_avgs, roots, sizes)


def adamax(
    params: list[Any],
    grads: list[Any],
    exp_avgs: list[Any],
    exp_infs: list[Any],
    steps: list[Any],
    *,
    eps: float,
    beta1: float,
    beta2: float,
    lr: Any,
    weight_decay: float,
    maximize: bool,
) -> None:
    """Adamax."""
    _views_as_real(params, grads, exp_avgs, exp_infs)
    grads = _negated(grads, maximize)
    _count(steps)
    if weight_decay != 0:
        grads = _decayed(grads, params, weight_decay, maximize)
    torch._foreach_lerp_(exp_avgs, grads, 1 - beta1)
    torch._foreach_mul_(exp_infs, beta2)
    if maximize or weight_decay != 0:
        torch._foreach_abs_(grads)
    else:
        grads = list(torch._foreach_abs(grads))
    torch._foreach_add_(grads, eps)
    torch._foreach_maximum_(exp_infs, grads)
    sizes = [-(lr / (1 - beta1**count)) for count in _counts(steps)]
    torch._foreach_addcdiv_(params, exp_avgs, exp_infs, sizes)


def nadam(
    params: list[Any],
    grads: list[Any],
    exp_avgs: list[Any],
    exp_avg_sqs: list[Any],
    mu_products: list[Any],
    steps: list[Any],
    *,
    beta1: float,
    beta2: float,
    lr: Any,
    weight_decay: float,
    momentum_decay: float,
    eps: float,
    maximize: bool,
    decoupled_weight_decay: bool,
) -> None:
    """NAdam."""
    _views_as_real(params, grads, exp_avgs, exp_avg_sqs)
    grads = _negated(grads, maximize)
    _count(steps)
    if weight_decay != 0:
        if decoupled_weight_decay:
            torch._foreach_mul_(params, 1 - lr * weight_decay)
        else:
            grads = _decayed(grads, params, weight_decay, maximize)
    torch._foreach_lerp_(exp_avgs, grads, 1 - beta1)
    torch._foreach_mul_(exp_avg_sqs, beta2)
    torch._foreach_addcmul_(exp_avg_sqs, grads, grads, 1 - beta2)
    roots = torch._foreach_sqrt(exp_avg_sqs)
    scales = [(1 - beta2**count) ** 0.5 for count in _counts(steps)]
    mus = [beta1 * (1.0 - 0.5 * 0.96 ** (count * momentum_decay)) for count in _counts(steps)]
    next_mus = [beta1 * (1.0 - 0.5 * 0.96 ** ((count + 1) * momentum_decay)) for count in _counts(steps)]
    torch._foreach_mul_(mu_products, mus)
    torch._foreach_div_(roots, scales)
    torch._foreach_add_(roots, eps)
    grad_scales = [-(lr * (1.0 - mu) / (1.0 - product)) for mu, product in zip(mus, _counts(mu_products))]
    momentum_scales = [
        -(lr * mu / (1.0 - product * mu)) for mu, product in zip(next_mus, _counts(mu_products))
    ]
    torch._foreach_addcdiv_(params, grads, roots, grad_scales)
    torch._foreach_addcdiv_(params, exp_avgs, roots, momentum_scales)


def radam(
    params: list[Any],
    grads: list[Any],
    exp_avgs: list[Any],
    exp_avg_sqs: list[Any],
    steps: list[Any],
    *,
    beta1: float,
    beta2: float,
    lr: Any,
    weight_decay: float,
    eps: float,
    maximize: bool,
    decoupled_weight_decay: bool,
) -> None:
    """RAdam: a tensor whose variance estimate is not reliable yet is updated by its mean only."""
    _views_as_real(params, grads, exp_avgs, exp_avg_sqs)
    grads = _negated(grads, maximize)
    _count(steps)
    rho_inf = 2 / (1 - beta2) - 1
    rhos = [
        rho_inf - 2 * _get_value(step) * (beta2 ** _get_value(step)) / (1 - beta2 ** _get_value(step))
        for step in steps
    ]
    if weight_decay != 0:
        if decoupled_weight_decay:
            torch._foreach_mul_(params, 1 - lr * weight_decay)
        else:
            grads = _decayed(grads, params, weight_decay, maximize)
    torch._foreach_lerp_(exp_avgs, grads, 1 - beta1)
    torch._foreach_mul_(exp_avg_sqs, beta2)
    torch._foreach_addcmul_(exp_avg_sqs, grads, grads, 1 - beta2)
    rectifications = [
        ((rho - 4) * (rho - 2) * rho_inf / ((rho_inf - 4) * (rho_inf - 2) * rho)) ** 0.5 if rho > 5 else 0
        for rho in rhos
    ]
    sizes = [-(lr / (1 - beta1**count)) for count in _counts(steps)]
    unrectified_sizes = [
        0 if rectification > 0 else size for rectification, size in zip(rectifications, sizes)
    ]
    scales = [
        (1 - beta2**count) ** 0.5 * size * rectification
        for count, size, rectification in zip(_counts(steps), sizes, rectifications)
    ]
    roots = torch._foreach_sqrt(exp_avg_sqs)
    torch._foreach_add_(roots, eps)
    torch._foreach_div_(roots, scales)
    torch._foreach_reciprocal_(roots)
    torch._foreach_add_(roots, unrectified_sizes)
    torch._foreach_addcmul_(params, exp_avgs, roots)


def rmsprop(
    params: list[Any],
    grads: list[Any],
    square_avgs: list[Any],
    grad_avgs: list[Any],
    buffers: list[Any],
    steps: list[Any],
    *,
    lr: Any,
    alpha: float,
    eps: float,
    weight_decay: float,
    momentum: float,
    centered: bool,
    maximize: bool,
) -> None:
    """RMSprop."""
    _views_as_real(params, grads, square_avgs, grad_avgs, buffers)
    grads = _negated(grads, maximize)
    _count(steps)
    if weight_decay != 0:
        grads = _decayed(grads, params, weight_decay, maximize)
    torch._foreach_mul_(square_avgs, alpha)
    torch._foreach_addcmul_(square_avgs, grads, grads, value=1 - alpha)
    if centered:
        torch._foreach_lerp_(grad_avgs, grads, 1 - alpha)
        roots = torch._foreach_addcmul(square_avgs, grad_avgs, grad_avgs, value=-1)
        torch._foreach_sqrt_(roots)
    else:
        roots = torch._foreach_sqrt(square_avgs)
    torch._foreach_add_(roots, eps)
    if momentum > 0:
        torch._foreach_mul_(buffers, momentum)
        torch._foreach_addcdiv_(buffers, grads, roots)
        torch._foreach_add_(params, buffers, alpha=-lr)
    else:
        torch._foreach_addcdiv_(params, grads, roots, value=-lr)


def adagrad(
    params: list[Any],
    grads: list[Any],
    sums: list[Any],
    steps: list[Any],
    *,
    lr: Any,
    weight_decay: float,
    lr_decay: float,
    eps: float,
    maximize: bool,
) -> None:
    """Adagrad for dense gradients."""
    _views_as_real(params, grads, sums)
    grads = _negated(grads, maximize)
    _count(steps)
    if weight_decay != 0:
        grads = _decayed(grads, params, weight_decay, maximize)
    sizes = [-lr / (1 + (count - 1) * lr_decay) for count in _counts(steps)]
    torch._foreach_addcmul_(sums, grads, grads, value=1)
    roots = torch._foreach_sqrt(sums)
    torch._foreach_add_(roots, eps)
    if weight_decay != 0 or maximize:
        torch._foreach_mul_(grads, sizes)
    else:
        grads = list(torch._foreach_mul(grads, sizes))
    torch._foreach_addcdiv_(params, grads, roots)


def adadelta(
    params: list[Any],
    grads: list[Any],
    square_avgs: list[Any],
    acc_deltas: list[Any],
    steps: list[Any],
    *,
    lr: Any,
    rho: float,
    eps: float,
    weight_decay: float,
    maximize: bool,
) -> None:
    """Adadelta."""
    _views_as_real(params, grads, square_avgs, acc_deltas)
    _count(steps)
    grads = _negated(grads, maximize)
    if weight_decay != 0:
        grads = _decayed(grads, params, weight_decay, maximize)
    torch._foreach_mul_(square_avgs, rho)
    torch._foreach_addcmul_(square_avgs, grads, grads, value=1 - rho)
    roots = torch._foreach_add(square_avgs, eps)
    torch._foreach_sqrt_(roots)
    deltas = torch._foreach_add(acc_deltas, eps)
    torch._foreach_sqrt_(deltas)
    torch._foreach_div_(deltas, roots)
    torch._foreach_mul_(deltas, grads)
    torch._foreach_mul_(acc_deltas, rho)
    torch._foreach_addcmul_(acc_deltas, deltas, deltas, value=1 - rho)
    torch._foreach_add_(params, deltas, alpha=-lr)


def asgd(
    params: list[Any],
    grads: list[Any],
    axs: list[Any],
    mus: list[Any],
    etas: list[Any],
    steps: list[Any],
    *,
    lambd: float,
    lr: Any,
    t0: float,
    alpha: float,
    weight_decay: float,
    maximize: bool,
) -> None:
    """ASGD."""
    _views_as_real(params, grads, axs)
    grads = _negated(grads, maximize)
    _count(steps)
    writable = maximize
    if weight_decay != 0:
        grads, writable = _decayed(grads, params, weight_decay, writable), True
    moves = _decayed(grads, params, lambd, writable)
    torch._foreach_addcmul_(params, moves, etas, value=-1)
    moves = list(torch._foreach_sub(params, axs))
    torch._foreach_addcmul_(axs, moves, mus)
    new_etas = [torch.as_tensor(lr / ((1 + lambd * lr * step) ** alpha)) for step in steps]
    new_mus = [torch.as_tensor(1 / max(1, count - t0)) for count in _counts(steps)]
    torch._foreach_copy_(etas, new_etas)
    torch._foreach_copy_(mus, new_mus)


def rprop(
    params: list[Any],
    grads: list[Any],
    prevs: list[Any],
    step_sizes: list[Any],
    steps: list[Any],
    *,
    step_size_min: float,
    step_size_max: float,
    etaminus: float,
    etaplus: float,
    maximize: bool,
) -> None:
    """Rprop."""
    _views_as_real(params, grads, prevs, step_sizes)
    _count(steps)
    signs = torch._foreach_mul(grads, prevs)
    if maximize:
        torch._foreach_neg_(signs)
    torch._foreach_copy_(prevs, grads)
    if maximize:
        torch._foreach_neg_(prevs)
    torch._foreach_sign_(signs)
    for sign in signs:
        sign[sign.gt(0)] = etaplus
        sign[sign.lt(0)] = etaminus
        sign[sign.eq(0)] = 1
    torch._foreach_mul_(step_sizes, signs)
    for step_size in step_sizes:
        step_size.clamp_(step_size_min, step_size_max)
    # An element whose gradient changed its sign is not updated in this step.
    for prev, sign in zip(prevs, signs):
        prev.copy_(torch.where(sign.eq(etaminus), 0, prev))
    torch._foreach_addcmul_(params, [prev.sign() for prev in prevs], step_sizes, value=-1)


def adafactor(
    params: list[Any],
    grads: list[Any],
    row_vars: list[Any],
    col_vars: list[Any],
    variances: list[Any],
    steps: list[Any],
    *,
    d: float,
    lr: Any,
    beta2_decay: float,
    weight_decay: float,
    eps1: float,
    eps2: float,
    maximize: bool,
) -> None:
    """Adafactor for matrices (with a row and a column variance) or for vectors (with one variance)."""
    grads = _negated(grads, maximize)
    _count(steps)
    decays = [_get_value(step) ** beta2_decay for step in steps]
    relative = [min(lr, 1 / (count**0.5)) for count in _counts(steps)]
    sizes = [
        max(eps2, param.norm(2).item() / param.numel() ** 0.5) * size for param, size in zip(params, relative)
    ]
    if weight_decay != 0:
        torch._foreach_mul_(params, 1 - lr * weight_decay)
    if grads[0].dim() > 1:
        for dim, averages in ((-1, row_vars), (-2, col_vars)):
            squares = [torch.norm(grad, dim=dim, keepdim=True) for grad in grads]
            torch._foreach_mul_(squares, squares)
            torch._foreach_div_(squares, [grad.size(dim) for grad in grads])
            torch._foreach_lerp_(averages, squares, decays)
        updates = [row @ column for row, column in zip(row_vars, col_vars)]
        means = [row.mean(dim=-2, keepdim=True) for row in row_vars]
        torch._foreach_clamp_min_(means, eps1)
        torch._foreach_div_(updates, means)
    else:
        squares = torch._foreach_mul(grads, grads)
        torch._foreach_lerp_(variances, squares, decays)
        updates = [variance.clone() for variance in variances]
    torch._foreach_clamp_min_(updates, eps1 * eps1)
    torch._foreach_rsqrt_(updates)
    torch._foreach_mul_(updates, grads)
    moves = [
        -size / max(1.0, update.norm(2).item() / (update.numel() ** 0.5 * d))
        for size, update in zip(sizes, updates)
    ]
    torch._foreach_mul_(updates, moves)
    torch._foreach_add_(params, updates)


def apply_by_dtype(update: Callable[..., None], *lists: list[Any], **options: Any) -> None:
    """Apply an update to each group of tensors of one dtype."""
    if lists[0]:
        for group in by_dtype(*lists):
            update(*group, **options)


def fused(name: str, lists: Lists, grad_scale: Any, found_inf: Any, **options: Any) -> None:
    """Apply `torch.<name>` to each group of tensors of one dtype; the last list contains the step counts."""
    if not lists[0]:
        return
    for group in by_dtype(*lists):
        scale, inf = _to_device(group[0][0], grad_scale, found_inf)
        torch._foreach_add_(group[-1], 1)
        getattr(torch, name)(*group, grad_scale=scale, found_inf=inf, **options)
        if inf is not None:
            torch._foreach_sub_(group[-1], [inf] * len(group[-1]))


def _to_device(param: Any, *tensors: Any) -> list[Any]:
    return [None if tensor is None else tensor.to(param.device, non_blocking=True) for tensor in tensors]


def fused_sgd(
    params: list[Any], grads: list[Any], buffers: list[Any], grad_scale: Any, found_inf: Any, **options: Any
) -> None:
    """SGD in one op. Buffers that are None are created in their list."""
    momentum = options["momentum"]
    first = momentum != 0 and all(buffer is None for buffer in buffers)
    if first:
        for index, grad in enumerate(grads):
            buffers[index] = torch.empty_like(grad)
    for group in by_dtype(params, grads, buffers) if params else ():
        scale, inf = _to_device(params[0], grad_scale, found_inf)
        torch._fused_sgd_(*group[:2], group[2] if momentum != 0 else [], grad_scale=scale, found_inf=inf,
                          is_first_step=first, **options)  # fmt: skip
