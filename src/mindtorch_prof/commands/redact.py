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
import os

from ..text_escaping import terminal_text
from ._common import CommandError, phase, print_json, say, trace_files, writing
from ._options import path_to_write


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `redact`."""
    parser.add_argument(
        "file",
        metavar="FILE",
        help="a trace file (.json or .json.gz) or any other JSON file; of a folder, all traces in it",
    )
    parser.add_argument(
        "-o",
        "--output",
        type=path_to_write,
        metavar="OUT",
        help="the file to write (FILE itself); a name that ends in .gz is compressed",
    )
    parser.add_argument(
        "--format", choices=("table", "json"), default="table", help="format of the summary that is printed"
    )


def run(options: argparse.Namespace) -> int:
    """Write the file and say how much was replaced."""
    from ..rewrite.redact import redact_file

    files = trace_files([options.file])
    if options.output and len(files) > 1:
        raise CommandError(f"{options.file}: a folder with {len(files)} traces; expected one file for -o")
    results = []
    for path in files:
        if os.path.isdir(path):
            raise CommandError(f"{path}: a folder of files; expected one of its JSON files")
        try:
            with writing(options.output or path), phase(f"redacting {os.path.basename(path)}"):
                results.append(redact_file(path, options.output))
        except ValueError as error:
            raise CommandError(terminal_text(str(error))) from error
    if options.format == "json":
        print_json(
            {
                "rows": [
                    {"path": result.path, "replaced": dict(sorted(result.counts.items()))}
                    for result in results
                ]
            }
        )
        return 0
    for result in results:
        parts = [f"{count:,} of kind {kind!r}" for kind, count in sorted(result.counts.items()) if count]
        replaced = f"{result.total:,} texts replaced: {', '.join(parts)}" if parts else "nothing to redact"
        say(f"{result.path}: {replaced}")
    if any(result.total for result in results):
        say(
            "note: names of ops, files and modules stay; read the file before you publish it if they are confidential"
        )
    return 0
