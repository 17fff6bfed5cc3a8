"""Data pipes: what the ready-made ones give, refuse and warn of, how they pickle and hang together, and what a profile shows of them."""

from __future__ import annotations

import copy
import importlib
import io
import pickle
import random
import tempfile
from pathlib import Path
from typing import Any


def _parts(torch: Any) -> tuple[Any, Any]:
    base = f"{torch.__name__}.utils.data.datapipes"
    return importlib.import_module(base + ".iter"), importlib.import_module(base + ".map")


def _graph(torch: Any) -> Any:
    return importlib.import_module(f"{torch.__name__}.utils.data.graph")


def _double(x: Any) -> Any:
    return x * 2


def _is_even(x: int) -> bool:
    return x % 2 == 0


def _third(x: int) -> int:
    return x % 3


def _total(x: Any, y: Any) -> Any:
    return x + y


def _initial(name: str) -> str:
    return name[0]


def _length(pipe: Any) -> str:
    try:
        return str(len(pipe))
    except TypeError as error:
        return f"TypeError: {error}"


def _read(stream: Any) -> list[str]:
    lines = list(stream)
    stream.close()
    return lines


def wrapping(torch: Any, show: Any) -> None:
    it, _ = _parts(torch)
    source = [1, [2], 3]
    pipe = it.IterableWrapper(source)
    first = list(pipe)
    first[1].append(4)
    show(list(pipe), source, len(pipe), list(pipe) == list(pipe))
    shared = it.IterableWrapper(source, deepcopy=False)
    list(shared)[1].append(5)
    show(list(shared), source)
    numbers = it.IterableWrapper(range(3))
    show(
        list(numbers),
        len(numbers),
        repr(numbers),
        str(numbers),
        isinstance(numbers, torch.utils.data.IterableDataset),
    )
    made = it.IterableWrapper(x for x in range(3))
    show(show.warns(list, made))
    show.raises(len, made)
    show.raises(lambda: pipe[0])
    show.raises(lambda: pipe.nonsense)
    show(
        sorted(n for n in dir(pipe) if n in torch.utils.data.IterDataPipe.functions and "dataframe" not in n)
    )


def mapping(torch: Any, show: Any) -> None:
    it, _ = _parts(torch)
    numbers = it.IterableWrapper(range(5))
    show(list(numbers.map(_double)), list(it.Mapper(numbers, _double)), _length(numbers.map(_double)))
    rows = it.IterableWrapper([(0, 1, 2), (3, 4, 5)])
    show(list(rows.map(_double, input_col=1)), list(rows.map(_double, input_col=1, output_col=0)))
    show(list(rows.map(_total, input_col=[0, 2])), list(rows.map(_total, input_col=(0, 1), output_col=-1)))
    named = it.IterableWrapper([{"a": 1, "b": 2}])
    show(list(named.map(_double, input_col="a")), list(named.map(_double, input_col="a", output_col="c")))
    show(list(it.IterableWrapper([[1, 2], [3, 4]]).map(_double, input_col=0, output_col=[1])))
    show.raises(rows.map, _double, output_col=1)
    show.raises(rows.map, _double, input_col=0, output_col=[0, 1])
    show.raises(rows.map, _total, input_col=0)
    show.raises(rows.map, _double, input_col=[0, 1])
    show.raises(lambda: list(rows.map(_double, input_col=7)))
    show.raises(lambda: list(numbers.map(_double, input_col=0)))
    show.warns(numbers.map, lambda x: x)

    def local(x: int) -> int:
        return x

    show.warns(numbers.map, local)
    show(list(numbers.map(fn=_double)), list(numbers.map(torch.nn.Identity())))


def filtering(torch: Any, show: Any) -> None:
    it, _ = _parts(torch)
    numbers = it.IterableWrapper(range(6))
    show(list(numbers.filter(_is_even)), list(numbers.filter(filter_fn=_is_even)))
    rows = it.IterableWrapper([(0, 1), (1, 2), (2, 3)])
    show(list(rows.filter(_is_even, input_col=1)), _length(numbers.filter(_is_even)))
    show.raises(lambda: list(numbers.filter(_double)))
    show.raises(rows.filter, _total, input_col=0)


