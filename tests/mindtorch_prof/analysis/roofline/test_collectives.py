"""Collectives: bytes that a rank sends, as NCCL's tests count them."""

from __future__ import annotations

import pytest

from mindtorch_prof.analysis.roofline.collectives import collective
from mindtorch_prof.analysis.roofline.work import NotModelled
from mindtorch_prof.json_types import JSONValue


def fields(
    name: str, sent: int, received: int, ranks: int | None = 8, dtype: str = "BFloat16"
) -> dict[str, JSONValue]:
    return {
        "Collective name": name,
        "In msg nelems": sent,
        "Out msg nelems": received,
        "Group size": ranks,
        "dtype": dtype,
    }


@pytest.mark.parametrize(
    ("name", "sent", "received", "nbytes"),
    [
        ("allreduce", 1000, 1000, 2 * 1000 * 2 * 7 // 8),
        ("_allgather_base", 1000, 8000, 2 * 8000 * 7 // 8),
        ("_reduce_scatter_base", 8000, 1000, 2 * 8000 * 7 // 8),
        ("all_to_allv", 8000, 8000, 2 * 8000 * 7 // 8),
        ("broadcast", 1000, 1000, 2 * 1000),
        ("send", 1000, 0, 2 * 1000),
    ],
)
def test_each_collective_sends_its_share(name: str, sent: int, received: int, nbytes: int) -> None:
    assert collective(fields(name, sent, received))[1].nbytes == nbytes


def test_a_group_of_unknown_size_is_not_modelled() -> None:
    with pytest.raises(NotModelled, match="number of ranks"):
        collective(fields("allreduce", 1, 1, None))


def test_a_message_of_unknown_type_is_not_modelled() -> None:
    with pytest.raises(NotModelled, match="size of the collective's message"):
        collective(fields("allreduce", 1, 1, dtype="Unheard"))
