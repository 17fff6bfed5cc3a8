"""Command line: arguments in, an exit code out. Parses and prints; the work is done by library calls.

Exit codes: 0 fine, 1 something was found (by commands that look for something), 2 misuse, or a file that cannot be read.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import os
import sys
import traceback
from collections.abc import Callable, Sequence
from typing import Protocol, cast

from .. import version
from .commands._common import CommandError

__all__ = ["Command", "CommandError", "main", "make_parser"]


class Command(Protocol):
    """What a module in `commands/` offers; its docstring is the help text."""

    __doc__: str | None
    prepare_parser: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int]


# Sub-commands in the order in which the help lists them; each is the module of its name in `commands/`, imported when it is asked for.
_COMMANDS: tuple[str, ...] = (
    "demo",
    "run",
    "show",
    "tree",
    "summary",
    "doctor",
    "advise",
    "diff",
    "check",
    "slice",
    "merge",
    "ranks",
    "stacks",
    "convert",
    "query",
    "explain",
    "report",
)


def command(name: str) -> Command:
    """The module of a sub-command."""
    return cast("Command", importlib.import_module(f".commands.{name}", __package__))


def make_parser(names: Sequence[str] = _COMMANDS) -> argparse.ArgumentParser:
    """The parser of all sub-commands, or of some."""
    parser = argparse.ArgumentParser(
        prog="mindtorch-prof",
        description="Profile torch-style programs and read the traces that they and torch's own profiler write.",
        epilog="example:\n  mindtorch-prof demo --steps 20",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"%(prog)s {version.__version__}")
    subparsers = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name in names:
        module = command(name)
        text = module.__doc__ or ""
        subparser = subparsers.add_parser(
            name,
            help=text.split("\n", 1)[0].replace("%", "%%"),
            description=text,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        module.prepare_parser(subparser)
        subparser.set_defaults(run=module.run)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run one sub-command and return its exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    wanted = arguments[:1] if arguments and arguments[0] in _COMMANDS else _COMMANDS
    options = make_parser(wanted).parse_args(arguments)
    try:
        code = options.run(options)
        sys.stdout.flush()
    except CommandError as error:
        print(f"mindtorch-prof: {error}", file=sys.stderr)
        return error.exit_code
    except BrokenPipeError:  # `mindtorch-prof ... | head`
        with contextlib.suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        return 130
    except Exception:  # a defect of ours must not look like a finding (1)
        traceback.print_exc()
        return 2
    return code