def batching(torch: Any, show: Any) -> None:
    it, _ = _parts(torch)
    numbers = it.IterableWrapper(range(7))
    batches = list(numbers.batch(3))
    show(batches, type(batches[0]).__name__, batches[0].as_str(">"), list(batches[0].raw_iterator()))
    show(
        list(numbers.batch(batch_size=3, drop_last=True)),
        _length(numbers.batch(3)),
        _length(numbers.batch(3, drop_last=True)),
    )
    show(list(numbers.batch(2).batch(2)), _length(numbers.filter(_is_even).batch(2)))
    show.raises(numbers.batch, 0)
    nested = it.IterableWrapper([[[0, 1], [2]], [[3], [4, 5], [6]]])
    show(list(nested.unbatch()), list(nested.unbatch(unbatch_level=2)), list(nested.unbatch(-1)))
    show.raises(lambda: list(nested.unbatch(4)))
    show.raises(lambda: list(nested.unbatch(-2)))
    show.raises(lambda: list(nested.unbatch(0)))
    show(list(numbers.batch(3).unbatch()), _length(numbers.batch(3).unbatch()))


def collating(torch: Any, show: Any) -> None:
    it, _ = _parts(torch)
    numbers = it.IterableWrapper(range(4))
    show(list(numbers.batch(2).collate()), list(numbers.batch(2).collate(sum)))
    show(list(numbers.batch(2).collate(collate_fn=max)), _length(numbers.batch(2).collate()))
    show(list(it.IterableWrapper([(1.0, 2), (3.0, 4)]).batch(2).collate()))


def grouping(torch: Any, show: Any) -> None:
    it, _ = _parts(torch)
    numbers = it.IterableWrapper(range(10))
    show(list(numbers.groupby(_third)), list(numbers.groupby(group_key_fn=_third, group_size=2)))
    show(list(numbers.groupby(_third, keep_key=True)))
    show.raises(lambda: list(numbers.groupby(_third, buffer_size=4, group_size=3)))
    show(list(numbers.groupby(_third, buffer_size=5, group_size=4, guaranteed_group_size=1)))
    show(
        list(
            numbers.groupby(_third, group_size=3, guaranteed_group_size=2, drop_remaining=True, buffer_size=6)
        )
    )
    show(list(numbers.groupby(_third, group_size=4, drop_remaining=True)))
    show.raises(lambda: list(numbers.groupby(_third, buffer_size=3, group_size=4, guaranteed_group_size=3)))
    show.raises(numbers.groupby, _third, buffer_size=0)
    show.raises(numbers.groupby, _third, group_size=0)
    show.raises(numbers.groupby, _third, guaranteed_group_size=2)
    show.raises(numbers.groupby, _third, group_size=2, guaranteed_group_size=3)
    show.raises(numbers.groupby, _third, group_size=12, buffer_size=10)
    show(_length(numbers.groupby(_third)))


def zipping_and_joining(torch: Any, show: Any) -> None:
    it, _ = _parts(torch)
    a, b, c = (it.IterableWrapper(range(n)) for n in (2, 3, 4))
    show(list(a.zip(b)), list(it.Zipper(a, b, c)), _length(a.zip(b)), list(a.concat(b)), _length(a.concat(b)))
    show(list(it.Concater(a, b, c)), list(a.mux(b, c)), _length(a.mux(b, c)), list(b.mux(a)))
    show.raises(it.Zipper, [1], a)
    show.raises(it.Concater)
    show.raises(it.Concater, a, [1])
    unsized = b.filter(_is_even)
    show(_length(a.zip(unsized)), _length(a.concat(unsized)), _length(a.mux(unsized)))


