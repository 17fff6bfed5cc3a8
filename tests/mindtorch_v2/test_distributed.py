"""torch.distributed: one process against recorded facts, several against closed formulas."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import rank_programs
import recorded_cases
from free_ports import free_port

import mindtorch_v2 as torch


@pytest.mark.parametrize(("module", "case"), recorded_cases.recorded("distributed_cases"))
def test_a_case_shows_what_torch_showed(module: str, case: str) -> None:
    recorded_cases.check(module, case)


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files that three processes write, which run all programs of `rank_programs`."""
    folder = tmp_path_factory.mktemp("job")
    ports = [free_port() for _ in rank_programs.PROGRAMS]
    torch.multiprocessing.spawn(rank_programs.all_programs, (3, ports, str(folder)), 3)
    return folder


@pytest.mark.parametrize("program", [program.__name__ for program in rank_programs.PROGRAMS])
def test_a_program_of_three_processes_runs_without_an_error(program: str, job: Path) -> None:
    assert [path.read_text() for path in job.glob(f"{program}.*.error")] == []


def test_data_parallel_training_equals_training_on_all_data(job: Path) -> None:
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 2))
    start = np.load(job / "start0.npz")
    with torch.no_grad():
        for parameter, name in zip(model.parameters(), start.files):
            parameter.copy_(torch.from_numpy(start[name]))
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    data = torch.linspace(-1, 1, 3 * 3 * 4).reshape(9, 4)
    for _ in range(2):
        optimizer.zero_grad()
        model(data).square().mean().backward()
        optimizer.step()
    ranks = [np.load(job / f"rank{rank}.npz") for rank in range(3)]
    for parameter, name in zip(model.parameters(), ranks[0].files):
        np.testing.assert_array_equal(ranks[0][name], ranks[1][name])
        np.testing.assert_array_equal(ranks[0][name], ranks[2][name])
        np.testing.assert_allclose(ranks[0][name], parameter.detach().numpy(), rtol=1e-5, atol=1e-7)


def test_traces_name_their_ranks_and_contain_their_collectives(job: Path) -> None:
    for rank in range(3):
        document = json.loads((job / f"rank{rank}.json").read_text())
        info = document["distributedInfo"]
        assert (info["backend"], info["rank"], info["world_size"]) == ("gloo", rank, 3)
        names = Counter(e["name"] for e in document["traceEvents"] if e.get("ph") == "X")
        assert names["gloo:all_reduce"] == names["c10d::allreduce_"] == 2
        assert names["DistributedDataParallel.forward"] == 2
        assert names["torch.distributed.ddp.reducer::copy_bucket_to_grad"] == 4
        collective = next(e for e in document["traceEvents"] if e["name"] == "gloo:all_reduce")
        assert collective["args"]["Input Dims"] == [[20]]


def test_the_launcher_gives_each_process_its_rank_and_reports_a_failure(tmp_path: Path) -> None:
    script = tmp_path / "job.py"
    script.write_text(
        "import os, sys\n"
        "names = ('RANK', 'LOCAL_RANK', 'WORLD_SIZE')\n"
        "open(sys.argv[1] + os.environ['RANK'], 'w').write(' '.join(os.environ[n] for n in names))\n"
        "sys.exit(int(sys.argv[2]) if os.environ['RANK'] == '1' else 0)\n"
    )
    launch = [sys.executable, "-m", "mindtorch_v2.distributed.run", "--nproc-per-node", "2", str(script)]
    for code in (0, 3):
        result = subprocess.run(
            [*launch, str(tmp_path / "out"), str(code)], check=False, capture_output=True, text=True
        )
        assert result.returncode == code
    assert "local rank 1 failed with exit code 3" in result.stderr
    assert [(tmp_path / f"out{rank}").read_text() for rank in (0, 1)] == ["0 0 2", "1 1 2"]


def test_what_is_not_part_of_the_library_says_so_when_it_is_used() -> None:
    from mindtorch_v2.distributed import fsdp, rpc, tensor

    for use in (
        fsdp.FullyShardedDataParallel,
        fsdp.fully_shard,
        rpc.init_rpc,
        tensor.DTensor,
    ):
        with pytest.raises(NotImplementedError, match="is not part of this library"):
            use()


def test_gradients_flow_through_collectives() -> None:
    from mindtorch_v2.distributed import nn
    from mindtorch_v2.distributed._functional_collectives import all_to_all_single_autograd

    torch.distributed.init_process_group(store=torch.distributed.HashStore(), rank=0, world_size=1)
    try:
        x = torch.ones(2, requires_grad=True)
        (nn.all_reduce(x) * 3 + nn.all_gather(x)[0] * 2 + nn.broadcast(x, 0)).sum().backward()
        assert x.grad.tolist() == [6.0, 6.0]
        group = torch.distributed.group.WORLD
        exchanged = all_to_all_single_autograd(x, [2], [2], group) + all_to_all_single_autograd(
            x, None, None, group
        )
        (gradient,) = torch.autograd.grad(exchanged.sum(), x)
        assert (exchanged.tolist(), gradient.tolist()) == ([2.0, 2.0], [2.0, 2.0])
    finally:
        torch.distributed.destroy_process_group()
