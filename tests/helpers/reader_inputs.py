"""Inputs for the readers: pieces of trace files, also with changed bytes or tokens, and generated events."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Sequence
from typing import Any

from hypothesis import strategies as st

from mindtorch_prof.trace import ALLOCATES, SYNTHETIC

# what stands where a number, a text or a list is expected
_NUMBERS = """
0 -0 1 -1 7 0.0 -0.0 0.5 1.0 1e3 1E+2 1.5e-3 1e-400 1e400 -1e400 123456789012345678 1234567890123456789
9223372036854775807 9223372036854775808 -9223372036854775808 -9223372036854775809 18446744073709551615
18446744073709551616 1e16 9e15 8.9e15 -9e15 9007199254740993 9007199254740992.5 9007199254740993.123
1623142623460111.4995 1623142623460111.5005 3908837965002.5435 0.0005 0.00049999999999999999999
123456789.1234567890123456789 01 1. .5 +1 - 1e 0x10 NaN Infinity -Infinity nan inf
"""
_OTHERS = """
true false null True None tru nul [] {} [[]] [1,2] [1,2,] {"a":1} {"a":{"b":[1,{"c":null}]}} {"a":1,"a":2}
{"a":1,} "" "a" "7" "12.5" "true" "aten::add" "kernel" "cpu_op" "X" "i" "B" "E" "M" "C" "s" "f"
"[memory]" "ProfilerStep#3" "process_name" "thread_name" "name"
"\\u0041" "\\u00e9" "\\ud83d\\ude00" "\\ud83d" "\\ude00" "\\u12" "\\x" "\\" "a\\"b" "a\\\\" "a\\nb"
"é" "😀" "args"
"""
ODD_TOKENS = [
    *_NUMBERS.split(),
    *_OTHERS.split(),
    '"stream 7"',
    '"Record Window End"',
    '"Iteration Start: 1"',
    '"a\tb"',
    '"a\nb"',
    '"\x00"',
    "[" * 70 + "]" * 70,
    "[" * 300 + "]" * 300,
    "1" * 320,
    "0." + "1" * 40,
    '"' + "x" * 5000 + '"',
]
CATEGORIES = """
cpu_op user_annotation python_function kernel gpu_memcpy gpu_memset gpu_user_annotation cuda_runtime
cuda_driver cuda_sync overhead Trace cpu_instant_event ac2g fwdbwd async_npu Operator unknown
""".split()
PHASES = [*"X X X X X X i i M B E C s f t b n XX".split(), ""]
_KEYS = """
External id/Sequence number/Fwd thread id/Record function id/Concrete Inputs/Input type/Input Strides
Input Dims/Ev Idx/Call stack/finished/flops/FLOPs/external id/correlation/device/stream/Stream Id/grid
Python id/Python parent id/Python module id/Bytes/Addr/Total Allocated/Device Id/Device Type/block/bytes
Collective name
"""
OP_KEYS = [*_KEYS.strip().replace("\n", "/").split("/"), SYNTHETIC, ALLOCATES]
NAMES = [
    "aten::add",
    "aten::mm",
    "[memory]",
    "void kernel<float>(int)",
    "train.py(3): step",
    "ProfilerStep#1",
    'a"b\\c',
    "é\n",
]
LISTS = ([], [[]], [[2, 3], []], ["float", ""], ["", "1"], [[4, [1]]], [{"a": 1}])
_TOKEN = re.compile(
    r'"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?|true|false|null|[\[\]{}:,]', re.DOTALL
)
_SEAM = re.compile(rb"(?<=\}),\s*(?=\{)")


def file_of(events: Sequence[bytes], random_: random.Random, head: bytes = b"") -> bytes:
    """A file of events: an object with the keys that files have, or a bare list."""
    seam = random_.choice((b",\n", b", ", b",", b" ,\r\n\t", b",\n  "))
    body = random_.choice((b"", b"\n", b"  ")) + seam.join(events) + random_.choice((b"", b"\n  "))
    if not head and random_.random() < 0.1:
        return b"[" + body + b"]"
    head = head or random_.choice(
        (
            b'{"schemaVersion": 1,',
            b'{"with_flops": 1, "record_shapes": 1, "baseTimeNanoseconds": 1790857026000000000,',
            b'{"host_name": "h", "with_stack": 1,',
            b"{",
        )
    )
    tail = random_.choice((b"}", b', "traceName": "t.json"}', b',\n "a": {"b": [1]}\n}\n'))
    return head + b' "traceEvents": [' + body + b"]" + tail


def pieces(content: bytes) -> list[bytes]:
    """The texts of events of a file, cut where one seems to end and the next to begin."""
    start = content.find(b"{", content.find(b'"traceEvents"') + 1 if b'"traceEvents"' in content else 1)
    end = content.rfind(b"]")
    return _SEAM.split(content[start:end].rstrip())


# -------------------------------------------------------------------------------- changes


def change_bytes(data: bytes, random_: random.Random) -> bytes:
    """A few bytes are changed, left out, added or repeated; or the end is missing."""
    changed = bytearray(data)
    for _ in range(random_.choice((1, 1, 1, 2, 3, 8))):
        if not changed:
            break
        place = random_.randrange(len(changed))
        kind = random_.randrange(7)
        if kind == 0:
            changed[place] = random_.randrange(256)
        elif kind == 1:
            changed[place] = random_.choice(b'"\\{}[]:,0123456789.eE+- \n\t\x00\x80\xc3\xa9ntfaulse')
        elif kind == 2:
            del changed[place : place + random_.choice((1, 1, 2, 5, 40))]
        elif kind == 3:
            changed[place:place] = random_.choice(ODD_TOKENS).encode()
        elif kind == 4:
            part = changed[place : place + random_.randrange(1, 80)]
            other = random_.randrange(len(changed))
            changed[other:other] = part
        elif kind == 5:
            changed[place] ^= 1 << random_.randrange(8)
        elif random_.random() < 0.3:
            del changed[place:]
    return bytes(changed)


def change_tokens(data: bytes, random_: random.Random) -> bytes:
    """A few tokens are replaced, left out, added, repeated or swapped."""
    text = data.decode("utf-8", "surrogateescape")
    spans = [match.span() for match in _TOKEN.finditer(text)]
    if not spans:
        return data
    changes: dict[int, str] = {}
    for _ in range(random_.choice((1, 1, 1, 2, 3))):
        place = random_.randrange(len(spans))
        token = text[slice(*spans[place])]
        kind = random_.randrange(8)
        if kind < 4 and (token[0] in '"-0123456789' or token in ("true", "false", "null")):
            changes[place] = random_.choice((*ODD_TOKENS, json.dumps(random_.choice(OP_KEYS))))
        elif kind == 4:
            changes[place] = ""
        elif kind == 5:
            changes[place] = token + random_.choice(("", ",")) + token
        elif kind == 6:
            other = random_.randrange(len(spans))
            changes[place], changes[other] = text[slice(*spans[other])], token
        else:
            changes[place] = token + random_.choice((" ", "\n", "\t\r", "\x0b", "//", ","))
    parts: list[str] = []
    last = 0
    for place in sorted(changes):
        first, end = spans[place]
        parts += [text[last:first], changes[place]]
        last = end
    return "".join([*parts, text[last:]]).encode("utf-8", "surrogateescape")


# -------------------------------------------------------------------------------- generated events


def generated(random_: random.Random) -> bytes:
    """An event of random fields, mostly of the types that files have."""
    cat = random_.choice(CATEGORIES)
    start = random_.choice((1000.0, 3908837965002.0, 1623142623460111.0)) + random_.randrange(100_000) / 1000
    usual = {
        "ph": random_.choice(PHASES),
        "cat": cat,
        "name": random_.choice(NAMES),
        "pid": random_.choice((0, 1, 4242, "Spans", "7", 10_000_001)),
        "tid": random_.choice((0, 7, 4242, "7", "stream 20")),
        "ts": start if random_.random() < 0.7 else int(start),
        "dur": random_.randrange(50_000) / random_.choice((1, 1000)),
        "args": {key: _argument(key, random_) for key in random_.sample(OP_KEYS, random_.randrange(0, 9))},
        "id": random_.randrange(5),
        "s": "t",
    }
    event = {key: value for key, value in usual.items() if random_.random() < 0.98}
    if random_.random() < 0.1:
        event = dict(random_.sample([*event.items()], len(event)))
    text = json.dumps(
        event, ensure_ascii=random_.random() < 0.5, separators=random_.choice(((",", ":"), (", ", ": ")))
    )
    return text.encode()


def _argument(key: str, random_: random.Random) -> Any:
    if random_.random() < 0.03:
        return random_.choice((None, True, False, 1.5, "x", [], {}, 2**63, -1, 10**17, "12"))
    if key.startswith(("Input", "Concrete", "grid", "block")):
        return random_.choice(LISTS)
    if key in ("Call stack", "Collective name"):
        return random_.choice(("a.py(1): f;b.py(2): g", "", "x;y", "é"))
    if key in ("finished", ALLOCATES):
        return random_.choice((True, False))
    return random_.randrange(0, 6)


_scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**64), 2**64),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=8),
    st.sampled_from(NAMES),
)
_values = st.recursive(
    _scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.sampled_from(OP_KEYS), inner, max_size=3)
    ),
    max_leaves=6,
)
_arguments = st.one_of(
    st.dictionaries(
        st.sampled_from(OP_KEYS), st.one_of(st.integers(0, 9), st.sampled_from(LISTS)), max_size=7
    ),
    st.dictionaries(st.one_of(st.sampled_from(OP_KEYS), st.text(max_size=5)), _values, max_size=7),
)


def _or_any(usual: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(usual, usual, usual, usual, _values)


EVENTS = st.fixed_dictionaries(
    {},
    optional={
        "ph": _or_any(st.sampled_from(PHASES)),
        "cat": _or_any(st.sampled_from(CATEGORIES)),
        "name": _or_any(st.sampled_from(NAMES)),
        "pid": _or_any(st.integers(0, 3)),
        "tid": _or_any(st.integers(0, 3)),
        "ts": _or_any(st.floats(0, 1e6)),
        "dur": _or_any(st.floats(0, 1e3)),
        "id": _or_any(st.integers(0, 3)),
        "args": _or_any(_arguments),
    },
)


@st.composite
def documents(draw: Callable[..., Any]) -> bytes:
    """Files of random events: JSON, but of any types."""
    events = draw(st.lists(st.one_of(EVENTS, EVENTS, EVENTS, _values), max_size=8))
    # most have a phase and a category: without, a slice is not read by category
    for event in events:
        if isinstance(event, dict) and draw(st.booleans()):
            event.setdefault("ph", "X")
            event.setdefault("cat", "cpu_op")
            event.update(
                name="aten::add", pid=1, tid=1, ts=draw(st.floats(0, 1e7)), dur=draw(st.floats(0, 1e3))
            )
    top = draw(st.sampled_from(({}, {"schemaVersion": 1}, {"with_flops": 1, "host_name": "h"})))
    return json.dumps({**top, "traceEvents": events}, ensure_ascii=draw(st.booleans())).encode(
        "utf-8", "surrogatepass"
    )