def forking(torch: Any, show: Any) -> None:
    it, _ = _parts(torch)
    numbers = it.IterableWrapper(range(5))
    one, two = numbers.fork(num_instances=2)
    show(type(one).__name__, repr(one), _length(one), list(one), list(two))
    show([x + y for x, y in one.zip(two)])
    show(list(it.Forker(numbers, 1)))
    small = numbers.fork(2, buffer_size=2)
    ahead = iter(small[0])
    show(next(ahead), next(ahead))
    show.raises(next, ahead)
    with_none = show.warns(numbers.fork, 2, buffer_size=-1)
    show(list(with_none[0]), list(with_none[1]))
    show.raises(numbers.fork, 0)
    show.raises(numbers.fork, 2, buffer_size=-2)
    show.raises(numbers.fork, 2, copy="nonsense")
    left, right = it.IterableWrapper([[1], [2]], deepcopy=False).fork(2, copy="deep")
    show([(x, y, x is y) for x, y in zip(left, right)])
    left, right = it.IterableWrapper([[1], [2]], deepcopy=False).fork(2)
    show([(x, y, x is y) for x, y in zip(left, right)])
    one, two = numbers.fork(2)
    first = iter(one)
    show(next(first), next(first))
    second = iter(two)
    show(next(second))
    again = show.warns(iter, one)
    show(next(again))
    show.raises(next, second)
    show.raises(next, first)


def dividing(torch: Any, show: Any) -> None:
    it, _ = _parts(torch)
    numbers = it.IterableWrapper(range(7))
    even, odd, rest = numbers.demux(num_instances=3, classifier_fn=_third)
    show(list(even), list(odd), list(rest), _length(even))
    low, high = numbers.demux(2, _is_even)
    show(list(low), list(high))
    show.raises(lambda: list(numbers.demux(2, _third)[0]))
    few = numbers.demux(3, _third, buffer_size=2)
    show.raises(lambda: list(few[2]))

    def maybe(x: int) -> Any:
        return None if x == 3 else x % 2

    dropped = numbers.demux(2, maybe, drop_none=True)
    show(list(dropped[0]), list(dropped[1]))
    show.raises(lambda: list(numbers.demux(2, maybe)[0]))
    show.raises(numbers.demux, 0, _third)
    show.raises(numbers.demux, 2, _third, buffer_size=-2)
    show.warns(numbers.demux, 2, _is_even, buffer_size=-1)


def shuffling(torch: Any, show: Any) -> None:
    it, mp = _parts(torch)
    numbers = it.IterableWrapper(range(10))
    mixed = numbers.shuffle()
    show(list(mixed.set_seed(3)), list(mixed.set_seed(3)), _length(mixed), list(mixed.set_shuffle(False)))
    torch.manual_seed(1)
    show(list(numbers.shuffle()), list(numbers.shuffle(buffer_size=3).set_seed(0)))
    show(
        list(numbers.batch(3).shuffle(unbatch_level=1).set_seed(0)),
        _length(numbers.batch(3).shuffle(unbatch_level=1)),
    )
    show.raises(numbers.shuffle, buffer_size=0)
    torch.manual_seed(2)
    rows = mp.SequenceWrapper(list("abcde")).shuffle()
    show(type(rows).__name__, list(rows.set_seed(5)), list(rows.set_shuffle(False)), len(rows))
    show(list(mp.SequenceWrapper({"x": 1, "y": 2}).shuffle(indices=["y", "x"]).set_seed(1)))


def sampling(torch: Any, show: Any) -> None:
    it, _ = _parts(torch)
    data = torch.utils.data
    numbers = it.IterableWrapper(range(4))
    show(list(it.Sampler(numbers)), len(it.Sampler(numbers)))
    random.seed(0)
    torch.manual_seed(0)
    show(sorted(it.Sampler(numbers, data.RandomSampler)))
    show.raises(it.Sampler, numbers, 3)


def sharding(torch: Any, show: Any) -> None:
    it, _ = _parts(torch)
    settings = importlib.import_module(f"{torch.__name__}.utils.data.graph_settings")
    places = importlib.import_module(
        f"{torch.__name__}.utils.data.datapipes.iter.sharding"
    ).SHARDING_PRIORITIES
    numbers = it.IterableWrapper(range(7))
    part = numbers.sharding_filter()
    show(list(part), _length(part))
    part.apply_sharding(3, 1)
    show(list(part), _length(part), [p.name for p in places], [p.value for p in places])
    show.raises(part.apply_sharding, 2, 2)
    whole = it.IterableWrapper(range(7)).map(_double).sharding_filter().map(_double)
    show(settings.apply_sharding(whole, 2, 0) is whole, list(whole))
    show.raises(settings.apply_sharding, numbers.sharding_filter().map(_double).sharding_filter(), 2, 0)
    both = it.IterableWrapper(range(12)).sharding_filter()
    both.apply_sharding(2, 1, places.DISTRIBUTED)
    both.apply_sharding(3, 0, places.MULTIPROCESSING)
    show(list(both), _length(both))
    show.raises(both.apply_sharding, 2, 0)


