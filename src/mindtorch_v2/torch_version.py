"""TorchVersion: a version string that compares as a version with other versions, strings and tuples."""

from __future__ import annotations

import re
from typing import Any

from .version import __version__ as _own
from .version import torch_api as _torch_api

__all__ = ["TorchVersion"]

_FORM = re.compile(
    r"v?(?:(?P<epoch>\d+)!)?(?P<release>\d+(?:\.\d+)*)(?:[-_.]?(?P<pre>a|b|c|rc|alpha|beta|pre|preview)[-_.]?(?P<pre_n>\d*))?"
    r"(?:(?:-|[-_.]?(?:post|rev|r)[-_.]?)(?P<post>\d+))?(?:[-_.]?(?P<dev>dev)[-_.]?(?P<dev_n>\d*))?(?:\+(?P<local>[a-z0-9.\-_]+))?",
    re.IGNORECASE,
)
_PRE = {"a": 0, "alpha": 0, "b": 1, "beta": 1, "c": 2, "rc": 2, "pre": 2, "preview": 2}


def _key(text: str) -> tuple[Any, ...] | None:
    """The sort key of a version (PEP 440); None if the text is no version."""
    match = _FORM.fullmatch(text.strip())
    if match is None:
        return None
    release = [int(n) for n in match["release"].split(".")]
    while len(release) > 1 and release[-1] == 0:
        release.pop()
    pre: tuple[float, int]
    if match["pre"]:
        pre = (_PRE[match["pre"].lower()], int(match["pre_n"] or 0))
    else:
        pre = (-1, 0) if match["dev"] and not match["post"] else (float("inf"), 0)
    post = -1 if match["post"] is None else int(match["post"])
    dev = int(match["dev_n"] or 0) if match["dev"] else float("inf")
    local = (
        ()
        if match["local"] is None
        else tuple(
            (1, int(part), "") if part.isdigit() else (0, 0, part)
            for part in re.split(r"[.\-_]", match["local"].lower())
        )
    )
    return int(match["epoch"] or 0), tuple(release), pre, post, dev, local


class TorchVersion(str):
    """A string such as "2.13.0+cpu": `version >= (2, 1)` and `version < "2.10"` compare numbers, not letters."""

    __slots__ = ()

    def _compare(self, other: Any, number: str) -> Any:
        if isinstance(other, (tuple, list)):
            other = ".".join(str(part) for part in other)
        if not isinstance(other, str):
            return NotImplemented
        mine, theirs = _key(str(self)), _key(str(other))
        if mine is None or theirs is None:
            return getattr(str, number)(self, other)
        return getattr(mine, number)(theirs)

    def __gt__(self, other: Any) -> Any:
        return self._compare(other, "__gt__")

    def __lt__(self, other: Any) -> Any:
        return self._compare(other, "__lt__")

    def __ge__(self, other: Any) -> Any:
        return self._compare(other, "__ge__")

    def __le__(self, other: Any) -> Any:
        return self._compare(other, "__le__")

    def __eq__(self, other: object) -> Any:
        return self._compare(other, "__eq__")

    def __ne__(self, other: object) -> Any:
        return self._compare(other, "__ne__")

    def __hash__(self) -> int:
        return str.__hash__(self)


# programs check for torch's version; the part after the plus sign is ours
__version__ = TorchVersion(f"{_torch_api}+mindtorch.{_own}")
