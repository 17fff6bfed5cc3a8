"""torch.distributed.checkpoint: against recorded facts, and a folder that torch wrote."""

from __future__ import annotations

import pickle
import warnings
from pathlib import Path

import pytest
import recorded_cases

import mindtorch_v2 as torch
from mindtorch_v2.distributed import checkpoint
from mindtorch_v2.distributed.checkpoint.state_dict import get_model_state_dict, set_model_state_dict

FOLDER = Path(__file__).parent / "facts" / "checkpoints" / "folder"


@pytest.mark.parametrize(("module", "case"), recorded_cases.recorded("distributed_checkpoint_cases"))
def test_a_case_shows_what_torch_showed(module: str, case: str) -> None:
    recorded_cases.check(module, case)


def test_a_folder_that_torch_wrote_is_loaded() -> None:
    state = {
        "weights": torch.zeros(2, 3),
        "optimizer": {
            "state": {0: {"step": torch.tensor(0.0)}},
            "param_groups": [{"lr": None, "betas": None}],
        },
        "epoch": None,
    }
    with pytest.warns(UserWarning, match="assuming the intent is to load in a single process"):
        checkpoint.load(state, checkpoint_id=FOLDER)
    assert state["weights"].tolist() == [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]
    assert state["optimizer"]["state"][0]["step"].item() == 3.0
    assert state["optimizer"]["param_groups"] == [{"lr": 0.5, "betas": (0.9, 0.99)}]
    assert state["epoch"] == 4


def test_metadata_that_name_other_functions_are_refused(tmp_path: Path) -> None:
    (tmp_path / ".metadata").write_bytes(b"cos\nsystem\n(S'true'\ntR.")
    with pytest.raises(pickle.UnpicklingError, match=r"name os\.system; only classes of torch\.distributed"):
        checkpoint.FileSystemReader(tmp_path).read_metadata()


def test_parts_of_a_tensor_are_put_together(tmp_path: Path) -> None:
    """As a sharded job of torch writes them: two halves of one tensor, in the files of two ranks."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        metadata = checkpoint.save(
            {"whole.0": torch.ones(2, 2), "whole.1": torch.zeros(1, 2)}, checkpoint_id=tmp_path
        )
        first, second = metadata.state_dict_metadata.values()
        places = list(metadata.storage_data.values())
        index = type(next(iter(metadata.storage_data)))
        second.chunks[0].offsets = torch.Size([2, 0])
        metadata.state_dict_metadata = {"whole": first}
        first.size, first.chunks = torch.Size([3, 2]), [first.chunks[0], second.chunks[0]]
        metadata.planner_data = {"whole": ("whole",)}
        results = [
            checkpoint.storage.WriteResult(index("whole", [row, 0], i), place.length, place)
            for i, (row, place) in enumerate(zip((0, 2), places))
        ]
        checkpoint.FileSystemWriter(tmp_path).finish(metadata, [results])
        loaded = {"whole": torch.full((3, 2), 7.0)}
        checkpoint.load(loaded, checkpoint_id=tmp_path)
    assert loaded["whole"].tolist() == [[1.0, 1.0], [1.0, 1.0], [0.0, 0.0]]


def test_names_have_no_prefixes_of_wrappers() -> None:
    inner = torch.nn.Sequential(torch.nn.Linear(1, 1))
    with pytest.warns(UserWarning, match="compile"):
        wrapped = torch.nn.Sequential(torch.compile(inner), torch.nn.Linear(1, 1))
    assert next(iter(wrapped.state_dict())) == "0._orig_mod.0.weight"
    states = get_model_state_dict(wrapped)
    assert list(states) == ["0.0.weight", "0.0.bias", "1.weight", "1.bias"]
    set_model_state_dict(wrapped, {name: torch.full_like(value, 2.0) for name, value in states.items()})
    assert inner[0].weight.item() == 2.0


def test_what_is_not_done_is_refused(tmp_path: Path) -> None:
    from mindtorch_v2.distributed.checkpoint.filesystem import SerializationFormat

    with pytest.raises(NotImplementedError, match=r"writes with torch\.save"):
        checkpoint.FileSystemWriter(tmp_path, serialization_format=SerializationFormat.SAFETENSORS)
    with pytest.raises(NotImplementedError, match="plans are made anew"):
        checkpoint.DefaultSavePlanner(enable_plan_caching=True)
    with pytest.raises(NotImplementedError, match="by collectives"):
        checkpoint.save({}, checkpoint_id=tmp_path, use_collectives=False)
