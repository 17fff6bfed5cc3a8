"""Connectionist temporal classification: log probabilities and targets in, the loss of all alignments out.

Forward and backward sums go step by step in time, for the whole batch at once. States are the targets with a blank around each.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _dispatch
from .._dispatch import composite, function, op
from .._dtype import BY_NUM, int64
from ._children import child
from ._namespace import functions as F

_WHERE = "(while checking arguments for ctc_loss_allocate_outputs)"


def _check(log_probs: np.ndarray, targets: np.ndarray, inputs: tuple, lengths: tuple, blank: int) -> None:
    if not log_probs.size:
        raise RuntimeError("log_probs tensor must not be empty")
    if log_probs.dtype not in (np.float32, np.float64):
        raise NotImplementedError(
            f"\"ctc_loss_cpu\" not implemented for '{BY_NUM[log_probs.dtype.num]._abbr}'"
        )
    for dims, name, x, wanted in (
        ((3,), "log_probs", log_probs, "3-dimensional tensor"),
        ((1, 2), "targets", targets, "1 to 2 dimensions"),
    ):
        if x.ndim not in dims:
            number = 1 if name == "log_probs" else 2
            raise RuntimeError(
                f"Expected {wanted}, but got {x.ndim}-dimensional tensor for argument #{number} '{name}' {_WHERE}"
            )
    steps, batch, labels = log_probs.shape
    if not 0 <= blank < labels:
        raise RuntimeError("blank must be in label range")
    if len(inputs) != batch:
        raise RuntimeError("input_lengths must be of size batch_size")
    if len(lengths) != batch:
        raise RuntimeError("target_lengths must be of size batch_size")
    for name, values in (("target_lengths", lengths), ("input_lengths", inputs)):
        if min(values) < 0:
            raise RuntimeError(
                f"Expected {name} to have value at least 0, but got value {min(values)} {_WHERE}"
            )
    _check_targets(targets.shape, batch, lengths)
    if max(inputs) > steps:
        raise RuntimeError(
            f"Expected input_lengths to have value at most {steps}, but got value {max(inputs)} {_WHERE}"
        )


def _check_targets(shape: tuple, batch: int, lengths: tuple) -> None:
    tail = f"for argument #2 'targets' {_WHERE}"
    first = batch if len(shape) == 2 else sum(lengths)
    if shape[0] != first:
        raise RuntimeError(
            f"Expected tensor to have size {first} at dimension 0, but got size {shape[0]} {tail}"
        )
    if len(shape) == 2 and shape[1] < max(lengths):
        raise RuntimeError(
            f"Expected tensor to have size at least {max(lengths)} at dimension 1, but got size {shape[1]} {tail}"
        )


class States:
    """The states of each sequence: labels [batch, states], which of them exist, and which may follow the last but one."""

    def __init__(self, targets: np.ndarray, lengths: tuple, blank: int, labels: int) -> None:
        batch, longest = len(lengths), max(lengths)
        ends = np.asarray(lengths, np.int64)
        inside = np.arange(longest) < ends[:, None]
        padded = np.zeros((batch, longest), np.int64)
        padded[inside] = targets if targets.ndim == 1 else targets[:, :longest][inside]
        if padded.size and (padded.min() < 0 or padded.max() >= labels):
            raise RuntimeError(
                f"ctc_loss: targets must be in [0, {labels - 1}], got values from {padded.min()} to {padded.max()}"
            )
        self.labels = np.full((batch, 2 * longest + 1), blank, np.int64)
        self.labels[:, 1::2] = padded
        self.exist = np.arange(2 * longest + 1) <= 2 * ends[:, None]
        self.skips = np.zeros(self.labels.shape, bool)
        self.skips[:, 3::2] = padded[:, 1:] != padded[:, :-1]
        self.last = 2 * ends

    def log_probs(self, log_probs: np.ndarray) -> np.ndarray:
        """Log probabilities of each state's label, [time, batch, states]."""
        return np.take_along_axis(log_probs.astype(np.float64, copy=False), self.labels[None], 2)


def _shifted(values: np.ndarray, by: int) -> np.ndarray:
    """Values of the states `by` before (after, if negative); -inf where there are none."""
    made = np.full(values.shape, -np.inf)
    if by > 0:
        made[:, by:] = values[:, :-by]
    else:
        made[:, :by] = values[:, -by:]
    return made


def forward_sums(observed: np.ndarray, states: States) -> np.ndarray:
    """Log sums over all alignments up to each state at each time."""
    sums = np.full(observed.shape, -np.inf)
    sums[0, :, :2] = observed[0, :, :2]
    sums[0][~states.exist] = -np.inf
    for t in range(1, len(observed)):
        before = sums[t - 1]
        total = np.logaddexp(before, _shifted(before, 1))
        total = np.logaddexp(total, np.where(states.skips, _shifted(before, 2), -np.inf))
        sums[t] = np.where(states.exist, total + observed[t], -np.inf)
    return sums


