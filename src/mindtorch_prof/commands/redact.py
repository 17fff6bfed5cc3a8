"""Remove environment variables, tokens, user names and host names from a trace file.

Texts that hold them become REDACTED: the values of environments and command
lines in the metadata, tokens and passwords wherever they stand, the user's
name in paths, host names. Everything else stays as it is, byte for byte. The
file is replaced when the new one is complete; -o writes another file instead.

example:
  mindtorch-prof redact trace.json.gz
  mindtorch-prof redact trace.json.gz -o public.json.gz
"""

from __future__ import annotations

import argparse

from ._common import CommandError, print_json, progress, say, writing


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `redact`."""
    parser.add_argument(
        "file", metavar="FILE", help="a trace file (.json or .json.gz), or any other JSON file"
    )
    parser.add_argument(
        "-o",
        "--output",
        metavar="OUT",
        help="the file to write (FILE itself); a name that ends in .gz is compressed",
    )
    parser.add_argument(
        "--format", choices=("table", "json"), default="table", help="format of the summary that is printed"
    )


def run(options: argparse.Namespace) -> int:
    """Write the file and say how much was replaced."""
    from ..rewrite.redact import redact_file

    target = options.output or options.file
    try:
        with open(options.file, "rb"), progress(f"redacting {options.file}"), writing(target):
            result = redact_file(options.file, options.output)
    except OSError as error:
        raise CommandError(f"{options.file}: {error.strerror or error}") from error
    except ValueError as error:
        raise CommandError(str(error)) from error
    if options.format == "json":
        print_json({"path": result.path, "replaced": dict(sorted(result.counts.items()))})
        return 0
    if not result.total:
        say(f"{result.path}: nothing to redact")
        return 0
    parts = [f"{count:,} of kind {kind!r}" for kind, count in sorted(result.counts.items()) if count]
    say(f"{result.path}: {result.total:,} texts replaced: {', '.join(parts)}")
    say(
        "note: names of ops, files and modules stay; read the file before you publish it if they are confidential"
    )
    return 0