def files(torch: Any, show: Any) -> None:
    it, _ = _parts(torch)
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        (root / "deep").mkdir()
        for name, text in (("a.txt", "one\ntwo"), ("b.csv", "1,2"), ("deep/c.txt", "three")):
            (root / name).write_text(text)

        def short(names: Any) -> list[str]:
            return [str(name).replace(folder, "<root>") for name in names]

        show(short(it.FileLister(folder)), short(it.FileLister(folder, masks="*.txt")))
        show(
            short(it.FileLister(folder, recursive=True)),
            short(it.FileLister(folder, ["*.csv", "*.md"], recursive=True)),
        )
        show(
            short(it.FileLister([folder, str(root / "deep")])),
            short(it.IterableWrapper([folder]).list_files(masks="*.csv")),
        )
        show(
            short(it.FileLister(folder, abspath=True)),
            _length(it.FileLister(folder)),
            _length(it.FileLister(folder, length=3)),
        )
        names = it.FileLister(folder, masks="*.txt", recursive=True)
        opened = list(it.FileOpener(names))
        show(
            short(name for name, _ in opened),
            [type(stream).__name__ for _, stream in opened],
            [_read(s) for _, s in opened],
        )
        show(short(repr(stream) for _, stream in opened)[0][:28])
        show([text for _, text in names.open_files(mode="b").read_from_stream()])
        show([text for _, text in names.open_files().read_from_stream(chunk=4)])
        show(
            [_read(stream) for _, stream in it.FileOpener(names, mode="t")],
            _length(it.FileOpener(names, length=2)),
        )
        show.raises(it.FileOpener, names, mode="w")
        show.raises(it.FileOpener, names, mode="b", encoding="utf-8")
        show.raises(lambda: list(it.FileOpener(it.IterableWrapper([3]))))
        decoded = names.open_files(mode="b").routed_decode()
        show(type(decoded).__name__)
    handlers = importlib.import_module(f"{torch.__name__}.utils.data.datapipes.utils.decoder")
    streams = [
        ("a.txt", io.BytesIO(b"text")),
        ("b.json", io.BytesIO(b'{"k": [1]}')),
        ("c.pkl", io.BytesIO(pickle.dumps((1, 2)))),
    ]
    streams.append(("d.cls", io.BytesIO(b"7")))
    show(list(it.RoutedDecoder(it.IterableWrapper(streams, deepcopy=False), handlers.basichandlers)))
    show(handlers.extension_extract_fn("x/y.tar.gz"), handlers.basichandlers("none", b""))


def by_index(torch: Any, show: Any) -> None:
    _, mp = _parts(torch)
    numbers = mp.SequenceWrapper(range(6))
    show(
        list(numbers),
        len(numbers),
        numbers[2],
        numbers.map(_double)[2],
        list(numbers.map(_double)),
        repr(numbers),
    )
    show(
        [numbers.batch(4)[i] for i in range(2)], len(numbers.batch(4)), len(numbers.batch(4, drop_last=True))
    )
    show.raises(lambda: numbers.batch(4)[2])
    show.raises(lambda: numbers.batch(4, drop_last=True)[1])
    show.raises(numbers.batch, 0)
    letters = mp.SequenceWrapper(list("ab"))
    joined = numbers.concat(letters)
    show([joined[i] for i in (0, 5, 6, 7)], len(joined), numbers.zip(letters)[1], len(numbers.zip(letters)))
    show.raises(lambda: joined[8])
    show.raises(lambda: numbers.zip(letters)[2])
    show.raises(mp.Concater)
    show.raises(mp.Zipper)
    show.raises(mp.Concater, [1])
    show.raises(mp.Zipper, [1])
    named = mp.SequenceWrapper({"x": [1]})
    named["x"].append(2)
    show(named["x"], len(named), list(mp.Mapper(numbers)))
    source = [[1]]
    mp.SequenceWrapper(source)[0].append(2)
    mp.SequenceWrapper(source, deepcopy=False)[0].append(3)
    show(source)
    show.raises(lambda: numbers.nonsense)
    show(sorted(torch.utils.data.MapDataPipe.functions))


