"""Measure what opening a trace takes beside what is kept of it: traces of many shapes in, ratios out.

Each file is opened in a process of its own. The peak is the growth of resident memory while the file is
opened; what is kept is the sum of all arrays and objects that the Trace holds.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from itertools import chain

import loader

MEASURE = """
import dataclasses, json, re, sys
import numpy as np
import mindtorch_prof.load.open_trace
from mindtorch_prof import load

def status(field):
    return int(re.search(field + r":\\s+(\\d+)", open("/proc/self/status").read())[1]) * 1024

def kept(root):
    seen, todo, total = set(), [root], 0
    while todo:
        one = todo.pop()
        if id(one) in seen or isinstance(one, type):
            continue
        seen.add(id(one))
        if isinstance(one, np.ndarray):
            if one.base is None:
                total += one.nbytes
            else:
                todo.append(one.base)
            continue
        total += sys.getsizeof(one)
        if isinstance(one, dict):
            todo += [*one.keys(), *one.values()]
        elif isinstance(one, (tuple, list, set, frozenset)):
            todo += one
        elif not isinstance(one, (str, bytes, int, float, bool, type(None))):
            slots = [name for cls in type(one).__mro__ for name in getattr(cls, "__slots__", ())]
            todo += [getattr(one, name) for name in slots if hasattr(one, name)]
            todo += [getattr(one, "__dict__", None)]
    return total

