"""torch.distributed._functional_collectives: collectives that return new tensors."""

from __future__ import annotations

from typing import Any

from .nn.functional import all_to_all_single


def wait_tensor(tensor: Any) -> Any:
    """The tensor: collectives are complete when they return."""
    return tensor


def all_to_all_single_autograd(
    self: Any,
    output_split_sizes: list[int] | None,
    input_split_sizes: list[int] | None,
    group: Any,
    tag: str = "",
) -> Any:
    """Parts of one tensor of each process of a ProcessGroup, with gradients; sizes of None cut into equal parts."""
    rows = self.shape[0] if output_split_sizes is None else sum(output_split_sizes)
    output = self.new_empty((rows, *self.shape[1:]))
    return all_to_all_single(output, self, output_split_sizes, input_split_sizes, group)
