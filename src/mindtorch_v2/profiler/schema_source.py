"""Schemas of the library's ops, for the engine's `SchemaMatcher`."""

from __future__ import annotations

from typing import cast

from mindtorch_prof.torch_api.op_schemas import Schema

from .. import _dispatch
from .._schema import kind_of_type

# Names of torch's overloads in lower case, except those that end in "out". Overloads with other lower-case names exist only in this
# library, to show a kernel under a name of its own.
_TORCH_OVERLOADS = frozenset((
    "a any array atol_rtol_float atol_rtol_tensor b beta bin_ct bins_tensor bool bool_bool bool_float "
    "bool_int bool_list ccol_row_value ccol_row_value_size center comp_plain_value comp_plain_value_size "
    "complex complex_complex complex_float complex_int correction crow_col_value crow_col_value_size data "
    "data_legacy decimals default_bool default_complex default_float default_int default_str deprecated "
    "device dim dim_dtype dim_int dim_max dim_min dim_values dims dtype dx eigenvalues eigvals enum "
    "float_bool float_complex float_float float_int float_list from fullcoverage generator generic "
    "grad_input hacked_twin indexing indices indices_size input input_legacy int int_bins int_bool "
    "int_complex int_float int_int int_list int_to_int intlist inverse left_t list list_bool list_float "
    "list_int list_str low low_dtype low_generator low_generator_dtype m memory_format msg n_scalar "
    "no_stats ntonly ord_str other other_scalar out_ out_mode out_rcond_tensor out_tol_tensor output "
    "output_mask p p_str padding padding_idx periodic periodic_alpha periodic_alpha_beta prim_dtype "
    "prim_other quantized rcond_tensor reduce result right_ scalar scalararray scalarint scalarrayarray "
    "scalarrayint scale_list sections self self_int self_scalar sign size size_list size_list_scale_list "
    "sizes sparse_dim src stable start start_step step str str_list str_ord sublist t tensor "
    "tensor_indices_or_sections tensor_lr tensor_qparams tensorarray tensorarrayint tensors to tol_tensor "
    "two using_ints value value_reduce values values_stable vec with_index x x_scalar"
).split())  # fmt: skip


class OpSchemas:
    """The schemas of all declared ops. Overloads that write to `out` are declared at their first use."""

    def version(self) -> int:
        """The number of declared ops, which only grows."""
        return len(_dispatch.OPS)

    def schemas(self) -> dict[str, tuple[Schema, ...]]:
        """By qualified name, the schemas of all overloads that torch has too."""
        by_name: dict[str, dict[str, Schema]] = {}
        for op in list(_dispatch.OPS.values()):
            if "::" in op.qualified_name and not _is_own(op.overload or ""):
                # the engine only reads schemas, but its protocol declares fields that could be assigned
                by_name.setdefault(op.qualified_name, {})[op.schema.text] = cast("Schema", op.schema)
        return {name: tuple(overloads.values()) for name, overloads in by_name.items()}

    def argument_kind(self, type_text: str) -> str:
        """The kind of argument that a type in a schema stands for."""
        return kind_of_type(type_text)


def _is_own(overload: str) -> bool:
    """Whether an overload exists only in this library."""
    is_lower = bool(overload) and overload.islower()
    return is_lower and not overload.endswith("out") and overload not in _TORCH_OVERLOADS