load(sys.argv[1])
before = status("VmRSS")
open("/proc/self/clear_refs", "w").write("5")
trace = load(sys.argv[2]).trace
peak = status("VmHWM") - before
tables = (trace, trace.frames, trace.device, trace.memory, trace.counters)
print(json.dumps({"rows": sum(map(len, tables)), "peak": peak, "kept": kept(trace)}))
"""

_OP = '{"ph":"X","cat":"cpu_op","pid":1,"tid":1,'
_BEGIN, _END = '{"ph":"B","cat":"cpu_op","pid":1,"tid":1,', '{"ph":"E","pid":1,"tid":1,'


def _pairs(count: int, begin: str, end: str = "") -> Iterator[str]:
    """Pairs of a beginning and an end; `begin` and `end` hold what follows the time."""
    for i in range(count // 2):
        yield f'{_BEGIN}"ts":{4 * i}.5{begin % i if "%" in begin else begin}}}'
        yield f'{_END}"ts":{4 * i + 2}.5{end % i if "%" in end else end}}}'


def _frames(count: int) -> Iterator[str]:
    for i in range(count // 2):
        caller = (i - 1) if i % 8 else "null"
        where = f'"ts":{4 * i}.5,"dur":{3 if i % 8 == 7 else 4 * (8 - i % 8) - 1}'
        args = f'{{"Python id":{i},"Python parent id":{caller},"Ev Idx":{i}}}'
        head = f'{{"ph":"X","cat":"python_function","pid":1,"tid":1,"name":"m.py({i % 500}): f"'
        yield f'{head},{where},"args":{args}}}'
        yield f'{_OP}"name":"aten::add","ts":{4 * i + 1}.5,"dur":1,"args":{{"External id":{i + 1}}}}}'


def _nested(count: int, depth: int) -> Iterator[str]:
    for i in range(count):
        level = i % depth
        yield f'{_OP}"name":"f{level % 9}","ts":{3 * i}.5,"dur":{6 * depth - 6 * level},"args":{{}}}}'


def _flows(count: int) -> Iterator[str]:
    for i in range(count // 4):
        yield f'{_OP}"name":"aten::add","ts":{4 * i}.5,"dur":3,"args":{{"External id":{i + 1}}}}}'
        flow = f'"cat":"async_npu","id":{i},"name":"flow"'
        yield f'{{"ph":"s","pid":1,"tid":1,"ts":{4 * i + 1}.5,{flow}}}'
        yield f'{{"ph":"f","bp":"e","pid":0,"tid":7,"ts":{4 * i + 2}.5,{flow}}}'
        where = f'"pid":0,"tid":7,"ts":{4 * i + 2}.5,"dur":1'
        yield f'{{"ph":"X","cat":"kernel","name":"k",{where},"args":{{"device":0,"stream":7}}}}'


def _kernels(count: int, args: str) -> Iterator[str]:
    head = '{"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,'
    for i in range(count):
        further = args % i if args else ""
        all_args = f'{{"device":0,"stream":7,"correlation":{i}{further}}}'
        yield f'{head}"ts":{4 * i}.5,"dur":2,"args":{all_args}}}'


def _ops(count: int, rest: str) -> Iterator[str]:
    for i in range(count):
        yield f'{_OP}"ts":{4 * i}.5,"dur":2,{rest % i}}}'


_STACK = ";".join(f"package/module_{n}.py({n}): function_{n}" for n in range(12))
SHAPES: dict[str, Callable[[int], Iterable[str]]] = {
    "ordinary training job": lambda n: map(json.dumps, loader.Job().events(n)),
    "begin and end, few names": lambda n: _pairs(n, ',"name":"a"'),
    "begin and end, distinct names": lambda n: _pairs(n, ',"name":"a%d"'),
    "begin and end, distinct arguments": lambda n: _pairs(n, ',"name":"a","args":{"x":%d}'),
    "begin and end, arguments of ends": lambda n: _pairs(n, ',"name":"a"', ',"args":{"x":%d}'),
    "begin only": lambda n: (f'{_BEGIN}"ts":{i}.5,"name":"a"}}' for i in range(n)),
    "distinct names": lambda n: _ops(n, '"name":"operation %d"'),
    "distinct long names": lambda n: _ops(n, '"name":"' + 20 * "operation " + '%d"'),
    "distinct arguments": lambda n: _ops(n, '"name":"a","args":{"x":%d}'),
    "distinct inputs": lambda n: _ops(
        n, '"name":"a","args":{"Input Dims":[[%d,4],[4]],"Input type":["float","float"]}'
    ),
    "distinct stacks": lambda n: _ops(n, '"name":"a","args":{"Call stack":"' + _STACK + ';t.py(%d): main"}'),
    "the same stack": lambda n: (
        f'{_OP}"name":"a","ts":{4 * i}.5,"dur":2,"args":{{"Call stack":"{_STACK}"}}}}' for i in range(n)
    ),
    "Python calls": _frames,
    "many threads": lambda n: (
        f'{{"ph":"X","cat":"cpu_op","name":"a","pid":1,"tid":{i % 5000},"ts":{i}.5,"dur":2}}'
        for i in range(n)
    ),
    "many processes": lambda n: (
        f'{{"ph":"X","cat":"cpu_op","name":"a","pid":{i % 5000},"tid":1,"ts":{i}.5,"dur":2}}'
        for i in range(n)
    ),
    "a thread per event": lambda n: (
        f'{{"ph":"X","cat":"cpu_op","name":"a","pid":1,"tid":{i},"ts":{i}.5,"dur":2}}' for i in range(n)
    ),
    "nested 1,000 levels": lambda n: _nested(n, 1000),
    "nested 100,000 levels": lambda n: _nested(n, 100_000),
    "flows to kernels": _flows,
    "kernels": lambda n: _kernels(n, ""),
    "kernels, distinct arguments": lambda n: _kernels(n, ',"grid":[1,1,1],"x":%d'),
    "counters": lambda n: (
        f'{{"ph":"C","name":"memory","pid":1,"tid":1,"ts":{i}.5,"args":{{"bytes":{i}}}}}' for i in range(n)
    ),
    "allocations": lambda n: (
        f'{{"ph":"i","s":"t","cat":"cpu_instant_event","name":"[memory]","pid":1,"tid":1,"ts":{i}.5,'
        f'"args":{{"Bytes":64,"Addr":{i},"Total Allocated":{i},"Device Type":0,"Device Id":-1}}}}'
        for i in range(n)
    ),
    "rounded times": lambda n: (
        f'{_OP}"name":"a","ts":{4 * i},"dur":{6 if i % 3 == 0 else 2}}}' for i in range(n)
    ),
    "names of threads": lambda n: chain(
        _ops(n // 2, '"name":"a","x":%d'),
        (
            f'{{"ph":"M","name":"thread_name","pid":1,"tid":{i % 100},"args":{{"name":"thread {i}"}}}}'
            for i in range(n // 2)
        ),
    ),
}


def write(path: str, events: Iterable[str]) -> None:
    """Write a trace, packed if the name says so."""
    opened = gzip.open if path.endswith(".gz") else open
    with opened(path, "wt", encoding="utf-8") as file:
        file.write('{"schemaVersion":1,"traceEvents":[\n')
        separator = ""
        for event in events:
            file.write(separator + event)
            separator = ",\n"
        file.write("\n]}\n")


def measured(path: str, small: str, core: str) -> dict[str, int]:
    """What opening a file took in a process of its own."""
    environment = {**os.environ, "MINDTORCH_CORE": core}
    command = [sys.executable, "-c", MEASURE, small, path]
    return json.loads(subprocess.run(command, check=True, capture_output=True, env=environment).stdout)


def main() -> None:
    """Print a line for each shape and core."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--events", type=int, default=1_000_000, help="how many events a file has (1,000,000)"
    )
    parser.add_argument("--only", default="", help="shapes whose names hold this text")
    parser.add_argument("--core", action="append", choices=["c", "python"], help="the reader (both)")
    parser.add_argument("--packed", action="store_true", help="files packed by gzip")
    options = parser.parse_args()
    print(f"{'':34} {'core':6} {'rows':>9} {'peak':>8} {'kept':>8} {'ratio':>6}")
    with tempfile.TemporaryDirectory() as folder:
        small = os.path.join(folder, "small.json")
        write(small, SHAPES["ordinary training job"](100))
        path = os.path.join(folder, "t.json.gz" if options.packed else "t.json")
        for name, events in SHAPES.items():
            if options.only not in name:
                continue
            write(path, events(options.events))
            for core in options.core or ["c", "python"]:
                one = measured(path, small, core)
                mb = f"{one['peak'] / 1e6:5.0f} MB {one['kept'] / 1e6:5.0f} MB"
                print(
                    f"{name:34} {core:6} {one['rows']:9,} {mb} {one['peak'] / one['kept']:6.2f}", flush=True
                )


if __name__ == "__main__":
    main()
