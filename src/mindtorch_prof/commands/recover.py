"""Write a trace file from a recording that was spilled to a folder.

The folder is what profile(spill_dir=...) or run --spill wrote while the program
ran. The program may have been killed at any moment: the trace has everything
up to the last whole chunk, and a line says how the recording ended and what is
missing. All other commands open such a folder as well. A folder with several
recordings (one per cycle of a schedule, or process) gives one numbered file each.

example:
  mindtorch-prof recover p/ -o trace.json.gz
  mindtorch-prof recover p/
  mindtorch-prof summary p/
"""

from __future__ import annotations

import argparse
import os
import sys

from . import _common
from ._common import CommandError
from ._options import path_to_write


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `recover`."""
    _common.add_file(
        parser, "folder", help="the spill folder: of one recording, or with several in it", cached=False
    )
    parser.add_argument(
        "-o",
        "--output",
        type=path_to_write,
        metavar="OUT",
        help="the trace file to write (the folder's name with .pt.trace.json.gz); with several recordings, one numbered file each",
    )
    _common.add_keep_metadata(parser)


def run(options: argparse.Namespace) -> int:
    """Write the files; 1 if a recording cannot be read."""
    from ..live.ranks import with_part
    from ..load.spill import spill_folders

    folders = spill_folders(options.folder) if os.path.isdir(options.folder) else []
    if not folders:
        raise CommandError(
            f"{options.folder}: holds no spilled recording; expected the folder of profile(spill_dir=...) or run --spill"
        )
    target = options.output or os.path.normpath(options.folder) + ".pt.trace.json.gz"
    exit_code = 0
    for number, folder in enumerate(folders, 1):
        path = target if len(folders) == 1 else with_part(target, str(number))
        try:
            _recover(folder, path, options)
        except CommandError as error:
            if len(folders) == 1:
                raise
            print(f"mindtorch-prof: {error}", file=sys.stderr)
            exit_code = 1
    return exit_code


def _recover(folder: str, path: str, options: argparse.Namespace) -> None:
    from ..export.exporters import EXPORTERS, ExportOptions

    loaded = _common.without_environment(_common.open_trace(folder, options), options)
    with _common.writing(path), _common.phase(f"writing {os.path.basename(path)}"):
        EXPORTERS["chrome"].write(loaded, path, ExportOptions(name=os.path.basename(folder)))
    how = loaded.health.line() or "the recording was stopped: nothing is missing"
    print(f"{path}: {len(loaded.trace):,} events; {how}", file=sys.stderr)
