"""A task of a fleet's runner that takes a while; in a module that worker processes can import."""

from __future__ import annotations

import os
import time
from pathlib import Path

from mindtorch_prof.fleet.task import Task


class Slow:
    """A task that takes a while and writes down who runs it, so that a worker can be killed in the middle."""

    def __init__(self, folder: Path, deadly: str = "") -> None:
        self.folder, self.deadly = str(folder), deadly

    def __call__(self, path: str) -> bytes:
        name = os.path.basename(path)
        Path(self.folder, f"{name}-{os.getpid()}").touch()
        if name == self.deadly:
            os._exit(1)
        time.sleep(0.1)
        return Task()(path)
