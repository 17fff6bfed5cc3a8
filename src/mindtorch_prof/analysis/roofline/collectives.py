"""Collectives: what a file says of a communication between ranks in; bytes that a rank sends over the wire out.

As NCCL's tests count: of n ranks, an all-reduce sends 2 (n-1)/n of the message, an all-gather, reduce-scatter or all-to-all (n-1)/n of
the whole, a broadcast, reduce, send or receive all of it. Additions are not counted: they are hidden behind the wire.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from ...json_types import JSONValue
from .work import LINK, NotModelled, Work

CATEGORY = "collective"

# names as c10d writes them into files
_SIZES = {
    "byte": 1,
    "char": 1,
    "bool": 1,
    "short": 2,
    "half": 2,
    "bfloat16": 2,
    "int": 4,
    "float": 4,
    "long": 8,
    "double": 8,
    "complexfloat": 8,
    "complexdouble": 16,
}
_ONCE = re.compile(r"broadcast|reduce$|send|recv|scatter$|gather$|p2p|coalesced", re.IGNORECASE)
_ALL = re.compile(r"all_?gather|reduce_?scatter|all_?to_?all", re.IGNORECASE)
_AS_LARGE = re.compile(r"all_?reduce|broadcast|reduce|send|recv", re.IGNORECASE)
_ALL_REDUCE = re.compile(r"all_?reduce", re.IGNORECASE)


def collective(fields: Mapping[str, JSONValue]) -> tuple[str, Work]:
    """The name of a collective, and what a rank sends."""
    name = fields.get("Collective name")
    if not isinstance(name, str) or not name:
        raise NotModelled("the file does not tell which collective this is")
    text = str(fields.get("dtype", "")).lower()
    size = 1 if text.startswith("float8") else _SIZES.get(text)
    sent = fields.get("In msg nelems")
    # files of HCCL have one size, which is that of both only if they are equal
    received = fields.get("Out msg nelems", sent if _AS_LARGE.fullmatch(name.strip("_")) else None)
    if size is None or not isinstance(sent, int) or not isinstance(received, int):
        raise NotModelled("the size of the collective's message was not recorded")
    message = size * max(sent, received)
    plain = name.strip("_").removesuffix("_base")
    if _ALL_REDUCE.search(plain):
        nbytes = message * 2 * (_ranks(fields) - 1) // _ranks(fields)
    elif _ALL.search(plain):
        nbytes = message * (_ranks(fields) - 1) // _ranks(fields)
    elif _ONCE.search(plain):
        nbytes = message
    else:
        raise NotModelled(f"how much a collective {name!r} sends is not known")
    return name, Work(0, nbytes, CATEGORY, LINK, text)


def _ranks(fields: Mapping[str, JSONValue]) -> int:
    size = fields.get("Group size")
    if not isinstance(size, int) or size < 1:
        raise NotModelled("the number of ranks of the collective was not recorded")
    return size
