"""torch.utils.tensorboard writes files that TensorBoard reads, or says what to install."""

from __future__ import annotations

import importlib
import importlib.util
from pathlib import Path

import numpy as np
import pytest

import mindtorch_v2 as torch


def test_tensorboard_is_asked_for_when_it_is_missing() -> None:
    if importlib.util.find_spec("tensorboard") is not None:
        pytest.skip("tensorboard is installed")
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'mindtorch_v2\[tensorboard\]'"):
        importlib.import_module("mindtorch_v2.utils.tensorboard")


def test_tensorboard_files_can_be_read_back(tmp_path: Path) -> None:
    loader = pytest.importorskip(
        "tensorboard.backend.event_processing.event_file_loader", reason="runs with the extra `tensorboard`"
    )
    from mindtorch_v2.utils.tensorboard import SummaryWriter

    with SummaryWriter(tmp_path) as writer:
        writer.add_scalar("loss", torch.tensor(2.5), 3)
        writer.add_text("note", "hello", 4)
        writer.add_histogram("weights", torch.arange(10.0), 5)
        with pytest.raises(AttributeError, match="this library writes no videos"):
            writer.add_video("video", None)
    (path,) = tmp_path.iterdir()
    events = [event for event in loader.EventFileLoader(str(path)).Load() if event.summary.value]
    assert [(event.step, event.summary.value[0].tag) for event in events] == [
        (3, "loss"),
        (4, "note/text_summary"),
        (5, "weights"),
    ]


def test_precision_recall_and_hyperparameters_are_written(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard", reason="runs with the extra `tensorboard`")
    from mindtorch_v2.utils.tensorboard import SummaryWriter, summary

    curve = summary.pr_curve("c", torch.tensor([1, 0, 1]), torch.tensor([0.9, 0.2, 0.4]), 3).value[0].tensor
    # at thresholds 0, 0.5 and 1: true positives, false positives, true negatives, false negatives
    assert list(curve.float_val)[:12] == [2, 1, 0, 1, 0, 0, 0, 1, 1, 0, 1, 2]
    with SummaryWriter(tmp_path) as writer:
        writer.add_hparams({"lr": 0.1, "name": "x"}, {"accuracy": 0.5}, run_name="run")
    assert list((tmp_path / "run").iterdir())
    with pytest.raises(ValueError, match="value should be one of int"):
        summary.hparams({"lr": [1]}, {})


def test_the_graph_of_a_module_has_its_ops_under_the_names_of_its_modules(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard", reason="runs with the extra `tensorboard`")
    from mindtorch_v2.utils.tensorboard._pytorch_graph import graph

    model = torch.nn.Sequential(torch.nn.Linear(4, 5), torch.nn.Sequential(torch.nn.ReLU()))
    definition = graph(model, torch.ones(3, 4))
    assert [(node.op, node.name, list(node.input)) for node in definition.node] == [
        ("IO Node", "input/input.1", []),
        ("prim::GetAttr", "Sequential/Linear[0]/weight/0.weight", []),
        ("prim::GetAttr", "Sequential/Linear[0]/bias/0.bias", []),
        (
            "aten::linear",
            "Sequential/Linear[0]/3",
            ["input/input.1", "Sequential/Linear[0]/weight/0.weight", "Sequential/Linear[0]/bias/0.bias"],
        ),
        ("aten::relu", "Sequential/Sequential[1]/ReLU[0]/4", ["Sequential/Linear[0]/3"]),
        ("IO Node", "output/output.1", ["Sequential/Sequential[1]/ReLU[0]/4"]),
    ]
    assert [dim.size for dim in definition.node[3].attr["_output_shapes"].list.shape[0].dim] == [3, 5]


def test_points_for_the_projector_are_files_that_its_configuration_names(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard", reason="runs with the extra `tensorboard`")
    from mindtorch_v2.utils.tensorboard import SummaryWriter

    with SummaryWriter(tmp_path) as writer:
        writer.add_embedding(torch.arange(4.0).view(2, 2), metadata=["a", "b"], global_step=2, tag="t")
        labels = [["1", "2"], ["3", "4"]]
        writer.add_embedding(torch.ones(2, 3), metadata=labels, metadata_header=["x", "y"])
        with pytest.raises(AssertionError, match="labels should equal"):
            writer.add_embedding(torch.ones(2, 3), metadata=["a"])
    assert (tmp_path / "00002" / "t" / "tensors.tsv").read_text() == "0.0\t1.0\n2.0\t3.0\n"
    assert (tmp_path / "00002" / "t" / "metadata.tsv").read_text() == "a\nb\n"
    assert (tmp_path / "00000" / "default" / "metadata.tsv").read_text() == "x\ty\n1\t2\n3\t4\n"
    config = (tmp_path / "projector_config.pbtxt").read_text()
    assert 'tensor_name: "t:00002"' in config
    assert 'tensor_path: "00000/default/tensors.tsv"' in config


def test_meshes_charts_sounds_and_counted_histograms_are_what_plugins_read(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard", reason="runs with the extra `tensorboard`")
    from tensorboard.plugins.custom_scalar.layout_pb2 import Layout
    from tensorboard.plugins.mesh.plugin_data_pb2 import MeshPluginData

    from mindtorch_v2.utils.tensorboard import summary

    parts = summary.mesh("m", torch.zeros(1, 4, 3), None, torch.tensor([[[0, 1, 2]]]), None).value
    assert [part.tag for part in parts] == ["m_VERTEX", "m_FACE"]
    data = MeshPluginData.FromString(parts[1].metadata.plugin_data.content)
    assert (list(data.shape), data.components) == ([1, 1, 3], 0b110)
    charts = summary.custom_scalars({"g": {"c": ["Multiline", ["a"]], "m": ["Margin", ["p", "q", "r"]]}})
    layout = Layout.FromString(charts.value[0].tensor.string_val[0])
    assert [chart.title for chart in layout.category[0].chart] == ["c", "m"]
    assert layout.category[0].chart[1].margin.series[0].upper == "r"
    sound = summary.audio("a", torch.tensor([0.0, 1.0, -1.0]), 8000).value[0].audio
    assert sound.encoded_audio_string[-6:] == b"\x00\x00\xff\x7f\x01\x80"
    counted = (
        summary.histogram_raw("h", 0.0, 1.0, 2, 1.0, 1.0, np.array([0.5, 1.0]), np.array([1, 1]))
        .value[0]
        .histo
    )
    assert (counted.num, list(counted.bucket)) == (2.0, [1.0, 1.0])


def test_a_graph_comes_with_a_run_on_the_processor(tmp_path: Path) -> None:
    loader = pytest.importorskip(
        "tensorboard.backend.event_processing.event_file_loader", reason="runs with the extra `tensorboard`"
    )
    from tensorboard.compat.proto.config_pb2 import RunMetadata

    from mindtorch_v2.utils.tensorboard import SummaryWriter

    with SummaryWriter(tmp_path) as writer:
        writer.add_graph(torch.nn.Linear(2, 2), torch.ones(1, 2))
    (path,) = tmp_path.iterdir()
    events = list(loader.LegacyEventFileLoader(str(path)).Load())
    kinds = [event.WhichOneof("what") for event in events]
    assert kinds == ["file_version", "graph_def", "tagged_run_metadata"]
    run = events[-1].tagged_run_metadata
    assert run.tag == "step1"
    (device,) = RunMetadata.FromString(run.run_metadata).step_stats.dev_stats
    assert device.device == "/device:CPU:0"