def backward_sums(observed: np.ndarray, states: States, inputs: np.ndarray) -> np.ndarray:
    """Log sums over all alignments from each state at each time to the end of its sequence."""
    sums = np.full(observed.shape, -np.inf)
    numbers = np.arange(observed.shape[2])
    final = (numbers == states.last[:, None]) | (numbers == states.last[:, None] - 1)
    skipped = np.zeros_like(states.skips)
    skipped[:, :-2] = states.skips[:, 2:]
    following = np.full(observed.shape[1:], -np.inf)
    for t in reversed(range(len(observed))):
        total = np.logaddexp(following, _shifted(following, -1))
        total = np.logaddexp(total, np.where(skipped, _shifted(following, -2), -np.inf))
        ending = inputs == t + 1
        total[ending] = np.where(final[ending], 0, -np.inf)
        following = sums[t] = np.where(states.exist, total + observed[t], -np.inf)
    return sums


@op(
    "aten::_ctc_loss(Tensor log_probs, Tensor targets, int[] input_lengths, int[] target_lengths, int blank=0, "
    "bool zero_infinity=False) -> (Tensor, Tensor)",
    expose="function",
    node="CtcLossBackward0",
    outputs=1,
)
def _ctc_loss(
    log_probs: np.ndarray,
    targets: np.ndarray,
    input_lengths: tuple,
    target_lengths: tuple,
    blank: int,
    _: bool,
) -> tuple[np.ndarray, np.ndarray]:
    _check(log_probs, targets, input_lengths, target_lengths, blank)
    states = States(targets, target_lengths, blank, log_probs.shape[2])
    inputs = np.asarray(input_lengths, np.int64)
    sums = forward_sums(states.log_probs(log_probs), states)
    rows = np.arange(len(inputs))
    ends = sums[np.maximum(inputs - 1, 0), rows]
    last = ends[rows, states.last]
    before = np.where(states.last > 0, ends[rows, np.maximum(states.last - 1, 0)], -np.inf)
    losses = np.where(inputs > 0, -np.logaddexp(last, before), np.where(states.last > 0, np.inf, 0.0))
    return losses.astype(log_probs.dtype), np.ascontiguousarray(sums.transpose(1, 0, 2), log_probs.dtype)


@_ctc_loss.backward("log_probs")
def _(
    grads: Any,
    log_probs: Any,
    targets: Any,
    input_lengths: tuple,
    target_lengths: tuple,
    blank: int,
    zero_infinity: bool,
    result0: Any,
    result1: Any,
) -> Any:
    gradient = _ctc_loss_backward(
        grads[0],
        log_probs,
        targets,
        input_lengths,
        target_lengths,
        result0,
        result1,
        blank,
        zero_infinity,
    )
    return (gradient,)


@op(
    "aten::_ctc_loss_backward(Tensor grad, Tensor log_probs, Tensor targets, int[] input_lengths, int[] target_lengths, "
    "Tensor neg_log_likelihood, Tensor log_alpha, int blank, bool zero_infinity=False) -> Tensor",
    expose="no",
)
def _ctc_loss_backward(
    grad: np.ndarray,
    log_probs: np.ndarray,
    targets: np.ndarray,
    input_lengths: tuple,
    target_lengths: tuple,
    neg_log_likelihood: np.ndarray,
    log_alpha: np.ndarray,
    blank: int,
    zero_infinity: bool,
) -> np.ndarray:
    steps, batch, labels = log_probs.shape
    states = States(targets, target_lengths, blank, labels)
    inputs = np.asarray(input_lengths, np.int64)
    wide = log_probs.astype(np.float64, copy=False)
    observed = states.log_probs(wide)
    both = backward_sums(observed, states, inputs) + log_alpha.transpose(1, 0, 2)
    members = np.zeros((batch, states.labels.shape[1], labels))
    np.put_along_axis(members, states.labels[..., None], 1.0, 2)
    with np.errstate(invalid="ignore", over="ignore"):
        shares = np.exp(both - observed + neg_log_likelihood.astype(np.float64)[None, :, None])
        passing = np.matmul(shares.swapaxes(0, 1), members).swapaxes(0, 1)
        gradient = (np.exp(wide) - passing) * grad.astype(np.float64)[None, :, None]
    gradient[np.arange(steps)[:, None] >= inputs] = 0
    if zero_infinity:
        gradient[:, np.isinf(neg_log_likelihood)] = 0
    return gradient.astype(log_probs.dtype)


_ctc_loss_backward.children(
    lambda grad, log_probs, *_: [
        child("aten::full_like", log_probs, -np.inf, None, None, None, None, 0, allocates=True)
    ]
)


def _no_second(g: Any) -> Any:
    raise RuntimeError("derivative for aten::_ctc_loss_backward is not implemented")


_ctc_loss_backward.derivative(grad=_no_second, log_probs=_no_second)


# ---------------------------------------------------------------------------------------------------- the loss


