"""L-BFGS, with a fixed step or a line search for the strong Wolfe conditions.

The optimiser treats the parameters as one vector; the line search uses a function of the distance only.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import mindtorch_v2 as torch

from .optimizer import Optimizer, ParamsT, _check_lr, _check_not_negative, _to_scalar

if TYPE_CHECKING:
    from mindtorch_v2 import Tensor

__all__ = ["LBFGS"]


class LBFGS(Optimizer):
    """L-BFGS: steps along an estimate of the inverse Hessian made from the last gradients."""

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1,
        max_iter: int = 20,
        max_eval: int | None = None,
        tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9,
        history_size: int = 100,
        line_search_fn: str | None = None,
    ) -> None:
        _check_lr(lr)
        _check_not_negative(lr, "Invalid learning rate")
        if max_eval is None:
            max_eval = max_iter * 5 // 4
        defaults = {
            "lr": lr,
            "max_iter": max_iter,
            "max_eval": max_eval,
            "tolerance_grad": tolerance_grad,
            "tolerance_change": tolerance_change,
            "history_size": history_size,
            "line_search_fn": line_search_fn,
        }
        super().__init__(params, defaults)
        if len(self.param_groups) != 1:
            raise ValueError("LBFGS doesn't support per-parameter options (parameter groups)")
        self._params: list[Any] = self.param_groups[0]["params"]

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self._params = self.param_groups[0]["params"]

    # The parameters as one vector

    def _gather_flat_grad(self) -> Any:
        views = []
        for param in self._params:
            if param.grad is None:
                view = param.new_zeros(param.numel())
            elif param.grad.is_sparse:
                view = param.grad.to_dense().view(-1)
            else:
                view = param.grad.view(-1)
            views.append(torch.view_as_real(view).view(-1) if view.is_complex() else view)
        return torch.cat(views, 0)

    def _move(self, step_size: Any, direction: Any) -> None:
        offset = 0
        for param in self._params:
            if param.is_complex():
                param = torch.view_as_real(param)
            count = param.numel()
            param.add_(direction[offset : offset + count].view_as(param), alpha=step_size)
            offset += count

    def _evaluate(
        self, closure: Callable[[], Any], start: list[Any], step_size: Any, direction: Any
    ) -> tuple[float, Any]:
        """Loss and gradient at a distance along `direction` from `start`, to which the parameters return."""
        self._move(step_size, direction)
        loss, gradient = float(closure()), self._gather_flat_grad()
        for param, old in zip(self._params, start):
            param.copy_(old)
        return loss, gradient

    # The step

    def step(self, closure: Callable[[], Any]) -> Any:  # type: ignore[override]
        """Iterate until an optimum, a limit or no progress; the closure computes loss and gradients."""
        with torch.no_grad():
            return self._iterate(torch.enable_grad()(closure))

    def _iterate(self, closure: Callable[[], Any]) -> Any:
        group = self.param_groups[0]
        lr, line_search = _to_scalar(group["lr"]), group["line_search_fn"]
        state = self.state[self._params[0]]
        state.setdefault("func_evals", 0)
        state.setdefault("n_iter", 0)

        first_loss = closure()
        loss = float(first_loss)
        n_evals = 1
        state["func_evals"] += 1
        gradient = self._gather_flat_grad()
        optimal = gradient.abs().max() <= group["tolerance_grad"]
        if optimal:
            return first_loss

        d, t = state.get("d"), state.get("t")
        prev_gradient, prev_loss = state.get("prev_flat_grad"), state.get("prev_loss")
        history = _History.of(state, group["history_size"])
        n_iter = 0
        while n_iter < group["max_iter"]:
            n_iter += 1
            state["n_iter"] += 1
            if state["n_iter"] == 1:
                d = gradient.neg()
                history = _History([], [], [], 1, [], group["history_size"])
            else:
                history.add(gradient.sub(prev_gradient), d.mul(t))
                d = history.direction(gradient)
            if prev_gradient is None:
                prev_gradient = gradient.clone(memory_format=torch.contiguous_format)
            else:
                prev_gradient.copy_(gradient)
            prev_loss = loss

            t = min(1.0, 1.0 / gradient.abs().sum()) * lr if state["n_iter"] == 1 else lr
            slope = gradient.dot(d)
            if slope > -group["tolerance_change"]:
                break
            n_new = 0
            if line_search is not None:
                if line_search != "strong_wolfe":
                    raise RuntimeError("only 'strong_wolfe' is supported")
                start = [param.clone(memory_format=torch.contiguous_format) for param in self._params]
                evaluate, max_ls = partial(self._evaluate, closure), group["max_eval"] - n_evals
                loss, gradient, t, n_new = _strong_wolfe(
                    evaluate, start, t, d, loss, gradient, slope, max_ls=max_ls
                )
                self._move(t, d)
                optimal = gradient.abs().max() <= group["tolerance_grad"]
            else:
                self._move(t, d)
                # The loss after the last move is not needed.
                if n_iter != group["max_iter"]:
                    loss = float(closure())
                    gradient = self._gather_flat_grad()
                    optimal = gradient.abs().max() <= group["tolerance_grad"]
                    n_new = 1
            n_evals += n_new
            state["func_evals"] += n_new
            if (
                n_iter == group["max_iter"]
                or n_evals >= group["max_eval"]
                or optimal
                or d.mul(t).abs().max() <= group["tolerance_change"]
                or abs(loss - prev_loss) < group["tolerance_change"]
            ):
                break
        if history.al:
            state["al"] = history.al
        state.update(
            d=d,
            t=t,
            old_dirs=history.changes,
            old_stps=history.moves,
            ro=history.ro,
            H_diag=history.scale,
            prev_flat_grad=prev_gradient,
            prev_loss=prev_loss,
        )
        return first_loss


@dataclass
class _History:
    """The last changes of gradient and position: an estimate of the inverse Hessian."""

    changes: list[Any]
    moves: list[Any]
    ro: list[Any]  # 1 / (change · move), pair by pair
    scale: Any
    al: list[Any]
    size: int

    @classmethod
    def of(cls, state: dict[str, Any], size: int) -> _History:
        """The history in an optimiser's state."""
        get = state.get
        return cls(
            get("old_dirs", []), get("old_stps", []), get("ro", []), get("H_diag", 1), get("al", []), size
        )

    def add(self, change: Any, move: Any) -> None:
        """Add a pair if the curvature is positive there."""
        product = change.dot(move)
        if not product > 1e-10:
            return
        if len(self.changes) == self.size:
            for column in (self.changes, self.moves, self.ro):
                column.pop(0)
        self.changes.append(change)
        self.moves.append(move)
        self.ro.append(1.0 / product)
        self.scale = product / change.dot(change)

    def direction(self, gradient: Any) -> Any:
        """The estimated inverse Hessian times the negative gradient, by the two-loop recursion."""
        self.al = self.al or [None] * self.size
        q = gradient.neg()
        for i in reversed(range(len(self.changes))):
            self.al[i] = self.moves[i].dot(q) * self.ro[i]
            q.add_(self.changes[i], alpha=-self.al[i])
        d = q.mul(self.scale)
        for i in range(len(self.changes)):
            d.add_(self.moves[i], alpha=self.al[i] - self.changes[i].dot(d) * self.ro[i])
        return d


