"""`mindtorch-prof diff --by tree`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from trace_file_builder import TraceFileBuilder, training

from mindtorch_prof import cli


def test_by_tree_names_the_op_around_what_differs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a, b = training(3).dump(tmp_path / "a.json"), training(3, extra=True).dump(tmp_path / "b.json")
    assert cli.main(["diff", a, b, "--by", "tree"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[2:4] == [
        "per step: 3 steps in A, 3 in B",
        "total: device 30.000us -> 30.000us (+0.0%), host 119.000us -> 119.000us (+0.0%)",
    ]
    assert [line.split() for line in lines if "added" in line] == [["+0.000us", "added", "ProfilerStep*"]]
    assert any(line.split() == ["B", "only:", "aten::erf", "1", "x,", "3.000us"] for line in lines)
    assert cli.main(["diff", a, b, "--by", "tree", "--fail-on-change"]) == 1
    assert cli.main(["diff", a, a, "--by", "tree", "--fail-on-change"]) == 0
    assert "no differences" in capsys.readouterr().out


def test_by_tree_shows_kernels_of_both_sides_by_short_names_that_differ(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kernel = "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<{}> >(int)"
    files = []
    for element_type in ("float", "double"):
        builder = TraceFileBuilder()
        builder.launch(builder.op("aten::add", 0, 10), 1, 20, 5, kernel.format(element_type))
        files.append(builder.close(100).dump(tmp_path / f"{element_type}.json"))
    cli.main(["diff", *files, "--by", "tree", "--all"])
    lines = [line.strip() for line in capsys.readouterr().out.splitlines()]
    assert "A only: vectorized_elementwise<4, add<float>>  1 x, 5.000us" in lines
    assert "B only: vectorized_elementwise<4, add<double>>  1 x, 5.000us" in lines


def test_by_tree_json_and_csv_add_up_to_the_totals(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    a, b = training(3).dump(tmp_path / "a.json"), training(3, slow=2, extra=True).dump(tmp_path / "b.json")
    cli.main(["diff", a, b, "--by", "tree", "--format", "json", "--all", "--top", "0"])
    data = json.loads(capsys.readouterr().out)
    for name in ("host", "device"):
        delta = sum(row[f"{name}_delta_us"] for row in data["rows"])
        assert delta == pytest.approx(data["total"][f"{name}_us"]["delta"])
    assert data["ranked_by"] == "device"
    cli.main(["diff", a, b, "--by", "tree", "--format", "csv", "--top", "1"])
    head, row = capsys.readouterr().out.splitlines()
    assert head.startswith("name,status,count_a,count_b,host_a_us,host_b_us,host_delta_us,device_a_us")
    assert row.startswith("aten::addmm,same,1.0,1.0,")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--by", "tree,op"), "--by tree stands alone"),
        (("--by", "tree", "--per", "call"), "per step or in total"),
    ],
)
def test_by_tree_refuses_what_it_cannot_do(
    words: tuple[str, ...], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = training(1).dump(tmp_path / "a.json")
    assert cli.main(["diff", path, path, *words]) == 2
    assert message in capsys.readouterr().err