def _loss(
    log_probs: Any,
    targets: Any,
    input_lengths: tuple,
    target_lengths: tuple,
    blank: int,
    reduction: int,
    zero_infinity: bool,
) -> Any:
    batched = log_probs.dim() == 3
    if not batched:
        log_probs = F.unsqueeze(log_probs, 1)
    targets = _as_long(targets)
    losses = _ctc_loss(log_probs, targets, input_lengths, target_lengths, blank, zero_infinity)[0]
    if zero_infinity:
        nothing = _zeros((), dtype=losses.dtype)
        losses = F.where(F.eq(losses, float("inf")), nothing, losses)
    if reduction == 1:
        counts = _lengths(target_lengths, losses.dtype)
        return F.mean(F.div(losses, F.clamp_min(counts, 1)))
    if reduction == 2:
        return F.sum(losses)
    return losses if batched else F.squeeze(losses, 0)


def _lengths(lengths: tuple, dtype: Any) -> Any:
    counts = F.empty((len(lengths),), dtype=dtype)
    counts._array[...] = lengths
    return counts


@composite(
    "aten::zeros.composite(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
    "bool? pin_memory=None) -> Tensor",
    expose="no",
)
def _zeros(size: Any, dtype: Any, layout: Any, device: Any, pin_memory: Any) -> Any:
    """Zeros created above autograd: the filling takes part in the numbering of nodes."""
    return F.zero_(F.empty(size, dtype=dtype))


def _as_long(tensor: Any) -> Any:
    return _dispatch.OPS["to.device"].entry(tensor, "cpu", int64)


_TAIL = "int blank=0, int reduction=1, bool zero_infinity=False) -> Tensor"


@composite(
    f"aten::ctc_loss.IntList(Tensor log_probs, Tensor targets, int[] input_lengths, int[] target_lengths, {_TAIL}",
    expose="no",
)
def _by_ints(log_probs: Any, targets: Any, input_lengths: Any, target_lengths: Any, *options: Any) -> Any:
    return _loss(log_probs, targets, _dispatch.ints(input_lengths), _dispatch.ints(target_lengths), *options)


@composite(
    f"aten::ctc_loss.Tensor(Tensor log_probs, Tensor targets, Tensor input_lengths, Tensor target_lengths, {_TAIL}",
    expose="no",
)
def _by_tensors(log_probs: Any, targets: Any, input_lengths: Any, target_lengths: Any, *options: Any) -> Any:
    found = []
    for name, lengths in (("input_lengths", input_lengths), ("target_lengths", target_lengths)):
        if lengths.dtype._rank > 1:
            raise RuntimeError(f"{name} must be integral")
        found.append(tuple(_as_long(lengths)._array.reshape(-1).tolist()))
    return _loss(log_probs, targets, *found, *options)


def _kind(value: Any) -> str:
    if isinstance(value, (tuple, list)) and value:
        inner = ", ".join(type(v).__name__ for v in value)
        return f"tuple of ({inner})" if isinstance(value, tuple) else f"list of [{inner}]"
    return type(value).__name__


def _bad_call(*given: Any) -> TypeError:
    """torch's error for lengths that fit no overload."""
    lines = []
    for form, kinds in (("tuple of ints", (tuple, list)), ("Tensor", _dispatch.Tensor)):
        fits = [isinstance(v, _dispatch.Tensor) for v in given[:2]]
        for value in given[2:]:
            fits.append(
                all(fits) and isinstance(value, kinds)
            )  # torch marks all that follow the first misfit
        marked = [_kind(v) if ok else f"!{_kind(v)}!" for v, ok in zip(given, fits)]
        lines.append(
            f" * (Tensor log_probs, Tensor targets, {form} input_lengths, {form} target_lengths, int blank = 0, "
            "int reduction = at::Reduction::Mean, bool zero_infinity = False)\n"
            f"      didn't match because some of the arguments have invalid types: ({', '.join(marked)})\n"
        )
    got = ", ".join(type(v).__name__ for v in given)
    return TypeError(
        f"ctc_loss() received an invalid combination of arguments - got ({got}), but expected one of:\n{''.join(lines)}"
    )


@function(expose="function")
def ctc_loss(
    log_probs: Any,
    targets: Any,
    input_lengths: Any,
    target_lengths: Any,
    blank: int = 0,
    reduction: int = 1,
    zero_infinity: bool = False,
) -> Any:
    """The loss of all alignments of targets with time steps; lengths are tuples or tensors."""
    given = (log_probs, targets, input_lengths, target_lengths, blank, reduction, zero_infinity)
    tensor = _dispatch.Tensor
    if isinstance(log_probs, tensor) and isinstance(targets, tensor):
        if isinstance(input_lengths, tensor) and isinstance(target_lengths, tensor):
            return _by_tensors(*given)
        if isinstance(input_lengths, (tuple, list)) and isinstance(target_lengths, (tuple, list)):
            return _by_ints(*given)
    raise _bad_call(*given)
