"""Conditions: a text such as `name ~ "conv" and self_cpu > 10us` in; a mask over columns out. A small language of its own: nothing is evaluated
as Python.

    condition   or, and, not, ( ) around comparisons
    comparison  COLUMN == != < <= > >= VALUE        the value on either side, or a column on both
                COLUMN ~ "regular expression"       found anywhere in the text; !~ is its opposite
                COLUMN in ("a", "b", 3)
    VALUE       "text", 'text', or a number with a unit: ns us ms s, B KB MB GB (of 1024), K M G (of 1000), %.
                A time without a unit is in microseconds, a size in bytes, a share from 0 to 1.

Columns have torch's names or short aliases (self_cpu, calls, shape); `analysis.columns` lists them.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ..arrays import Array, BoolArray
from .columns import COLUMNS, column_key

_TOKEN = re.compile(
    r"""\s*(?:
        (?P<number>[-+]?(?:\d[\d_]*\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)(?P<unit>[A-Za-zµ]+|%)?
      | (?P<text>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')
      | (?P<sign>==|!=|<=|>=|!~|<|>|~|=|\(|\)|,)
      | (?P<word>[A-Za-z_][A-Za-z0-9_.]*)
    )""",
    re.VERBOSE,
)
_UNITS: dict[str, tuple[str, float]] = {
    "ns": ("us", 1e-3),
    "us": ("us", 1.0),
    "µs": ("us", 1.0),
    "ms": ("us", 1e3),
    "s": ("us", 1e6),
    "b": ("bytes", 1),
    **dict.fromkeys(("kb", "kib"), ("bytes", 1 << 10)),
    **dict.fromkeys(("mb", "mib"), ("bytes", 1 << 20)),
    **dict.fromkeys(("gb", "gib"), ("bytes", 1 << 30)),
    "%": ("share", 0.01),
}
_SCALES = {"k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
_Compare = Callable[[Any, Any], object]  # of numbers, of texts, or of whole columns
_ORDER: dict[str, _Compare] = {
    "==": operator.eq,
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
_DEEPEST = 100


class WhereError(ValueError):
    """A condition that cannot be understood, or does not fit the columns."""


@dataclass(frozen=True)
class _Column:
    key: str


@dataclass(frozen=True)
class _Value:
    value: str | float
    kind: str  # us, bytes, share, number, text


class _Token(NamedTuple):
    kind: str  # value, sign, word, end
    text: str
    at: int  # place in the condition
    value: _Value = _Value("", "text")  # of the kind "value"


Mask = Callable[[Mapping[str, Array]], BoolArray]


@dataclass(frozen=True)
class Condition:
    """A condition that was understood."""

    text: str
    columns: frozenset[str]  # what it looks at
    _mask: Mask

    def mask(self, columns: Mapping[str, Array]) -> BoolArray:
        """For each row of the columns, whether the condition holds."""
        for key in sorted(self.columns):
            if key not in columns:
                raise WhereError(
                    f"the condition {self.text!r} uses {key}; expected one of {', '.join(columns)}"
                )
        return self._mask(columns)


def where(text: str) -> Condition:
    """Understand a condition; a WhereError says where it could not be."""
    return _Parser(text).condition()


class _Parser:
    def __init__(self, text: str) -> None:
        self.text = text
        self.place = 0
        self.depth = 0
        self.columns: set[str] = set()
        self.tokens = self._tokens()

    def _tokens(self) -> list[_Token]:
        tokens: list[_Token] = []
        at = 0
        while self.text[at:].strip():
            match = _TOKEN.match(self.text, at)
            if match is None:
                raise self.error("unexpected text", at + len(self.text[at:]) - len(self.text[at:].lstrip()))
            kind, begun = str(match.lastgroup), match.start(str(match.lastgroup))
            if match.group("number") is not None:
                begun = match.start("number")
                tokens.append(_Token("value", "", begun, self._number(match, begun)))
            elif kind == "text":
                unquoted = re.sub(r"\\([\"'])", r"\1", match.group("text")[1:-1])
                tokens.append(_Token("value", "", begun, _Value(unquoted, "text")))
            else:
                tokens.append(_Token(kind, match.group(kind), begun))
            at = match.end()
        tokens.append(_Token("end", "", len(self.text)))
        return tokens

    def _number(self, match: re.Match[str], at: int) -> _Value:
        number, unit = float(match.group("number").replace("_", "")), match.group("unit")
        if unit is None:
            return _Value(number, "number")
        if unit in _SCALES:
            return _Value(number * _SCALES[unit], "number")
        if unit.lower() not in _UNITS:
            raise self.error(f"unknown unit {unit!r}", at)
        kind, scale = _UNITS[unit.lower()]
        return _Value(number * scale, kind)

    def error(self, problem: str, at: int | None = None) -> WhereError:
        at = self.tokens[self.place].at if at is None else at
        return WhereError(f"condition {self.text!r}, at {self.text[at : at + 20] or 'its end'!r}: {problem}")

    # ------------------------------------------------------------------------------------------------ grammar

    def next(self) -> _Token:
        token = self.tokens[self.place]
        self.place += 1
        return token

    def peek(self, *words: str) -> bool:
        token = self.tokens[self.place]
        return token.kind in {"sign", "word"} and token.text.lower() in words

    def condition(self) -> Condition:
        if self.tokens[0].kind == "end":
            raise self.error('empty; expected something like name ~ "conv"')
        mask = self.either()
        if self.tokens[self.place].kind != "end":
            raise self.error("expected `and`, `or` or the end")
        return Condition(self.text, frozenset(self.columns), mask)

    def either(self) -> Mask:
        self.depth += 1
        if self.depth > _DEEPEST:
            raise self.error(f"nested more than {_DEEPEST} deep")
        parts = [self.both()]
        while self.peek("or"):
            self.next()
            parts.append(self.both())
        self.depth -= 1
        if len(parts) == 1:
            return parts[0]
        return lambda columns: _combined(np.logical_or, [part(columns) for part in parts])

    def both(self) -> Mask:
        parts = [self.negated()]
        while self.peek("and"):
            self.next()
            parts.append(self.negated())
        if len(parts) == 1:
            return parts[0]
        return lambda columns: _combined(np.logical_and, [part(columns) for part in parts])

    def negated(self) -> Mask:
        turned = False
        while self.peek("not"):
            self.next()
            turned = not turned
        inner = self.single()
        return (lambda columns: ~inner(columns)) if turned else inner

    def single(self) -> Mask:
        if self.peek("("):
            self.next()
            inner = self.either()
            if not self.peek(")"):
                raise self.error("expected )")
            self.next()
            return inner
        return self.comparison()

    def operand(self) -> _Column | _Value:
        token = self.next()
        if token.kind == "value":
            return token.value
        if token.kind != "word" or token.text.lower() in {"and", "or", "not", "in"}:
            raise self.error("expected a column or a value", token.at)
        try:
            key = column_key(token.text)
        except KeyError as error:
            raise self.error(error.args[0], token.at) from None
        self.columns.add(key)
        return _Column(key)

    def comparison(self) -> Mask:
        left, begun = self.operand(), self.tokens[self.place].at
        kind, sign, *_ = self.next()
        if kind == "word" and sign.lower() == "in":
            return self.member(left, begun)
        if kind != "sign" or sign not in {*_ORDER, "~", "!~"}:
            raise self.error("expected a comparison: == != < <= > >= ~ !~ in", begun)
        right = self.operand()
        if sign in {"~", "!~"}:
            return self.found(left, right, sign == "~", begun)
        if isinstance(left, _Value):
            left, right, sign = right, left, _MIRRORED.get(sign, sign)
        if isinstance(left, _Value):
            raise self.error("both sides are values; expected a column on one side", begun)
        if isinstance(right, _Column):
            one, two = left.key, right.key
            return lambda columns: _ordered(columns[one], columns[two], _ORDER[sign])
        self.fits(left.key, right, begun)
        key, value = left.key, right.value
        return lambda columns: _ordered(columns[key], value, _ORDER[sign])

    def member(self, left: _Column | _Value, begun: int) -> Mask:
        if isinstance(left, _Value) or not self.peek("("):
            raise self.error('expected COLUMN in ("a", "b")', begun)
        values = []
        while not self.peek(")"):
            self.next()  # ( or ,
            value = self.operand()
            if isinstance(value, _Column):
                raise self.error("expected values in the list", begun)
            self.fits(left.key, value, begun)
            values.append(value.value)
            if not self.peek(")", ","):
                raise self.error("expected , or )")
        self.next()
        key = left.key
        return lambda columns: _combined(
            np.logical_or, [_ordered(columns[key], value, operator.eq) for value in values]
        )

    def found(self, left: _Column | _Value, right: _Column | _Value, wanted: bool, begun: int) -> Mask:
        if isinstance(left, _Value) or isinstance(right, _Column) or not isinstance(right.value, str):
            raise self.error('expected COLUMN ~ "regular expression"', begun)
        try:
            pattern = re.compile(right.value)
        except re.error as error:
            raise self.error(f"not a valid regular expression: {error}", begun) from None
        key = left.key

        def mask(columns: Mapping[str, Array]) -> BoolArray:
            known: dict[str, bool] = {}
            held = []
            for value in columns[key].tolist():
                text = _text(value)
                if text not in known:
                    known[text] = bool(pattern.search(text))
                held.append(known[text] == wanted)
            return np.array(held, bool)

        return mask

    def fits(self, key: str, value: _Value, at: int) -> None:
        """Refuse what can never be meant: a time compared with bytes, a number with a word."""
        unit = COLUMNS[key].unit if key in COLUMNS else "number"
        if value.kind in {"us", "bytes", "share"} and unit != value.kind:
            raise self.error(f"{key} is in {unit}, the value is in {value.kind}", at)
        if value.kind == "text" and unit not in {"text", "number"}:
            raise self.error(f"{key} is a number ({unit}), the value is text", at)


def _combined(how: np.ufunc, masks: list[BoolArray]) -> BoolArray:
    mask: BoolArray = how.reduce(masks)
    return mask


def _text(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, (list, tuple)) and all(isinstance(item, str) for item in value):
        return ";".join(value)
    return str(value)


def _ordered(values: Array, other: Array | str | float, compare: _Compare) -> BoolArray:
    if values.dtype != object and not (isinstance(other, np.ndarray) and other.dtype == object):
        if isinstance(other, str):
            return np.array([bool(compare(str(value), other)) for value in values.tolist()], bool)
        return np.asarray(compare(values, other), bool)
    others = other.tolist() if isinstance(other, np.ndarray) else [other] * len(values)
    return np.array([_pair(one, two, compare) for one, two in zip(values.tolist(), others)], bool)


def _pair(one: object, two: object, compare: _Compare) -> bool:
    if one is None or two is None:
        return compare is operator.ne and one is not two
    if isinstance(one, (int, float)) and isinstance(two, (int, float)):
        return bool(compare(one, two))
    return bool(compare(_text(one), _text(two)))
