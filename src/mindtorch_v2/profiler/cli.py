"""Command line: arguments in, an exit code out. Parses and prints; the work is done by library calls."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from typing import Protocol, cast

from .. import version
from .commands import demo


class Command(Protocol):
    """What a module in `commands/` offers; its docstring is the help text."""

    __doc__: str | None
    prepare_parser: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int]


_COMMANDS: dict[str, Command] = {
    "demo": cast("Command", demo),
}


class CommandError(Exception):
    """Something the user can mend: printed without a traceback, with its exit code."""

    def __init__(self, message: str, exit_code: int = 1) -> None:
        super().__init__(message)
        self.exit_code = exit_code


def make_parser() -> argparse.ArgumentParser:
    """The parser of all sub-commands."""
    parser = argparse.ArgumentParser(
        prog="mindtorch-prof",
        description="Profile torch-style programs and read their traces.",
        epilog="example:\n  mindtorch-prof demo --steps 20",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"%(prog)s {version.__version__}")
    subparsers = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, command in _COMMANDS.items():
        text = command.__doc__ or ""
        subparser = subparsers.add_parser(
            name,
            help=text.split("\n", 1)[0],
            description=text,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        command.prepare_parser(subparser)
        subparser.set_defaults(run=command.run)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run one sub-command and return its exit code."""
    options = make_parser().parse_args(argv)
    try:
        return options.run(options)
    except CommandError as error:
        print(f"mindtorch-prof: {error}", file=sys.stderr)
        return error.exit_code
    except BrokenPipeError:  # `mindtorch-prof ... | head`
        sys.stderr.close()
        return 0
