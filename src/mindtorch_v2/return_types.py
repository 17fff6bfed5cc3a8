"""Named result tuples: one class per row of a table of (name, fields). Independent of tensors.

An op builds its result with ``return_types.max._make((values, indices))``, which skips every check.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from operator import itemgetter
from typing import TYPE_CHECKING, Any, ClassVar

_TABLE = """
_fake_quantize_per_tensor_affine_cachemask_tensor_qparams: output mask
_fused_moving_avg_obs_fq_helper: output mask
_linalg_det _linalg_det_out: result LU pivots
_linalg_eigh _linalg_eigh_out: eigenvalues eigenvectors
_linalg_slogdet _linalg_slogdet_out: sign logabsdet LU pivots
_linalg_solve_ex _linalg_solve_ex_out: result LU pivots info
_linalg_svd _linalg_svd_out: U S Vh
_lu_with_info: LU pivots info
_scaled_dot_product_flash_attention_for_cpu: output logsumexp
_unpack_dual: primal tangent
aminmax aminmax_out: min max
cummax cummax_out: values indices
cummin cummin_out: values indices
frexp frexp_out: mantissa exponent
geqrf geqrf_out: a tau
histogram histogram_out histogramdd: hist bin_edges
kthvalue kthvalue_out: values indices
linalg_cholesky_ex linalg_cholesky_ex_out: L info
linalg_eig linalg_eig_out: eigenvalues eigenvectors
linalg_eigh linalg_eigh_out: eigenvalues eigenvectors
linalg_inv_ex linalg_inv_ex_out: inverse info
linalg_ldl_factor linalg_ldl_factor_out: LD pivots
linalg_ldl_factor_ex linalg_ldl_factor_ex_out: LD pivots info
linalg_lstsq linalg_lstsq_out: solution residuals rank singular_values
linalg_lu linalg_lu_out: P L U
linalg_lu_factor linalg_lu_factor_out: LU pivots
linalg_lu_factor_ex linalg_lu_factor_ex_out: LU pivots info
linalg_qr linalg_qr_out: Q R
linalg_slogdet linalg_slogdet_out: sign logabsdet
linalg_solve_ex linalg_solve_ex_out: result info
linalg_svd linalg_svd_out: U S Vh
lu_unpack lu_unpack_out: P L U
max max_out: values indices
median median_out: values indices
min min_out: values indices
mode mode_out: values indices
nanmedian nanmedian_out: values indices
qr qr_out: Q R
slogdet slogdet_out: sign logabsdet
sort sort_out: values indices
svd svd_out: U S V
topk topk_out: values indices
triangular_solve triangular_solve_out: solution cloned_coefficient
"""


class _StructSeq(tuple[Any, ...]):
    """The base class: a tuple with named fields, printed as in torch."""

    __slots__ = ()
    __match_args__: ClassVar[tuple[str, ...]] = ()
    n_fields: ClassVar[int]
    n_sequence_fields: ClassVar[int]
    n_unnamed_fields: ClassVar[int] = 0
    _make: ClassVar[Callable[[Iterable[Any]], Any]]

    def __new__(cls, sequence: Iterable[Any], dict: dict[str, Any] | None = None) -> _StructSeq:
        try:
            self = tuple.__new__(cls, sequence)
        except TypeError:
            raise TypeError("constructor requires a sequence") from None
        if len(self) != cls.n_fields:
            takes = f"takes a {cls.n_fields}-sequence ({len(self)}-sequence given)"
            raise TypeError(f"torch.return_types.{cls.__name__}() {takes}")
        return self

    def __repr__(self) -> str:
        named = zip(self.__match_args__, self, strict=True)
        places = ",\n".join(f"{name}={value!r}" for name, value in named)
        return f"torch.return_types.{type(self).__name__}(\n{places})"

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (tuple(self), {})

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"'torch.return_types.{type(self).__name__}' object has no attribute '{name}'")


def _refuse_subclass(base: str) -> classmethod[Any, Any, None]:
    def __init_subclass__(cls: type) -> None:
        raise TypeError(f"type 'torch.return_types.{base}' is not an acceptable base type")

    return classmethod(__init_subclass__)


def _structseq(name: str, fields: tuple[str, ...]) -> type[_StructSeq]:
    """Create one result class; ``_make`` is tuple's own constructor, bound to the class."""
    field_properties = {field: property(itemgetter(i)) for i, field in enumerate(fields)}
    members = {
        "__slots__": (),
        "__module__": __name__,
        "__match_args__": fields,
        "n_fields": len(fields),
        "n_sequence_fields": len(fields),
        "__init_subclass__": _refuse_subclass(name),
    }
    cls = type(name, (_StructSeq,), members | field_properties)
    cls._make = partial(tuple.__new__, cls)
    return cls


def _classes() -> dict[str, type[_StructSeq]]:
    classes = {}
    for line in _TABLE.strip().splitlines():
        names, fields = line.split(":")
        for name in names.split():
            classes[name] = _structseq(name, tuple(fields.split()))
    return classes


_CLASSES = _classes()
all_return_types: list[type[_StructSeq]] = list(_CLASSES.values())
globals().update(_CLASSES)

__all__ = ["all_return_types", *(name for name in _CLASSES if not name.startswith("_"))]  # noqa: PLE0604

if TYPE_CHECKING:

    def __getattr__(name: str) -> type[_StructSeq]: ...
