"""Fails every single write of every writer, and looks at what is left: the old file or the complete new one.

    python tests/fail_writes.py [--writer NAME ...]

A small library, compiled with `cc` and loaded before libc, lets the n-th open, write, fsync, rename or
mkdir below a folder fail, with "no space left on device" or "read-only file system"; n runs through all of
them. Prints one line per writer; ends with 1 if a file was lost, another one left behind, or an error was
no sentence.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import errno
import io
import os
import subprocess
import sys
import tempfile
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

SHIM = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>
static char folder[4096];
static long left = -1, seen;
static int error;
void fail_at(const char *below, long number, int code) {
    strcpy(folder, below); left = number; error = code; seen = 0;
}
long operations(void) { return seen; }
static int fails_path(const char *path) {
    if (left < 0 || strncmp(path, folder, strlen(folder))) return 0;
    seen++;
    if (left == 0 || --left) return 0;
    errno = error;
    return 1;
}
static int fails_fd(int fd) {
    char link[64], path[4096];
    if (left < 0) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t size = readlink(link, path, sizeof path - 1);
    if (size < 0) return 0;
    path[size] = 0;
    return fails_path(path);
}
#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))
#define OPEN(name) int name(const char *path, int flags, ...) { \
    va_list rest; va_start(rest, flags); mode_t mode = va_arg(rest, mode_t); va_end(rest); \
    if ((flags & (O_WRONLY | O_RDWR | O_CREAT)) && fails_path(path)) return -1; \
    return REAL(name)(path, flags, mode); }
OPEN(open) OPEN(open64)
ssize_t write(int fd, const void *data, size_t size) {
    return fails_fd(fd) ? -1 : REAL(write)(fd, data, size);
}
ssize_t pwrite64(int fd, const void *data, size_t size, off64_t at) {
    return fails_fd(fd) ? -1 : REAL(pwrite64)(fd, data, size, at);
}
int fsync(int fd) { return fails_fd(fd) ? -1 : REAL(fsync)(fd); }
int rename(const char *from, const char *to) { return fails_path(to) ? -1 : REAL(rename)(from, to); }
int mkdir(const char *path, mode_t mode) { return fails_path(path) ? -1 : REAL(mkdir)(path, mode); }
"""
OLD = b"the old content"
Writer = Callable[[str], Any]


def command(*words: str) -> Writer:
    """A command that writes to a path ({})."""

    def write(path: str) -> None:
        from mindtorch_prof.cli import main

        err = io.StringIO()
        with contextlib.redirect_stderr(err), contextlib.redirect_stdout(io.StringIO()):
            code = main([word.replace("{}", path) for word in words])
        if code:
            raise Refused(code, err.getvalue())

    return write


class Refused(Exception):
    """A command ended with an exit code."""


def writers(source: str) -> dict[str, tuple[str, Writer]]:
    """By name: the ending of the file, and what writes it."""
    import mindtorch_v2 as torch
    from mindtorch_v2.profiler import profile

    with profile(record_shapes=True, profile_memory=True, with_stack=True) as prof:
        torch.nn.Linear(4, 4)(torch.rand(2, 4)).sum().backward()
    prof.export_chrome_trace(source)
    prof.export_chrome_trace(source + ".gz")
    weights = {"w": torch.ones(40, 40)}
    return {
        "export_chrome_trace": ("t.json", prof.export_chrome_trace),
        "export_chrome_trace, packed": ("t.json.gz", prof.export_chrome_trace),
        "save": ("t.mtrace", prof.save),
        "export_stacks": ("t.txt", lambda path: prof.export_stacks(path, "self_cpu_time_total")),
        "export_memory_timeline": ("t.html", lambda path: prof.export_memory_timeline(path, "cpu")),
        "report": ("t.html", command("report", source, "-o", "{}")),
        "slice": ("t.json.gz", command("slice", source, "-o", "{}")),
        "merge": ("t.json", command("merge", source, source + ".gz", "-o", "{}")),
        "redact": ("t.json", command("redact", source, "-o", "{}")),
        "convert --to chrome": ("t.json", command("convert", source, "--to", "chrome", "-o", "{}")),
        "convert --to native": ("t.mtrace", command("convert", source, "--to", "native", "-o", "{}")),
        "convert --to csv": ("t.csv", command("convert", source, "--to", "csv", "-o", "{}")),
        "convert --to speedscope": ("t.json", command("convert", source, "--to", "speedscope", "-o", "{}")),
        "critical-path": ("t.json", command("critical-path", source, "-o", "{}")),
        "check --write-baseline": ("t.json", command("check", source, "--write-baseline", "{}")),
        "torch.save": ("t.pt", lambda path: torch.save(weights, path)),
    }


def outcome(write: Writer, path: str, number: int, code: int, shim: ctypes.CDLL) -> tuple[str, bool]:
    """Write in a forked process whose n-th operation fails: the problem, and whether it came to the n-th."""
    reading, writing = os.pipe()
    child = os.fork()
    if child:
        os.close(writing)
        with open(reading, encoding="utf-8") as answer:
            text = answer.read()
        os.waitpid(child, 0)
        came, _, problem = text.partition(" ")
        return problem, came == "1"
    problem = ""
    try:
        warnings.simplefilter("ignore")
        shim.fail_at(os.path.dirname(path).encode() + b"/", ctypes.c_long(number), code)
        try:
            write(path)
        except OSError as error:
            if error.errno != code:
                problem = f"another error: {error!r}"
        except RuntimeError as error:  # what torch raises where a file of torch.save cannot be opened
            if not isinstance(error.__cause__ or error.__context__, OSError):
                problem = repr(error)
        except Refused as error:
            exit_code, message = error.args
            if exit_code != 2 or message.count("\n") != 1 or "Traceback" in message:
                problem = f"exit code {exit_code}: {message!r}"
        except BaseException:
            problem = traceback.format_exc().replace("\n", " | ")
        came = shim.operations() >= number
        shim.fail_at(b"-", ctypes.c_long(-1), 0)
        os.write(writing, f"{int(came)} {problem}".encode())
    finally:
        os._exit(0)
    raise AssertionError


