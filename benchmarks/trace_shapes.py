"""Trace files of many shapes, ordinary and hostile: a number of events in, a file out."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, zip_longest

import loader

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


def _flows(count: int, flow_of: str = '"cat":"async_npu","id":%d') -> Iterator[str]:
    """Ops, kernels, and flows between them. `flow_of`: the category and the id of the flow of each."""
    for i in range(count // 4):
        yield f'{_OP}"name":"aten::add","ts":{4 * i}.5,"dur":3,"args":{{"External id":{i + 1}}}}}'
        flow = f'{flow_of % i},"name":"flow"'
        yield f'{{"ph":"s","pid":1,"tid":1,"ts":{4 * i + 1}.5,{flow}}}'
        yield f'{{"ph":"f","bp":"e","pid":0,"tid":7,"ts":{4 * i + 2}.5,{flow}}}'
        where = f'"pid":0,"tid":7,"ts":{4 * i + 2}.5,"dur":1'
        yield f'{{"ph":"X","cat":"kernel","name":"k",{where},"args":{{"device":0,"stream":7}}}}'


def _kernels(
    count: int, args: str = "", name: str = "k", of_stream: str = '"device":0,"stream":7'
) -> Iterator[str]:
    for i in range(count):
        head = f'{{"ph":"X","cat":"kernel","name":"{name.replace("%d", str(i))}","pid":0,"tid":7,'
        all_args = f'{of_stream},"correlation":{i}{args}'.replace("%d", str(i))
        yield f'{head}"ts":{4 * i}.5,"dur":2,"args":{{{all_args}}}}}'


def _device_marks(count: int) -> Iterator[str]:
    """Kernels, and rows of the host that only mark where they begin, as torch_npu's files have them."""
    for i in range(count // 2):
        times = f'"name":"k{i % 50}","ts":{4 * i}.5'
        yield f'{{"ph":"X","cat":"overhead",{times},"dur":0,"pid":1,"tid":1}}'
        yield f'{{"ph":"X","cat":"kernel",{times},"dur":2,"pid":0,"tid":7,"args":{{"device":0,"stream":7}}}}'


def _deep_frames(count: int, depth: int) -> Iterator[str]:
    """Python calls that nest deeply, each with an op inside."""
    for i in range(count // 2):
        level, first = i % depth, 8 * (i - i % depth)
        start, length = first + level, 6 * depth - 2 * level
        caller = i - 1 if level else "null"
        head = f'{{"ph":"X","cat":"python_function","pid":1,"tid":1,"name":"m.py({level % 500}): f"'
        ids = f'{{"Python id":{i},"Python parent id":{caller}}}'
        yield f'{head},"ts":{start}.5,"dur":{length},"args":{ids}}}'
        yield f'{_OP}"name":"aten::add","ts":{start}.6,"dur":0.1,"args":{{"External id":{i + 1}}}}}'


def _shuffled_pairs(count: int) -> Iterator[str]:
    """Begin and end events in no order of time."""
    yield from reversed([*_pairs(count, ',"name":"a"')])


def _forward_and_backward(count: int) -> Iterator[str]:
    """Ops and their nodes of the backward pass, each with a number of its forward thread of its own."""
    for i in range(count // 2):
        yield f'{_OP}"name":"a","ts":{4 * i}.5,"dur":2,"args":{{"Sequence number":{i},"Fwd thread id":0}}}}'
        args = f'{{"Sequence number":{i},"Fwd thread id":{i + 1}}}'
        yield f'{{"ph":"X","cat":"cpu_op","pid":1,"tid":2,"name":"aB","ts":{4 * i}.5,"dur":2,"args":{args}}}'


def _metadata(count: int, name: str, place: str) -> Iterator[str]:
    """Names of processes or threads. `place`: the process and thread of each."""
    for i in range(count):
        args = f'{{"name":"the name of number {i}"}}'
        yield f'{{"ph":"M","name":"{name}",{place.replace("%d", str(i))},"args":{args}}}'


def _mixed(count: int) -> Iterator[str]:
    """Events of all other shapes by turns."""
    left_out = {"mixed", "one name of 50 MB", *LITTLE_KEPT}
    others = [events for name, events in SHAPES.items() if name not in left_out]
    each = [iter(events(count // len(others))) for events in others]
    for events in zip_longest(*each):
        yield from filter(None, events)


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
    "begin and end, a thread per pair": lambda n: (
        f'{{"ph":"{phase}","cat":"cpu_op","name":"a","pid":1,"tid":{i},"ts":{i}.5}}'
        for i in range(n // 2)
        for phase in "BE"
    ),
    "begin and end, a process per pair": lambda n: (
        f'{{"ph":"{phase}","cat":"cpu_op","name":"a","pid":"p{i}","tid":1,"ts":{i}.5}}'
        for i in range(n // 2)
        for phase in "BE"
    ),
    "begin and end, a category per pair": lambda n: (
        f'{{"ph":"{phase}","cat":"c{i}","name":"a","pid":1,"tid":1,"ts":{i}.5}}'
        for i in range(n // 2)
        for phase in "BE"
    ),
    "begin and end, in no order": _shuffled_pairs,
    "begin only, a thread per event": lambda n: (
        f'{{"ph":"B","cat":"cpu_op","name":"a","pid":1,"tid":{i},"ts":{i}.5}}' for i in range(n)
    ),
    "end only": lambda n: (f'{_END}"ts":{i}.5}}' for i in range(n)),
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
    "distinct keys of arguments": lambda n: _ops(n, '"name":"a","args":{"key %d":1}'),
    "arguments of 10,000 bytes": lambda n: _ops(n // 100, '"name":"a","args":{"x":"' + 10_000 * "x" + '%d"}'),
    "arguments nested 60 levels": lambda n: _ops(
        n // 4, '"name":"a","args":{"x":' + 60 * "[" + "%d" + 60 * "]" + "}"
    ),
    "arguments nested 500 levels": lambda n: _ops(
        n // 20, '"name":"a","args":{"x":' + 500 * "[" + "%d" + 500 * "]" + "}"
    ),
    "names of 100,000 bytes": lambda n: _ops(n // 1000, '"name":"' + 100_000 * "n" + '%d"'),
    "one name of 50 MB": lambda n: _ops(1, '"name":"' + 50_000_000 * "n" + '%d"'),
    "a category per event": lambda n: (
        f'{{"ph":"X","cat":"c{i}","name":"a","pid":1,"tid":1,"ts":{i}.5,"dur":1}}' for i in range(n)
    ),
    "texts in place of numbers": lambda n: (
        f'{{"ph":"X","cat":"cpu_op","name":"a","pid":"1","tid":"1","ts":"{2 * i}.5","dur":"1"}}'
        for i in range(n)
    ),
    "events without a time": lambda n: (f'{_OP}"name":"a","dur":2}}' for _ in range(n)),
    "events that are no valid JSON": lambda n: (
        f'{_OP}"name":"a","ts":{2 * i}.5,"dur":1,"args":{{"x":NaN}}}}' for i in range(n // 10)
    ),
    "the same External id": lambda n: (
        f'{_OP}"name":"a","ts":{2 * i}.5,"dur":1,"args":{{"External id":1}}}}' for i in range(n)
    ),
    "forward threads": _forward_and_backward,
    "Python calls": _frames,
    "Python calls, distinct names": lambda n: (
        f'{{"ph":"X","cat":"python_function","pid":1,"tid":1,"name":"m.py({i}): f","ts":{2 * i}.5,"dur":1}}'
        for i in range(n)
    ),
    "deep Python calls with ops": lambda n: _deep_frames(n, 20_000),
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
    "flows, text ids": lambda n: _flows(n, '"cat":"async_npu","id":"flow %d"'),
    "flows, a category each": lambda n: _flows(n, '"cat":"category %d","id":1'),
    "flows only": lambda n: (
        f'{{"ph":"{phase}","cat":"async_npu","id":"{i}","name":"flow","pid":1,"tid":1,"ts":{i}.5}}'
        for i in range(n // 2)
        for phase in "sf"
    ),
    "kernels": _kernels,
    "kernels, distinct names": lambda n: _kernels(n, name="kernel %d"),
    "kernels, distinct arguments": lambda n: _kernels(n, ',"grid":[1,1,1],"x":%d'),
    "kernels, distinct keys": lambda n: _kernels(n, ',"key %d":1'),
    "a stream per kernel": lambda n: _kernels(n, of_stream='"device":0,"stream":%d'),
    "a device per kernel": lambda n: _kernels(n, of_stream='"device":%d,"stream":7'),
    "a process per kernel": lambda n: (
        f'{{"ph":"X","cat":"kernel","name":"k","pid":{i},"tid":{i},"ts":{i}.5,"dur":1,"args":{{"stream":7}}}}'
        for i in range(n)
    ),
    "marks of kernels": _device_marks,
    "counters": lambda n: (
        f'{{"ph":"C","name":"memory","pid":1,"tid":1,"ts":{i}.5,"args":{{"bytes":{i}}}}}' for i in range(n)
    ),
    "counters, a name each": lambda n: (
        f'{{"ph":"C","name":"c {i}","pid":1,"tid":1,"ts":{i}.5,"args":{{"bytes":{i}}}}}' for i in range(n)
    ),
    "instants": lambda n: (
        f'{{"ph":"i","s":"t","cat":"c","name":"i {i}","pid":1,"tid":1,"ts":{i}.5}}' for i in range(n)
    ),
    "allocations, a thread each": lambda n: (
        f'{{"ph":"i","s":"t","cat":"cpu_instant_event","name":"[memory]","pid":1,"tid":{i},"ts":{i}.5,'
        f'"args":{{"Bytes":64,"Addr":{i},"Total Allocated":{i},"Device Type":1,"Device Id":{i}}}}}'
        for i in range(n)
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
    "names of processes without events": lambda n: _metadata(n, "process_name", '"pid":%d,"tid":0'),
    "names of threads without events": lambda n: _metadata(n, "thread_name", '"pid":1,"tid":%d'),
    "a process per event, with names": lambda n: chain(
        _metadata(n // 2, "process_name", '"pid":%d,"tid":0'),
        (
            f'{{"ph":"X","cat":"cpu_op","name":"a","pid":{i},"tid":1,"ts":{i}.5,"dur":2}}'
            for i in range(n // 2)
        ),
    ),
    "mixed": _mixed,
}
# a Trace keeps next to nothing of these files: what opening them takes is compared with their size
LITTLE_KEPT = frozenset(
    {
        "arguments nested 500 levels",
        "end only",
        "events without a time",
        "flows only",
        "instants",
        "names of processes without events",
        "names of threads without events",
    }
)


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
