"""Files of a job: patterns, folders and lists in; paths out, each once and in order, and what matched nothing.

A folder of Ascend's profiler (`..._ascend_pt`) counts as one file.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from ..load.formats import ENDINGS, is_trace
from .sketch import Missing

_LIST = "@"  # before the name of a file that lists files


def is_recording_folder(path: str) -> bool:
    """Whether a folder is one recording, not a folder of recordings."""
    if not os.path.isdir(path):
        return False
    if path.rstrip(os.sep).endswith("_ascend_pt"):
        return True
    return os.path.isdir(os.path.join(path, "ASCEND_PROFILER_OUTPUT"))


def expanded(
    files: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
) -> tuple[list[str], list[Missing]]:
    """The files that paths, patterns (`run/**/*.json.gz`), folders and lists (`@files.txt`) stand for."""
    given = [files] if isinstance(files, (str, os.PathLike)) else list(files)
    missing: list[Missing] = []
    paths: dict[str, str] = {}
    for text in _with_lists([os.fspath(each) for each in given], missing):
        for path in _matches(text, missing):
            paths.setdefault(os.path.realpath(path), path)
    return sorted(paths.values()), missing


def _with_lists(given: Sequence[str], missing: list[Missing]) -> Iterator[str]:
    for text in given:
        if not text.startswith(_LIST) or os.path.exists(text):
            yield text
            continue
        try:
            with open(text[1:], encoding="utf-8") as file:
                lines = [line.strip() for line in file]
        except (OSError, UnicodeDecodeError) as error:
            missing.append(Missing(text[1:], None, f"list of files cannot be read: {_problem(error)}"))
            continue
        yield from (line for line in lines if line and not line.startswith("#"))


def _matches(text: str, missing: list[Missing]) -> list[str]:
    if os.path.isdir(text) and not is_recording_folder(text):
        inside = sorted(_in_folder(text))
        if not inside:
            missing.append(
                Missing(text, None, "a folder without trace files (.json, .json.gz, .sqlite, *_ascend_pt)")
            )
        return inside
    if os.path.exists(text) or not glob.has_magic(text):
        return [text]  # one that does not exist is reported when it is read
    found = (_recording_of(path) for path in sorted(glob.glob(text, recursive=True)))
    paths = [path for path in dict.fromkeys(found) if not os.path.isdir(path) or is_recording_folder(path)]
    if not paths:
        missing.append(Missing(text, None, "no file matches this pattern"))
    return paths


def _recording_of(path: str) -> str:
    """The folder of the recording that a file is part of; else the path itself."""
    folder = os.path.dirname(path)
    while folder and folder != os.path.dirname(folder):
        if is_recording_folder(folder):
            return folder
        folder = os.path.dirname(folder)
    return path


def _in_folder(folder: str) -> Iterator[str]:
    """Trace files in a folder and the folders below it."""
    for name in sorted(os.listdir(folder)):
        path = os.path.join(folder, name)
        if is_recording_folder(path):
            yield path
        elif os.path.isdir(path):
            yield from _in_folder(path)
        elif name.endswith(ENDINGS) and is_trace(Path(path)):
            yield path


def _problem(error: OSError | UnicodeDecodeError) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)
