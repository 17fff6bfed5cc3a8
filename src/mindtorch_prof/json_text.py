"""JSON text of trace files: a value in, text out that every reader of traces opens."""

from __future__ import annotations

import json
import re

import orjson

# A run of escaped backslashes before the quote that ends a string. An odd run would escape the quote.
_AT_END = re.compile(r'(?<!\\)((?:\\\\)+)"')
_AT_END_BYTES = re.compile(rb'(?<!\\)((?:\\\\)+)"')


def encode(value: object) -> str:
    """A value as JSON text; a lone surrogate in a string, which orjson rejects, is escaped."""
    try:
        text = orjson.dumps(value).decode()
    except (TypeError, ValueError):
        text = json.dumps(value)
    return safe_ends(text)


def spaced(value: object) -> str:
    """The same with a blank after colons and commas: some readers search for `"rank": 3`."""
    return safe_ends(json.dumps(value))


def safe_ends(text: str) -> str:
    """The same JSON, where strings that end in a backslash have it as \\u005c: Perfetto takes `\\\\"` for a string that goes on."""
    return _AT_END.sub(lambda match: match[1][:-2] + '\\u005c"', text) if '\\\\"' in text else text


def safe_end_bytes(text: bytes) -> bytes:
    """`safe_ends` of bytes."""
    return _AT_END_BYTES.sub(lambda match: match[1][:-2] + b'\\u005c"', text) if b'\\\\"' in text else text
