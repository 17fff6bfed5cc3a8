"""The task of a runner: a path in, the bytes of its Sketch out. A file that cannot be read gives a Sketch that says so."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ..load import load
from ..synthetic_rows import as_recorded
from .cache import digest_of, store, stored
from .sketch import Missing, Sketch, sketch_of

_CUT = re.compile("the end of the file is missing|the packed data ends too early")  # as `load` words it


@dataclass(frozen=True)
class Task:
    """How files are read. Plain data: it is sent to workers."""

    strict: bool = False
    cache: str | None = None  # a folder

    def __call__(self, path: str) -> bytes:
        """The bytes of the file's sketch."""
        return self.sketch(path).to_bytes()

    def sketch(self, path: str) -> Sketch:
        """The file's sketch."""
        try:
            digest = digest_of(path)
            known = stored(self.cache, digest, path) if self.cache else None
            if known is not None and not (self.strict and any(rank.health for rank in known.ranks)):
                return known
            trace = load(path, strict=self.strict, progress=False).trace
            cut = [note for note in trace.health.notes if _CUT.search(note)]
            if cut:  # one cannot tell what the rank did in the part that is not there
                return Sketch(missing=(Missing(path, trace.settings.rank, f"truncated: {cut[0]}"),))
            sketch = sketch_of(as_recorded(trace), digest, path)
            if not any(rank.events for rank in sketch.ranks):
                return missing(path, "a trace without events")
            if self.cache:
                store(self.cache, digest, sketch)
            return sketch
        except OSError as error:
            return missing(path, error.strerror or str(error))
        except MemoryError:
            return missing(path, "not enough memory to read it")
        except (ValueError, EOFError) as error:
            return missing(path, _without_path(str(error), path))


def missing(path: str, reason: str) -> Sketch:
    """The sketch of a file that could not be read."""
    return Sketch(missing=(Missing(path, None, " ".join(reason.split())),))


def _without_path(text: str, path: str) -> str:
    return text.removeprefix(f"{path}: ")