# The line search --------------------------------------------------------------------------------------------


class _Point(NamedTuple):
    """A point on the line: distance, loss, gradient, and the slope along the line."""

    t: Any
    f: Any
    g: Any
    slope: Any

    def kept(self) -> _Point:
        """The same point with a copy of the gradient."""
        return self._replace(g=self.g.clone(memory_format=torch.contiguous_format))


def _cubic_minimum(a: _Point, b: _Point, bounds: tuple[Any, Any]) -> Any:
    """The minimum of the cubic through two points with their slopes, within bounds; else the midpoint."""
    low, high = bounds
    d1 = a.slope + b.slope - 3 * (a.f - b.f) / (a.t - b.t)
    square = d1**2 - a.slope * b.slope
    if not square >= 0:
        return (low + high) / 2.0
    d2 = square.sqrt()
    if a.t <= b.t:
        t = b.t - (b.t - a.t) * ((b.slope + d2 - d1) / (b.slope - a.slope + 2 * d2))
    else:
        t = a.t - (a.t - b.t) * ((a.slope + d2 - d1) / (a.slope - b.slope + 2 * d2))
    return min(max(t, low), high)


def _strong_wolfe(
    obj_func: Callable[[Any, Any, Any], tuple[float, Any]],
    x: Any,
    t: Any,
    d: Any,
    f: float,
    g: Any,
    gtd: Any,
    c1: float = 1e-4,
    c2: float = 0.9,
    tolerance_change: float = 1e-9,
    max_ls: int = 25,
) -> tuple[float, Any, Any, int]:
    """Loss, gradient and distance of a point with lower loss and slope than the start, and the number of
    evaluations. Name and parameters are torch's, which other packages use.

    obj_func(x, t, d): loss and gradient at distance t from x in direction d; f, g, gtd: loss, gradient and
    slope at the start. First the step grows until a bracket contains such a point, then the bracket shrinks around it.
    """
    d_norm = d.abs().max()
    n_evals = 0

    def at(t: Any) -> _Point:
        nonlocal n_evals
        n_evals += 1
        loss, gradient = obj_func(x, t, d)
        return _Point(t, loss, gradient, gradient.dot(d))

    def too_high(point: _Point) -> bool:
        return bool(point.f > (f + c1 * point.t * gtd))

    def flat(point: _Point) -> bool:
        return bool(abs(point.slope) <= -c2 * gtd)

    start = _Point(0, f, g, gtd).kept()
    prev, new = start, at(t)
    done = False
    n_iter = 0
    while n_iter < max_ls:
        if too_high(new) or (n_iter > 1 and new.f >= prev.f):
            bracket = [prev, new.kept()]
            break
        if flat(new):
            bracket = [new]
            done = True
            break
        if new.slope >= 0:
            bracket = [prev, new.kept()]
            break
        bounds = (new.t + 0.01 * (new.t - prev.t), new.t * 10)
        t = _cubic_minimum(prev, new, bounds)
        prev = new.kept()
        new = at(t)
        n_iter += 1
    else:
        bracket = [start, new]

    stalled = False
    low, high = (0, len(bracket) - 1) if bracket[0].f <= bracket[-1].f else (1, 0)
    while not done and n_iter < max_ls:
        ends = (bracket[0].t, bracket[1].t)
        if abs(ends[1] - ends[0]) * d_norm < tolerance_change:
            break
        left, right = min(ends), max(ends)
        t = _cubic_minimum(bracket[0], bracket[1], (left, right))
        # A point next to an end makes no progress: the second time in a row, move a tenth into the bracket.
        margin = 0.1 * (right - left)
        if min(right - t, t - left) < margin:
            if stalled or t >= right or t <= left:
                t = right - margin if abs(t - right) < abs(t - left) else left + margin
                stalled = False
            else:
                stalled = True
        else:
            stalled = False
        new = at(t)
        n_iter += 1
        if too_high(new) or new.f >= bracket[low].f:
            bracket[high] = new.kept()
            low, high = (0, 1) if bracket[0].f <= bracket[1].f else (1, 0)
        else:
            if flat(new):
                done = True
            elif new.slope * (bracket[high].t - bracket[low].t) >= 0:
                bracket[high] = bracket[low]
            bracket[low] = new.kept()
    best = bracket[low]
    return best.f, best.g, best.t, n_evals


def _cubic_interpolate(
    x1: Any, f1: Any, g1: Any, x2: Any, f2: Any, g2: Any, bounds: tuple[Any, Any] | None = None
) -> Any:
    """`_cubic_minimum` under torch's name, which other packages use; without bounds, between the points."""
    between = (x1, x2) if x1 <= x2 else (x2, x1)
    return _cubic_minimum(_Point(x1, f1, None, g1), _Point(x2, f2, None, g2), bounds or between)
