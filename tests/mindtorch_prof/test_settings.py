"""Settings of a trace: values that nothing can change, and what they say of a recording."""

from __future__ import annotations

import pickle

import pytest

from mindtorch_prof.settings import Settings


def test_settings_keep_what_they_were_given_when_the_callers_dict_changes() -> None:
    threads = {1: (41, "main")}
    settings = Settings(threads=threads)
    threads[2] = (42, "worker")
    assert settings.threads == {1: (41, "main")}


def test_settings_from_another_process_are_equal_and_still_cannot_be_changed() -> None:
    settings = Settings(threads={1: (41, "main")}, metadata={"note": ["a"]})
    copy = pickle.loads(pickle.dumps(settings))
    assert copy == settings
    with pytest.raises(TypeError, match="cannot be changed"):
        copy.metadata["note"] = []


@pytest.mark.parametrize(
    ("settings", "shapes_recorded", "tensors_tracked"),
    [
        (Settings(), False, False),
        (Settings(with_flops=True), True, False),
        (Settings(record_shapes=True), True, False),
        (Settings(with_flops=True, profile_memory=True), True, False),
        (Settings(record_shapes=True, profile_memory=True), True, True),
    ],
)
def test_flops_need_inputs_and_ids_of_tensors_need_inputs_and_memory(
    settings: Settings, shapes_recorded: bool, tensors_tracked: bool
) -> None:
    assert settings.shapes_recorded is shapes_recorded
    assert settings.tensors_tracked is tensors_tracked


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("", ""),
        ("/data/run.json.gz", "run.json.gz"),
        ("/data/rank0_ascend_pt/ASCEND_PROFILER_OUTPUT/trace_view.json", "rank0_ascend_pt"),
    ],
)
def test_a_capture_is_named_by_its_folder(source: str, name: str) -> None:
    assert Settings(source=source).source_name == name
