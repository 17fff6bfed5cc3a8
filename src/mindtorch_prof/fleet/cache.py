"""The cache of sketches: the content of a file in; its sketch out, if it was read before. One file per content, named after its digest."""

from __future__ import annotations

import hashlib
import os
import tempfile
from dataclasses import replace

from .files import is_recording_folder
from .packing import PackingError
from .sketch import VERSION, Sketch, merge_all

_BLOCK = 1 << 20
# of a recording's folder, what results are made of; raw data of the profiler beside it may have many GB
_RESULTS = ("ASCEND_PROFILER_OUTPUT",)


def digest_of(path: str) -> str:
    """A digest of a file's content; of a folder's, its results and the files beside them."""
    digest = hashlib.blake2b(digest_size=20)
    for name, file in _contents(path):
        digest.update(name.encode("utf-8", "surrogateescape") + b"\0")
        with open(file, "rb") as source:
            while block := source.read(_BLOCK):
                digest.update(block)
        digest.update(b"\0")
    return digest.hexdigest()


def _contents(path: str) -> list[tuple[str, str]]:
    if not is_recording_folder(path):
        return [("", path)]
    tops = [path, *(os.path.join(path, name) for name in _RESULTS)]
    files = [os.path.join(top, name) for top in tops if os.path.isdir(top) for name in os.listdir(top)]
    return sorted((os.path.relpath(file, path), file) for file in files if os.path.isfile(file))


def stored(folder: str, digest: str, file: str) -> Sketch | None:
    """The stored sketch of a content that was found at `file`; None if there is none that can be read."""
    try:
        with open(_place(folder, digest), "rb") as source:
            sketch = Sketch.from_bytes(source.read())
    except (OSError, PackingError):
        return None
    return merge_all([Sketch(tuple(replace(rank, files=(file,)) for rank in sketch.ranks), sketch.missing)])


def store(folder: str, digest: str, sketch: Sketch) -> None:
    """Keep a sketch. Two processes may store the same content at the same time: one of them wins, whole."""
    os.makedirs(folder, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=folder, suffix=".part")
    try:
        with os.fdopen(handle, "wb") as out:
            out.write(Sketch(tuple(replace(rank, files=("",)) for rank in sketch.ranks)).to_bytes())
        os.replace(temporary, _place(folder, digest))
    except BaseException:
        os.unlink(temporary)
        raise


def _place(folder: str, digest: str) -> str:
    return os.path.join(folder, f"{digest}-{VERSION}.sketch")
