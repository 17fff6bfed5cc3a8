"""The parser of the command line: argparse's, with suggestions for typing errors and help that fits the terminal."""

from __future__ import annotations

import argparse
import difflib
import re
import textwrap
from collections.abc import Iterable, Sequence

from ._other_words import OTHER_OPTIONS, OTHER_WORDS


class HelpFormatter(argparse.HelpFormatter):
    """Wraps paragraphs to the terminal; lines that are indented (examples) and the line before them stay as they are."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        paragraphs = re.split(r"\n\s*\n", textwrap.dedent(text).strip())
        return "\n\n".join(self._paragraph(paragraph, width, indent) for paragraph in paragraphs) + "\n"

    def _paragraph(self, paragraph: str, width: int, indent: str) -> str:
        lines = paragraph.splitlines()
        if any(line.startswith(" ") for line in lines):
            return "\n".join(indent + line for line in lines)
        return textwrap.fill(
            " ".join(lines), width, initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False
        )


class Parser(argparse.ArgumentParser):
    """A parser that says what a word with a typing error may have meant."""

    def parse_args(self, args=None, namespace=None):  # type: ignore[no-untyped-def]
        """As argparse does; an option that does not exist is answered by the sub-command's parser."""
        options, unknown = self.parse_known_args(args, namespace)
        if unknown:
            parser = self._of_command(getattr(options, "command", None))
            parser.error(
                _unknown_arguments(unknown, parser._option_string_actions) + _one_file(unknown, parser)
            )
        return options

    def _of_command(self, command: str | None) -> argparse.ArgumentParser:
        for action in self._actions:
            if isinstance(action, argparse._SubParsersAction) and command in action.choices:
                parser: argparse.ArgumentParser = action.choices[command]
                return parser
        return self

    def _check_value(self, action: argparse.Action, value: object) -> None:
        if action.choices is None or value in action.choices:
            return
        if isinstance(action, argparse._SubParsersAction) and str(value).lower() in OTHER_WORDS:
            raise argparse.ArgumentError(action, f"there is no {value!r}: {OTHER_WORDS[str(value).lower()]}")
        hint = did_you_mean(str(value), map(str, action.choices))
        if not hint:
            super()._check_value(action, value)
        raise argparse.ArgumentError(action, f"there is no {value!r}{hint}")


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """` (did you mean NAME?)`, or nothing if no known word is near."""
    names = list(known)
    near = difflib.get_close_matches(word.lower(), names, n=1, cutoff=0.6)
    if not near:  # a beginning that only one word has
        near = [name for name in names if len(word) > 1 and name.startswith(word.lower())][:2]
        near = near if len(near) == 1 else []
    return f" (did you mean {near[0]}?)" if near else ""


def _one_file(words: Sequence[str], parser: argparse.ArgumentParser) -> str:
    """What takes several traces, where more than one was given to a command that takes one."""
    takes_one = [action.metavar for action in parser._actions if not action.option_strings] == ["FILE"]
    if not takes_one or any(word.startswith("-") for word in words):
        return ""
    return "; expected one FILE: `diff` compares two traces, `fleet` the ranks of a job, `merge` puts files together"


def _unknown_arguments(words: Sequence[str], options: Iterable[str]) -> str:
    names = list(options)
    parts = [
        _unknown_option(word.partition("=")[0], names) if word.startswith("-") else word for word in words
    ]
    return f"unrecognized arguments: {' '.join(parts)}"


def _unknown_option(word: str, names: Sequence[str]) -> str:
    needed, written = OTHER_OPTIONS.get(word, ("", ""))
    return f"{word} (did you mean {written}?)" if needed in names else f"{word}{did_you_mean(word, names)}"
