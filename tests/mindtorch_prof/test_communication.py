"""Tests of mindtorch_prof.communication: which names are communication between ranks."""

from __future__ import annotations

import pytest

from mindtorch_prof import communication


def test_kernels_of_every_communication_library_are_told_from_computation() -> None:
    names = (
        "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
        "ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(ncclWorkElem)",
        "hcom_allReduce__433_0_1",
        "void at::native::vectorized_elementwise_kernel<4, at::native::AddFunctor<float>>",
        "ampere_sgemm_128x64_tn",
    )
    assert communication.on_device(names).tolist() == [True, True, True, False, False]


def test_host_collectives_are_the_work_of_gloo_and_not_its_description() -> None:
    names = ("gloo:all_reduce", "nccl:broadcast", "c10d::allreduce_", "record_param_comms", "aten::add")
    assert communication.on_host(names).tolist() == [True, True, True, False, False]


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)", "all_reduce"),
        ("ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(ncclDevComm*, unsigned long, ncclWork*)", "send_recv"),
        ("_reduce_scatter_base", "reduce_scatter"),
        ("c10d::_allgather_base_", "all_gather"),
        ("all_to_allv", "all_to_all"),
        ("hcom_broadcast__547_0_1", "broadcast"),
        ("gloo:barrier", "barrier"),
        ("recvAnysource", "recv"),
        ("ncclDevKernel_Generic", communication.UNKNOWN_TYPE),
    ],
)
def test_the_collective_is_known_by_its_name(name: str, kind: str) -> None:
    assert communication.collective_type(name) == kind
