"""Writes what commands print of recorded traces into the pages of the documentation.

    python tests/docs/paste_outputs.py [PAGE ...]

Only the lines below commands on the traces of `doc_pages.RECORDED`, and below `explain`, change. Of an output
that a page shows in parts (lines `...` stand for what is left out) the same parts are looked for: read the
difference before committing it. Figures in the text are not changed; `pytest tests/docs` names wrong ones.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / path) for path in ("src", "tests/helpers", "tests/mindtorch_v2/facts")]

from doc_folder import ecosystem, link_recorded, record_examples  # noqa: E402  # after the path is set
from doc_pages import PAGES, blocks, commands, pasted, printed_lines, run_command  # noqa: E402


def paste(page: Path, folder: Path) -> int:
    """Run the commands of a page and replace what has changed; gives how many outputs that were."""
    lines = page.read_text().splitlines()
    changes = []
    for block in blocks(page):
        for command in commands(block):
            if command.words[0] != "mindtorch-prof":
                continue
            code, output = run_command(command.text, folder)  # all of them: later ones may need their files
            if code != command.exit_code:
                raise SystemExit(f"{page}:{command.line}: exit code {code}\n{output}")
            if command.is_compared:
                new = pasted(printed_lines("\n".join(command.output)), printed_lines(output))
                lines_new = [(command.indent + line).rstrip() for line in new]
                changes.append((command.line, len(command.output), lines_new))
    changed = 0
    for start, length, new in reversed(changes):
        if lines[start : start + length] != new:
            lines[start : start + length] = new
            changed += 1
    if changed:
        page.write_text("\n".join(lines) + "\n")
    return changed


def main() -> None:
    if ecosystem() is None:
        raise SystemExit("no folder shared/ecosystem beside the checkout, which has the recorded traces")
    pages = [Path(name).resolve() for name in sys.argv[1:]] or PAGES
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        record_examples(folder)
        link_recorded(folder)
        for page in pages:
            if any(command.is_compared for block in blocks(page) for command in commands(block)):
                print(f"{page.relative_to(ROOT)}: {paste(page, folder)} outputs changed")


if __name__ == "__main__":
    main()