def one_pass_at_a_time(torch: Any, show: Any) -> None:
    it, _ = _parts(torch)
    numbers = it.IterableWrapper(range(3))
    first = iter(numbers)
    show(next(first))
    second = iter(numbers)
    show(next(second), list(second))
    show.raises(next, first)
    mapped = numbers.map(_double)
    first = iter(mapped)
    next(first)
    list(mapped)
    show.raises(next, first)
    show(list(zip(numbers.map(_double), it.IterableWrapper("abc"))))

    class Own(torch.utils.data.IterDataPipe):
        def __init__(self, count: int) -> None:
            self.count = count

        def __iter__(self) -> Any:
            self.at = 0
            return self

        def __next__(self) -> int:
            if self.at >= self.count:
                raise StopIteration
            self.at += 1
            return self.at

    own = Own(2)
    show(list(own), list(own), list(own))
    one, two = iter(own), iter(own)
    show(next(two), one is two)

    class Failing(torch.utils.data.IterDataPipe):
        def __iter__(self) -> Any:
            yield 1
            raise ValueError("no more")

    show.raises(list, Failing())
    try:
        list(numbers.map(_initial))
    except Exception as error:
        show(type(error).__name__, error, getattr(error, "__notes__", []))


def registering(torch: Any, show: Any) -> None:
    data = torch.utils.data

    @data.functional_datapipe("plus_one_of_cases")
    class PlusOne(data.IterDataPipe):
        "Adds one."

        def __init__(self, source: Any, by: int = 1) -> None:
            self.source, self.by = source, by

        def __iter__(self) -> Any:
            for item in self.source:
                yield item + self.by

    it, _ = _parts(torch)
    show(
        list(it.IterableWrapper([1, 2]).plus_one_of_cases(by=3)),
        list(it.IterableWrapper([1]).plus_one_of_cases()),
    )
    show.raises(lambda: data.functional_datapipe("plus_one_of_cases")(PlusOne))
    show.raises(lambda: data.functional_datapipe("map")(PlusOne))
    show.raises(lambda: data.functional_datapipe(3))
    data.IterDataPipe.register_function("tail_of_cases", lambda pipe, n: list(pipe)[-n:])
    show(it.IterableWrapper(range(4)).tail_of_cases(2))
    del data.IterDataPipe.functions["plus_one_of_cases"], data.IterDataPipe.functions["tail_of_cases"]


def pickling(torch: Any, show: Any) -> None:
    it, mp = _parts(torch)
    numbers = it.IterableWrapper(range(6))
    for pipe in (
        numbers, numbers.map(_double), numbers.filter(_is_even), numbers.batch(2), numbers.zip(it.IterableWrapper("ab")),
        numbers.shuffle().set_seed(1), numbers.groupby(_third), numbers.sharding_filter(), numbers.concat(numbers),
        numbers.mux(it.IterableWrapper(range(3))), mp.SequenceWrapper(range(3)).map(_double), mp.SequenceWrapper(range(3)).shuffle().set_seed(2),
    ):  # fmt: skip
        again, twin = pickle.loads(pickle.dumps(pipe)), copy.deepcopy(pipe)
        show(type(again).__name__, list(again), list(twin))
    left, right = pickle.loads(pickle.dumps(numbers.fork(2)))
    show(list(left), list(right))
    begun = numbers.map(_double)
    taken = iter(begun)
    show(next(taken), next(taken), list(pickle.loads(pickle.dumps(begun))), next(taken))


