"""Command line: arguments in, an exit code out. Parses options and prints; library calls do the work.

Exit codes: 0 success; 1 findings, of commands that look for problems; 2 wrong usage, or a file that cannot be read; 3 more memory needed than
`--max-memory` allows, or than there is.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import os
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Protocol, cast

from . import core
from .commands._common import CommandError
from .commands._options import memory_size
from .commands._parser import HelpFormatter, Parser
from .commands._plugins import plugins
from .files import is_standard_output
from .load.errors import TraceError
from .memory_limit import memory_limit, memory_sentence
from .text_escaping import terminal_text
from .text_tables import show_everything
from .version import __version__

__all__ = ["Command", "CommandError", "main", "make_parser"]


class Command(Protocol):
    """The members of a module in `commands/`; its docstring is the help text."""

    __doc__: str | None
    prepare_parser: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int]


# Sub-commands in the order of the help text. Each is a module of this name (`-` is `_` there) in `commands/`, imported only if it runs.
_COMMANDS: tuple[str, ...] = (
    "show",
    "tree",
    "summary",
    "doctor",
    "advise",
    "roofline",
    "critical-path",
    "diff",
    "check",
    "slice",
    "merge",
    "redact",
    "ranks",
    "fleet",
    "device",
    "stacks",
    "convert",
    "recover",
    "query",
    "explain",
    "report",
    "run",
)


def commands(names: Sequence[str] = ()) -> dict[str, Command]:
    """The modules of these sub-commands, or of all: first those that other packages add, then the engine's own."""
    if names and set(names) <= set(_COMMANDS):
        return {name: _own_command(name) for name in names}
    modules: dict[str, Command] = {}
    for name, entry_point in plugins().items():
        if (names and name not in names) or name in _COMMANDS:
            continue  # `run` finds the library's part by its entry point itself
        try:
            modules[name] = entry_point.load()
        except ImportError:  # the engine's own commands work even if another package is broken
            if names:
                raise
    modules.update((name, _own_command(name)) for name in _COMMANDS if not names or name in names)
    return modules


def _own_command(name: str) -> Command:
    return cast("Command", importlib.import_module(f".commands.{name.replace('-', '_')}", __package__))


def make_parser(names: Sequence[str] = ()) -> argparse.ArgumentParser:
    """The parser of all sub-commands, or of some."""
    parser = Parser(
        prog="mindtorch-prof",
        description="Read and analyse traces of torch's profiler, and run programs under the profiler. "
        "`mindtorch-prof FILE` is `mindtorch-prof summary FILE`.",
        epilog="example:\n  mindtorch-prof summary trace.json.gz",
        formatter_class=HelpFormatter,
    )
    parser.add_argument(
        "--version", action=_ShowVersion, nargs=0, help="show the version and the core that runs"
    )
    subparsers = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, module in commands(names).items():
        text = module.__doc__ or ""
        subparser = subparsers.add_parser(
            name,
            help=text.split("\n", 1)[0].replace("%", "%%"),
            description=text,
            formatter_class=HelpFormatter,
        )
        module.prepare_parser(subparser)
        subparser.add_argument(
            "--max-memory",
            type=memory_size,
            metavar="SIZE",
            help="end with exit code 3 if a process of the command needs more memory: 500MB, 2GB (no limit)",
        )
        subparser.set_defaults(run=module.run)
    return parser


class _ShowVersion(argparse.Action):
    """Prints the version. Which core runs is looked up only then."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        print(f"{parser.prog} {__version__} (core: {core.name()})")
        parser.exit()


def _is_trace(word: str) -> bool:
    """Whether the first word of a command line is a file rather than a command: it exists, or has the name of a trace."""
    if word.startswith("-") or word in _COMMANDS or word in plugins():
        return False
    return os.path.exists(word) or word.endswith((".json", ".json.gz", ".sqlite", ".db", ".mtrace"))


@contextlib.contextmanager
def _messages_beside(output: str | None) -> Iterator[None]:
    """Print to standard error where standard output is the file that a command writes."""
    if output is None or not is_standard_output(output):
        yield
        return
    sys.stdout.flush()  # what was printed before comes first
    with contextlib.redirect_stdout(sys.stderr):
        yield


def _load_before_limit(options: argparse.Namespace) -> None:
    """Import what a command says that it needs before memory is limited."""
    load = getattr(options, "load", None)
    if load is not None:
        load(options)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one sub-command and return its exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    if not arguments:
        make_parser().print_help(sys.stderr)
        raise SystemExit(2)
    if arguments[0] == "help":  # `help` and `help COMMAND`, as other programs have it
        arguments = [*arguments[1:2], "--help"]
    if _is_trace(arguments[0]):
        arguments.insert(0, "summary")
    known = arguments[:1] if arguments[0] in _COMMANDS or arguments[0] in plugins() else ()
    options = make_parser(known).parse_args(arguments)
    try:
        with (
            show_everything(getattr(options, "wide", False)),
            _messages_beside(getattr(options, "output", None)),
            memory_limit(options.max_memory, partial(_load_before_limit, options)),
        ):
            code: int = options.run(options)
        sys.stdout.flush()
    except (CommandError, TraceError) as error:
        print(terminal_text(f"mindtorch-prof: {error}", lines=True), file=sys.stderr)
        return error.exit_code if isinstance(error, CommandError) else 2
    except MemoryError as error:
        print(f"mindtorch-prof: {memory_sentence(options.max_memory, error)}", file=sys.stderr)
        return 3
    except BrokenPipeError:  # `mindtorch-prof ... | head`
        with contextlib.suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        print("mindtorch-prof: interrupted", file=sys.stderr)
        return 130
    except Exception:  # a bug must not look like a finding (exit code 1)
        traceback.print_exc()
        return 2
    return code