def sweep(name: str, ending: str, write: Writer, shim: ctypes.CDLL) -> list[str]:
    """Fail all operations of a writer, one after the other; the problems."""
    problems = []
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, ending)
        warnings.simplefilter("ignore")
        with contextlib.redirect_stdout(io.StringIO()):
            write(path)  # imports what it needs
        complete = os.path.getsize(path)
        for code in (errno.ENOSPC, errno.EROFS):
            number, came = 0, True
            while came:
                number += 1
                Path(path).write_bytes(OLD)
                problem, came = outcome(write, path, number, code, shim)
                content = Path(path).read_bytes() if os.path.exists(path) else b""
                if content != OLD and abs(len(content) - complete) > 64:
                    problem += f" the file has {len(content)} bytes, the complete one {complete}"
                if os.listdir(folder) != [ending]:
                    problem += f" left behind: {sorted(os.listdir(folder))}"
                    for litter in set(os.listdir(folder)) - {ending}:
                        os.unlink(os.path.join(folder, litter))
                if problem:
                    problems.append(f"{name}, operation {number}, {errno.errorcode[code]}: {problem}")
    print(f"{name:30} {number - 1:4} operations, {len(problems)} problems", flush=True)
    return problems


def sweep_cache(source: str, shim: ctypes.CDLL) -> list[str]:
    """The cache of a file: opening it never fails."""
    from mindtorch_prof import load
    from mindtorch_prof.load import json_cache

    json_cache.SMALLEST = 1
    expected = len(load(source).trace)
    problems: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "t.json")

        def open_it(_: str) -> None:
            assert len(load(path, cache=True).trace) == expected

        for code in (errno.ENOSPC, errno.EROFS):
            number, came = 0, True
            while came:
                number += 1
                for old in os.listdir(folder):
                    os.unlink(os.path.join(folder, old))
                Path(path).write_bytes(Path(source).read_bytes())
                os.utime(path, (1e9, 1e9))
                problem, came = outcome(open_it, path, number, code, shim)
                litter = set(os.listdir(folder)) - {"t.json", ".t.json.cache.mtrace"}
                if problem or litter or len(load(path, cache=True).trace) != expected:
                    problems.append(f"cache, operation {number}, {errno.errorcode[code]}: {problem} {litter}")
    print(f"{'cache':30} {number - 1:4} operations, {len(problems)} problems", flush=True)
    return problems


def sweep_spill(shim: ctypes.CDLL) -> list[str]:
    """A spilled recording whose n-th operation fails: the program goes on, and the folder can be read."""
    import mindtorch_prof
    import mindtorch_v2 as torch
    from mindtorch_prof.load.spill import spill_folders
    from mindtorch_v2.profiler import profile
    from mindtorch_v2.profiler.record import keeper

    keeper.PERIOD_S = 0.01
    problems: list[str] = []
    for code in (errno.ENOSPC, errno.EROFS):
        number, came = 0, True
        while came and number < 60:
            number += 1
            with tempfile.TemporaryDirectory() as folder:

                def record(path: str) -> None:
                    import time

                    x = torch.ones(2)
                    with profile(spill_dir=os.path.dirname(path)) as prof:
                        for _ in range(5):
                            x + 1
                            time.sleep(0.015)
                    assert sum(row.count for row in prof.key_averages() if row.key == "aten::add") == 5

                problem, came = outcome(record, os.path.join(folder, "x"), number, code, shim)
                for each in spill_folders(folder):
                    try:
                        mindtorch_prof.load(each)
                    except mindtorch_prof.NotATraceError:
                        pass  # nothing was written
                if problem:
                    problems.append(f"spill, operation {number}, {errno.errorcode[code]}: {problem}")
    print(f"{'spill':30} {number - 1:4} operations, {len(problems)} problems", flush=True)
    return problems


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--writer", nargs="*", help="only these; the names are those that are printed")
    options = parser.parse_args()
    if "FAIL_WRITES_SHIM" not in os.environ:
        with tempfile.TemporaryDirectory() as folder:
            library = os.path.join(folder, "shim.so")
            Path(folder, "shim.c").write_text(SHIM)
            subprocess.run(
                ["cc", "-shared", "-fPIC", "-w", "-o", library, f"{folder}/shim.c", "-ldl"], check=True
            )
            environment = {**os.environ, "LD_PRELOAD": library, "FAIL_WRITES_SHIM": library}
            return subprocess.run([sys.executable, *sys.argv], env=environment, check=False).returncode
    shim = ctypes.CDLL(os.environ["FAIL_WRITES_SHIM"])
    problems: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        source = os.path.join(folder, "source.json")
        known = writers(source)
        for name, (ending, write) in known.items():
            if not options.writer or name in options.writer:
                problems += sweep(name, ending, write, shim)
        if not options.writer or "cache" in options.writer:
            problems += sweep_cache(source, shim)
        if not options.writer or "spill" in options.writer:
            problems += sweep_spill(shim)
    for problem in problems:
        print(problem[:1500])
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