def hanging_together(torch: Any, show: Any) -> None:
    it, mp = _parts(torch)
    graph, settings = _graph(torch), importlib.import_module(f"{torch.__name__}.utils.data.graph_settings")

    def shape(found: Any) -> Any:
        return sorted((type(pipe).__name__, shape(below)) for pipe, below in found.values())

    numbers = it.IterableWrapper(range(4))
    chain = numbers.map(_double).batch(2)
    found = graph.traverse_dps(chain)
    show(list(found) == [id(chain)], shape(found))
    show(shape(graph.traverse_dps(numbers.zip(numbers.map(_double)))), shape(graph.traverse_dps(numbers)))
    left, right = numbers.fork(2)
    show(shape(graph.traverse_dps(left.zip(right))))
    show(shape(graph.traverse_dps(mp.SequenceWrapper([1]).map(_double))))
    show(shape(show.warns(graph.traverse, chain)), shape(graph.traverse(chain, only_datapipe=True)))
    show(shape(graph.traverse(it.IterableWrapper([numbers]), only_datapipe=False)))
    pipes = settings.get_all_graph_pipes(graph.traverse_dps(left.zip(right)))
    show(sorted(type(p).__name__ for p in pipes), len(pipes))
    mixed = numbers.shuffle().map(_double)
    settings.apply_shuffle_settings(mixed, shuffle=False)
    show(list(mixed))
    settings.apply_random_seed(
        settings.apply_shuffle_settings(mixed, shuffle=True), torch.Generator().manual_seed(3)
    )
    show(sorted(mixed), len(list(mixed)))
    show(type(show.warns(settings.apply_shuffle_settings, numbers, shuffle=True)).__name__)


def loading(torch: Any, show: Any) -> None:
    it, mp = _parts(torch)
    data = torch.utils.data
    numbers = it.IterableWrapper(range(6))
    show(list(data.DataLoader(numbers, batch_size=2)), len(data.DataLoader(numbers, batch_size=4)))
    show(list(data.DataLoader(numbers.map(_double).batch(3).collate(), batch_size=None)))
    mixed = numbers.shuffle()
    torch.manual_seed(0)
    show(
        list(data.DataLoader(mixed, shuffle=False, batch_size=6)),
        sorted(data.DataLoader(mixed, shuffle=True, batch_size=None)),
    )
    torch.manual_seed(0)
    once = list(data.DataLoader(mixed, batch_size=None, shuffle=True))
    torch.manual_seed(0)
    show(once == list(data.DataLoader(mixed, batch_size=None, shuffle=True)), sorted(once))
    show(list(data.DataLoader(mp.SequenceWrapper(range(4)).map(_double), batch_size=2)))
    show(list(data.DataLoader(numbers.sharding_filter(), batch_size=3)))


def names_in_profiles(torch: Any, show: Any) -> None:
    it, mp = _parts(torch)
    data = torch.utils.data
    from_torch = torch.profiler.profile

    class Own(data.IterDataPipe):
        def __init__(self, source: Any, label: str, unused: int = 3) -> None:
            self.source, self.label = source, label

        def __iter__(self) -> Any:
            yield from self.source

    numbers = it.IterableWrapper(range(4))
    rows = it.IterableWrapper([(1, 2)])
    files_ = it.IterableWrapper([("a.txt", io.BytesIO(b"text"))], deepcopy=False)
    for pipe in (
        numbers, numbers.map(_double), numbers.filter(_is_even), numbers.batch(3), numbers.batch(2).unbatch(), numbers.batch(2).collate(),
        numbers.shuffle(), numbers.groupby(_third), numbers.zip(it.IterableWrapper("ab")), numbers.concat(numbers),
        numbers.mux(it.IterableWrapper(range(3))), numbers.fork(2)[1], numbers.demux(2, _is_even)[0], numbers.sharding_filter(), it.Sampler(numbers), Own(numbers, "here"),
        rows.map(_total, input_col=[0, 1]), files_.read_from_stream(), mp.SequenceWrapper(range(2)).shuffle(),
        numbers.map(_double).filter(_is_even).batch(1), data.DataLoader(numbers.map(_double), batch_size=2),
    ):  # fmt: skip
        with from_torch(activities=[torch.profiler.ProfilerActivity.CPU]) as prof:
            list(pipe)
        counts: dict[tuple[str, str], int] = {}
        for event in prof.events():
            if not event.name.startswith("aten::"):
                above = event.cpu_parent
                key = (event.name, "" if above is None else above.name)
                counts[key] = counts.get(key, 0) + 1
        show(sorted(counts.items()))
