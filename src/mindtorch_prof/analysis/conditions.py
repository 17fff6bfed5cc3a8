"""Conditions: a text such as `name ~ "conv" and self_cpu > 10us` in; a mask over columns out. A language of its own: nothing is evaluated as
Python.

    condition   comparisons, combined with or, and, not, ( )
    comparison  COLUMN == != < <= > >= VALUE        the value may also come first; or a column on both sides
                COLUMN ~ "regular expression"       which may match anywhere in the text; !~ negates it
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
_MAX_DEPTH = 100


class WhereError(ValueError):
    """A condition that is not valid, or uses columns that the table does not have."""


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
    """A parsed condition."""

    text: str
    columns: frozenset[str]  # the keys of the columns it uses
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
    """Parse a condition; a WhereError says where it is not valid."""
    return _Parser(text).condition()


class _Parser:
    """A recursive-descent parser: one method per rule of the grammar, each returning a function from columns to a mask."""

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
            kind = str(match.lastgroup)
            start = match.start(kind)
            if match.group("number") is not None:
                start = match.start("number")
                tokens.append(_Token("value", "", start, self._number(match, start)))
            elif kind == "text":
                unquoted = re.sub(r"\\([\"'])", r"\1", match.group("text")[1:-1])
                tokens.append(_Token("value", "", start, _Value(unquoted, "text")))
            else:
                tokens.append(_Token(kind, match.group(kind), start))
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
        mask = self.disjunction()
        if self.tokens[self.place].kind != "end":
            raise self.error("expected `and`, `or` or the end")
        return Condition(self.text, frozenset(self.columns), mask)

    def disjunction(self) -> Mask:
        self.depth += 1
        if self.depth > _MAX_DEPTH:
            raise self.error(f"nested more than {_MAX_DEPTH} deep")
        parts = [self.conjunction()]
        while self.peek("or"):
            self.next()
            parts.append(self.conjunction())
        self.depth -= 1
        if len(parts) == 1:
            return parts[0]
        return lambda columns: _combined(np.logical_or, [part(columns) for part in parts])

    def conjunction(self) -> Mask:
        parts = [self.negation()]
        while self.peek("and"):
            self.next()
            parts.append(self.negation())
        if len(parts) == 1:
            return parts[0]
        return lambda columns: _combined(np.logical_and, [part(columns) for part in parts])

    def negation(self) -> Mask:
        negated = False
        while self.peek("not"):
            self.next()
            negated = not negated
        inner = self.primary()
        return (lambda columns: ~inner(columns)) if negated else inner

    def primary(self) -> Mask:
        if self.peek("("):
            self.next()
            inner = self.disjunction()
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
        left = self.operand()
        kind, sign, at, _ = self.next()
        if kind == "word" and sign.lower() == "in":
            return self.membership(left, at)
        if kind != "sign" or sign not in {*_ORDER, "~", "!~"}:
            raise self.error("expected a comparison: == != < <= > >= ~ !~ in", at)
        right = self.operand()
        if sign in {"~", "!~"}:
            return self.pattern_match(left, right, sign == "~", at)
        if isinstance(left, _Value):
            left, right, sign = right, left, _MIRRORED.get(sign, sign)
        if isinstance(left, _Value):
            raise self.error("both sides are values; expected a column on one side", at)
        if isinstance(right, _Column):
            left_key, right_key = left.key, right.key
            return lambda columns: _compared(columns[left_key], columns[right_key], _ORDER[sign])
        self.check_unit(left.key, right, at)
        key, value = left.key, right.value
        return lambda columns: _compared(columns[key], value, _ORDER[sign])

    def membership(self, left: _Column | _Value, at: int) -> Mask:
        if isinstance(left, _Value) or not self.peek("("):
            raise self.error('expected COLUMN in ("a", "b")', at)
        values = []
        while not self.peek(")"):
            self.next()  # ( or ,
            value = self.operand()
            if isinstance(value, _Column):
                raise self.error("expected values in the list", at)
            self.check_unit(left.key, value, at)
            values.append(value.value)
            if not self.peek(")", ","):
                raise self.error("expected , or )")
        self.next()
        key = left.key
        return lambda columns: _combined(
            np.logical_or, [_compared(columns[key], value, operator.eq) for value in values]
        )

    def pattern_match(self, left: _Column | _Value, right: _Column | _Value, wanted: bool, at: int) -> Mask:
        if isinstance(left, _Value) or isinstance(right, _Column) or not isinstance(right.value, str):
            raise self.error('expected COLUMN ~ "regular expression"', at)
        try:
            pattern = re.compile(right.value)
        except re.error as error:
            raise self.error(f"not a valid regular expression: {error}", at) from None
        key = left.key

        def mask(columns: Mapping[str, Array]) -> BoolArray:
            texts = [_text(value) for value in columns[key].tolist()]
            matches = {text: bool(pattern.search(text)) for text in set(texts)}
            return np.array([matches[text] == wanted for text in texts], bool)

        return mask

    def check_unit(self, key: str, value: _Value, at: int) -> None:
        """Raise an error for comparisons that make no sense: of a time with bytes, of a number with text."""
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


def _compared(values: Array, other: Array | str | float, compare: _Compare) -> BoolArray:
    if values.dtype != object and not (isinstance(other, np.ndarray) and other.dtype == object):
        if isinstance(other, str):
            return np.array([bool(compare(str(value), other)) for value in values.tolist()], bool)
        return np.asarray(compare(values, other), bool)
    others = other.tolist() if isinstance(other, np.ndarray) else [other] * len(values)
    return np.array(
        [_compared_pair(left, right, compare) for left, right in zip(values.tolist(), others)], bool
    )


def _compared_pair(left: object, right: object, compare: _Compare) -> bool:
    if left is None or right is None:
        return compare is operator.ne and left is not right
    if isinstance(left, (int, float)) and isinstance(right, (int, float)):
        return bool(compare(left, right))
    return bool(compare(_text(left), _text(right)))
