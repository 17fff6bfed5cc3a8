"""Frames: how Python frames are written, and which of them are the user's."""

from __future__ import annotations

import pytest

from mindtorch_prof import frames


@pytest.mark.parametrize(
    ("frame", "source"),
    [
        ("a/train.py(12): step", ("a/train.py", 12, "step")),
        ("a (old)/b.py(3): <lambda>", ("a (old)/b.py", 3, "<lambda>")),
        ("nn.Module: Linear_0", None),
        ("<built-in function len>", None),
        ("a.py: step", None),
    ],
)
def test_a_frame_names_its_file_line_and_function(frame: str, source: tuple[str, int, str] | None) -> None:
    assert frames.source_of(frame) == source


def test_a_module_call_is_named_after_its_class_and_number() -> None:
    frame = frames.module_frame("Conv2d", 3)
    assert frame == "nn.Module: Conv2d_3"
    assert frames.is_module_frame(frame)
    assert not frames.is_module_frame("nn/modules/conv.py(3): Conv2d")


@pytest.mark.parametrize(
    ("frame", "is_users"),
    [
        ("train.py(3): step", True),
        ("/home/me/torch_models/net.py(3): forward", True),
        ("torch/nn/functional.py(3): linear", False),
        ("mindtorch_v2/nn/functional.py(3): linear", False),
        ("/usr/lib/python3/dist-packages/numpy/core.py(3): sum", False),
        ("/venv/lib/python3.11/site-packages/lightning/loop.py(3): run", False),
        ("<string>(1): <module>", False),
        ("<built-in function len>", False),
        ("nn.Module: Linear_0", False),
    ],
)
def test_library_frames_are_told_from_the_users(frame: str, is_users: bool) -> None:
    assert frames.is_user_code(frame) is is_users


@pytest.mark.parametrize(
    ("frame", "hidden", "left_out"),
    [
        ("torch/autograd/__init__.py(5): backward", True, True),
        ("torch/autograd/__init__.py(5): _make_grads", True, True),
        ("torch/autograd/__init__.py(5): grad", False, False),
        ("torch/_tensor.py(5): backward", False, False),
        ("model.py(3): backward", False, False),
        ("torch/tensor.py(5): backward", True, False),
        # stacks of our own files are shown as they were written
        ("mindtorch_v2/autograd/__init__.py(5): backward", True, False),
    ],
)
def test_frames_of_autograd_are_left_out_of_the_stacks_of_torchs_files(
    frame: str, hidden: bool, left_out: bool
) -> None:
    assert (frames.is_hidden_by_torch(frame), frames.is_left_out(frame)) == (hidden, left_out)
