"""What torch's random kernels show inside while something records: an op's arguments in, its result out.

The drawing is that of the ops' own kernels: here are only the checks and buffers around it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _dispatch, _dtype
from .._dispatch import OPS, composite
from . import _shown, creation, random, random_draws, random_factories
from ._namespace import functions as F


@composite("aten::_assert_async.msg(Tensor self, str assert_msg) -> ()", expose="no")
def _assert(self: Any, assert_msg: str) -> None:
    if not self.item():
        raise RuntimeError(assert_msg)


# -------------------------------------------------------------------------------------------------- normal


def _check_stds(std: Any) -> None:
    random._check_stds(std._array)
    if std.numel():
        F.ge(F.min(std), 0).item()


@OPS["normal.Tensor_Tensor"].recorded
def _(mean: Any, std: Any, generator: Any) -> Any:
    _check_stds(std)
    shape = np.broadcast_shapes(mean._array.shape, std._array.shape)
    made = creation._empty(shape, dtype=mean.dtype, memory_format=_dtype.contiguous_format)
    _check_stds(std)
    random._normal_fill(made._array, 0.0, 1.0, generator, made._array)
    return made.mul_(std).add_(mean)


@OPS["normal.Tensor_float"].recorded
def _(mean: Any, std: Any, generator: Any) -> Any:
    made = creation._empty_like(mean, memory_format=_dtype.contiguous_format)
    creation._empty_like(mean, memory_format=_dtype.contiguous_format)
    random._normal_fill(made._array, 0.0, std, generator, made._array)
    return made.add_(mean)


@OPS["normal.float_Tensor"].recorded
def _(mean: Any, std: Any, generator: Any) -> Any:
    _check_stds(std)
    made = creation._empty_like(std, memory_format=_dtype.contiguous_format)
    _check_stds(std)
    moved = F.full((), float(mean), dtype=made.dtype)
    random._normal_fill(made._array, 0.0, 1.0, generator, made._array)
    return made.mul_(std).add_(moved)


# --------------------------------------------------------------------------------------------------- draws


def _cleared(name: str) -> None:
    """Show that an op draws into zeros."""
    op = OPS[name]

    @op.recorded
    def _(*arguments: Any) -> Any:
        made = _shown.kernel_of(op.entry, *arguments)
        target = F.zeros(made.shape, dtype=made.dtype)
        np.copyto(target._array, made._array)
        return target


_cleared("poisson")
_cleared("binomial")
_cleared("_standard_gamma")


def _laid_out(name: str) -> None:
    """Show that an op takes its memory by `empty`."""
    op = OPS[name]

    @op.recorded
    def _(*arguments: Any) -> Any:
        made = _shown.kernel_of(op.entry, *arguments)
        target = creation._empty(tuple(made.shape), dtype=made.dtype)
        np.copyto(target._array, made._array)
        return target


_laid_out("_standard_gamma_grad")
_laid_out("_dirichlet_grad")


@OPS["_sample_dirichlet"].recorded
def _(self: Any, generator: Any) -> Any:
    made = _shown.kernel_of(OPS["_sample_dirichlet"].entry, self, generator)
    target = F.zeros(made.shape, dtype=made.dtype)
    gammas = F.zeros(made.shape, dtype=_dtype.float64)
    F.expand(F.sum(gammas, [-1], True), tuple(made.shape))
    np.copyto(target._array, made._array)
    return target


@OPS["bernoulli.Tensor"].inplace.recorded  # type: ignore[attr-defined]
def _(self: Any, p: Any, generator: Any) -> Any:
    OPS["to.dtype_layout"].entry(p)
    random_draws._bernoulli_each(self._array, p._array, generator, self._array)
    _dispatch.storage_of(self)._version += 1
    return self


# -------------------------------------------------------------------------------------------- permutations


def _permuted(n: int, generator: Any, result: Any) -> None:
    values = random_factories._permutation(n, generator, result.dtype)
    F.scalar_tensor(max(n - 1, 0), dtype=result.dtype)
    result.resize_((n,)).resize_((n,))
    np.copyto(result._array, values)
    _dispatch.storage_of(result)._version += 1


_permute = _dispatch.op(
    "aten::randperm.generator_out(SymInt n, Generator? generator, *, Tensor result) -> ()",
    expose="no", on="tensors", nondifferentiable=True,
)(_permuted)  # fmt: skip
_permute_plain = _dispatch.op(
    "aten::randperm.out(SymInt n, *, Tensor result) -> ()", expose="no", on="tensors", nondifferentiable=True
)(lambda n, result: _permuted(n, None, result))


def _new_permutation(n: int, generator: Any, dtype: Any) -> Any:
    made = creation._empty((n,), dtype=dtype)
    _permute(n, generator, result=made)
    return made


OPS["randperm"].recorded(lambda n, dtype, layout, device, pin: _new_permutation(n, None, dtype))
OPS["randperm.generator"].recorded(
    lambda n, generator, dtype, layout, device, pin: _new_permutation(n, generator, dtype)
)


def permute_into(n: int, generator: Any, out: Any) -> None:
    """`torch.randperm(n, out=out)`, to be seen."""
    _permute_plain(n, result=out) if generator is None else _permute(n, generator, result=out)


# --------------------------------------------------------------------------------------------- multinomial


_divided = _shown.writer("aten::div.out(Tensor self, Tensor other, *, Tensor out) -> Tensor(a!)", np.divide)


def _highest(array: np.ndarray, dim: int, keepdim: bool) -> np.ndarray:
    return array.argmax(-1, keepdims=True)


_argmax = _shown.writer(
    "aten::argmax.out(Tensor self, int? dim=None, bool keepdim=False, *, Tensor out) -> Tensor(a!)", _highest
)


@_dispatch.op(
    "aten::topk.values(Tensor self, SymInt k, int dim=-1, bool largest=True, bool sorted=True, *, Tensor values, Tensor indices) "
    "-> ()", expose="no", on="tensors", nondifferentiable=True,
)  # fmt: skip
def _topk(self: Any, k: int, dim: int, largest: bool, sorted: bool, values: Any, indices: Any) -> None:
    found = OPS["topk"].run(self, k, dim, largest, sorted)
    np.copyto(values._array, found[0]._array)
    np.copyto(indices._array, found[1]._array)


def _assert_weights(self: Any) -> None:
    low, high = F.aminmax(self)
    fits = F.bitwise_and(F.ge(low, 0), F.lt(high, np.inf))
    _assert(fits, "probability tensor contains either `inf`, `nan` or element < 0")
    whole = F.sum(self) if self.ndim == 1 else F.sum(self, (1,))
    nothing = F.eq(whole, 0)
    nothing = F.any(nothing) if self.ndim > 1 else nothing
    _assert(F.bitwise_not(nothing), "invalid multinomial distribution (sum of probabilities <= 0)")


def draw_into(self: Any, num_samples: int, replacement: bool, generator: Any, result: Any) -> Any:
    """Draw indices into a tensor that gets its size here."""
    random_draws._check_multinomial(self._array, num_samples, replacement)
    result = _shown.given_size(result, (*self.shape[:-1], num_samples))
    if replacement and num_samples > 1:
        creation._empty((self.shape[-1],), dtype=self.dtype)
        values = random_draws._multinomial.op.kernel(self._array, num_samples, True, generator)
        np.copyto(result._array, values)
        return result
    _assert_weights(self)
    waits = F.exponential_(creation._empty_like(self), 1.0, generator=generator)
    _divided(self, waits, waits)
    if num_samples == 1:
        return _argmax(waits, -1, True, result)
    scores = creation._empty(tuple(result.shape), dtype=self.dtype)
    _topk(waits, num_samples, values=scores, indices=result)
    return result


@OPS["multinomial"].recorded
def _(self: Any, num_samples: int, replacement: bool, generator: Any) -> Any:
    return draw_into(self, num_samples, replacement, generator, F.empty((0,), dtype=_dtype.int64))
