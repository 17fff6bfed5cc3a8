"""torch.distributed.tensor._utils: which part of a spread tensor a process has. Tensors are not spread here: the function refuses."""

from ..._refused import refused_function

compute_local_shape_and_global_offset = refused_function(
    "torch.distributed.tensor",
    "_utils.compute_local_shape_and_global_offset",
    "a tensor is not spread over processes here",
)
