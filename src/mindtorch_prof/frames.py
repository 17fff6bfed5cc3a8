"""Frames: the text of a Python frame in; its file, line and function, and whose code it is, out. The one place with rules about frames.

A frame is `file(line): function`, a module's call `nn.Module: Class_number`, a call of a C function `<built-in ...>`. Which
functions of the library are recorded at all is decided by their code objects (`mindtorch_v2/profiler/record/python_stacks.py`).
"""

from __future__ import annotations

import re

MODULE_PREFIX = "nn.Module: "
_FRAME = re.compile(r"(?P<file>.*)\((?P<line>\d+)\): (?P<function>.*)", re.DOTALL)
_PACKAGES = ("torch/", "torch\\", "mindtorch_v2/", "mindtorch_v2\\")
_INSTALLED = ("site-packages/", "dist-packages/")
_AUTOGRAD = "autograd/__init__"
_AUTOGRAD_CALL = f"{_AUTOGRAD}.py("
_TORCH_AUTOGRAD = f"torch/{_AUTOGRAD}"
# (file, function) of the frames that torch leaves out of stacks: its own on the way into a backward pass
_LEFT_OUT = ((_AUTOGRAD, "_make_grads"), (_AUTOGRAD, "backward"), ("torch/tensor", "backward"))


def module_frame(class_name: str, number: int) -> str:
    """The frame of a module's call: its class, and its number among the modules of its class."""
    return f"{MODULE_PREFIX}{class_name}_{number}"


def is_module_frame(frame: str) -> bool:
    """Whether a frame is a module's call."""
    return frame.startswith(MODULE_PREFIX)


def is_c_function(frame: str) -> bool:
    """Whether a frame is a call of a C function."""
    return frame.startswith("<built-in ")


def source_of(frame: str) -> tuple[str, int, str] | None:
    """File, line and function of a frame; None for one that does not name them."""
    match = _FRAME.fullmatch(frame)
    return None if match is None else (match["file"], int(match["line"]), match["function"])


def in_torch(path: str) -> bool:
    """Whether a frame or the path of a file belongs to torch or to this library."""
    return path.startswith(_PACKAGES)


def is_user_code(frame: str) -> bool:
    """Whether a frame is a line of the user's program: of no installed package, and of no code without a file."""
    in_library = in_torch(frame) or frame.startswith("<") or any(part in frame for part in _INSTALLED)
    return ".py(" in frame and not in_library


def is_autograd_call(frame: str) -> bool:
    """Whether a frame is a function of `autograd` itself, as `backward` is."""
    return _AUTOGRAD_CALL in frame


def is_hidden_by_torch(frame: str) -> bool:
    """Whether torch leaves a frame of any package out of the stacks of its events."""
    return any(file in frame and function in frame for file, function in _LEFT_OUT)


def is_left_out(frame: str) -> bool:
    """Whether a frame of a trace file is left out of stacks. Files of this library hold stacks as its tables show them, so only
    frames of torch itself are."""
    return _TORCH_AUTOGRAD in frame and is_hidden_by_torch(frame)
