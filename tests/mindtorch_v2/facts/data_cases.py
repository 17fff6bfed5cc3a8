"""Cases of torch.utils.data in one process: datasets, samplers, collating, the loader's options and errors."""

from __future__ import annotations

import collections
import copy
import pickle
import types
import warnings
from typing import Any

import numpy as np

Point = collections.namedtuple("Point", "x y")  # noqa: PYI024  (what users have)


def _datasets(data: Any) -> Any:
    class Count(data.IterableDataset):
        def __init__(self, n: int) -> None:
            self.n = n

        def __iter__(self) -> Any:
            return iter(range(self.n))

    class Sized(Count):
        def __init__(self, n: int, length: int) -> None:
            super().__init__(n)
            self.length = length

        def __len__(self) -> int:
            return self.length

    class Many(data.Dataset):
        def __init__(self, short: bool = False) -> None:
            self.short = short

        def __len__(self) -> int:
            return 4

        def __getitem__(self, i: Any) -> Any:
            return i

        def __getitems__(self, indices: Any) -> Any:
            return [10 * i for i in indices][: -1 if self.short else None]

    return types.SimpleNamespace(Count=Count, Sized=Sized, Many=Many)


def tensor_datasets_give_rows(torch: Any, show: Any) -> None:
    data = torch.utils.data
    rows = data.TensorDataset(torch.arange(4), torch.ones(4, 2))
    show(rows[0], rows[1:3], rows[-1], rows[[0, 2]], len(rows), list(vars(rows)))
    show.raises(lambda: rows[7])
    show.raises(data.TensorDataset, torch.ones(2), torch.ones(3))
    show.raises(data.TensorDataset, torch.ones(()))
    show.raises(data.TensorDataset, 1)
    show.raises(lambda: data.Dataset()[0])


def datasets_are_chained_and_stacked(torch: Any, show: Any) -> None:
    data = torch.utils.data
    made = _datasets(data)
    rows = data.TensorDataset(torch.arange(4))
    both = data.ConcatDataset([rows, rows])
    show(len(both), both.cumulative_sizes, both[5], both[-1], both[-8], (rows + rows)[7])
    show(data.ConcatDataset(part for part in [[1, 2], [3]])[2], data.ConcatDataset.cumsum([[1], [1, 2]]))
    show.warns(lambda: both.cummulative_sizes)
    for wrong in (lambda: both[8], lambda: both[-9], lambda: both[:3], lambda: data.ConcatDataset([])):
        show.raises(wrong)
    show.raises(data.ConcatDataset, [made.Count(3)])
    show(list(made.Count(3) + made.Count(2)), type(made.Count(3) + made.Count(2)).__name__)
    show(len(data.ChainDataset([made.Sized(2, 2), made.Sized(3, 3)])))
    for wrong in (lambda: len(made.Count(3)), lambda: list(data.ChainDataset([rows]))):
        show.raises(wrong)
    stack = data.StackDataset(rows, [1, 2, 3, 4])
    show(stack[1], len(stack), stack.__getitems__([0, 2]))
    named = data.StackDataset(a=made.Many(), b=[1, 2, 3, 4])
    show(named[1], named.__getitems__([0, 2]), data.StackDataset(made.Many(), rows).__getitems__([0, 2]))
    for args, kwargs in (((rows,), {"a": rows}), ((), {}), ((rows, [1]), {}), ((), {"a": rows, "b": [1]})):
        show.raises(data.StackDataset, *args, **kwargs)
    show.raises(data.StackDataset(made.Many(True), rows).__getitems__, [0, 2])
    show.raises(data.StackDataset(a=made.Many(True), b=rows).__getitems__, [0, 2])


def subsets_pass_indices_on(torch: Any, show: Any) -> None:
    data = torch.utils.data
    rows = data.TensorDataset(torch.arange(4))
    part = data.Subset(rows, [3, 1])
    show(part[0], len(part), part.__getitems__([1, 0]), part[[0, 1]], part[0:1], list(vars(part)))
    show(data.Subset(_datasets(data).Many(), [3, 1]).__getitems__([0, 1]))
    show(data.Subset(torch.arange(5), np.array([3, 1]))[[0, 1]])
    show.raises(lambda: part[5])
    show.raises(lambda: data.Subset(range(5), [3])[[0]])


def random_splits_are_torchs(torch: Any, show: Any) -> None:
    data = torch.utils.data

    def split(n: int, lengths: Any, seed: int = 42) -> Any:
        generator = torch.Generator().manual_seed(seed)
        return [part.indices for part in data.random_split(range(n), lengths, generator)]

    for lengths in (
        [3, 7], [0.3, 0.3, 0.4], [0.33, 0.33, 0.34], [0, 10], (1, 1, 8), [0.1] * 10, [11, -1], [1.0],
    ):  # fmt: skip
        show(show.warns(split, 10, lengths))
    show(show.warns(split, 3, [0.1, 0.1, 0.8]), show.warns(split, 0, [0.5, 0.5]), split(1, [1]))
    for lengths in ([0.5, 0.6], [3, 6], [0.3, 0.3], [-0.5, 1.5], [1, 0.5], []):
        show.raises(split, 10, lengths)
    torch.manual_seed(5)
    show([part.indices for part in data.random_split(range(10), [3, 7])], torch.rand(1))
    show([part.indices for part in data.random_split(range(10), [3, 7], generator=None)], torch.rand(1))


def samplers_draw_torchs_indices(torch: Any, show: Any) -> None:
    data = torch.utils.data
    generator = torch.Generator().manual_seed(3)
    for make in (
        lambda: data.SequentialSampler(range(3)),
        lambda: data.RandomSampler(range(7)),
        lambda: data.RandomSampler(range(7), num_samples=17),
        lambda: data.RandomSampler(range(7), num_samples=14),
        lambda: data.RandomSampler(range(7), num_samples=3),
        lambda: data.RandomSampler(range(7), True, 40),
        lambda: data.RandomSampler(range(7), True),
        lambda: data.RandomSampler(range(7), generator=generator),
        lambda: data.RandomSampler(range(7), True, 33, generator),
        lambda: data.RandomSampler(range(7), True, 32, generator),
        lambda: data.RandomSampler(range(4), num_samples=8, generator=generator),
        lambda: data.SubsetRandomSampler([5, 6, 7], generator=generator),
        lambda: data.SubsetRandomSampler(torch.tensor([5, 6, 7])),
        lambda: data.WeightedRandomSampler([0.1, 0.9, 0.4], 5),
        lambda: data.WeightedRandomSampler([0.1, 0.9, 0.4], 2, False),
        lambda: data.WeightedRandomSampler([0.1, 0.9, 0.4], 5, generator=generator),
        lambda: data.BatchSampler(range(7), 3, False),
        lambda: data.BatchSampler(range(7), 3, True),
    ):
        show(list(make()), len(make()), torch.rand(1).item(), torch.rand(1, generator=generator).item())
    show(list(data.BatchSampler(iter(range(5)), 2, False)), list(data.BatchSampler([], 2, False)))


def samplers_draw_when_the_first_index_is_asked_for(torch: Any, show: Any) -> None:
    data = torch.utils.data
    for sampler in (
        data.RandomSampler(range(4)),
        data.SubsetRandomSampler(range(4)),
        data.WeightedRandomSampler([0.1, 0.2], 5),
    ):
        torch.manual_seed(0)
        indices = iter(sampler)
        show(torch.rand(1).item(), next(indices), torch.rand(1).item())


def a_random_sampler_may_be_endless(torch: Any, show: Any) -> None:
    data = torch.utils.data
    for replacement in (True, False):
        sampler = data.RandomSampler(range(7), replacement, num_samples=10**12)
        indices = iter(sampler)
        show(len(sampler), [next(indices) for _ in range(40)])


def samplers_refuse_bad_arguments(torch: Any, show: Any) -> None:
    data = torch.utils.data
    for make, *arguments in (
        (data.Sampler, [1]),
        (data.RandomSampler, range(7), False, 0),
        (data.RandomSampler, range(7), False, -1),
        (data.RandomSampler, range(7), False, 2.5),
        (data.RandomSampler, range(7), 1),
        (data.RandomSampler, []),
        (data.WeightedRandomSampler, [1], 0),
        (data.WeightedRandomSampler, [1], 2.0),
        (data.WeightedRandomSampler, [1], True),
        (data.WeightedRandomSampler, [1], "a"),
        (data.WeightedRandomSampler, [1], 1, 0),
        (data.WeightedRandomSampler, [[1.0, 2.0]], 1),
        (data.BatchSampler, range(3), 0, False),
        (data.BatchSampler, range(3), True, False),
        (data.BatchSampler, range(3), 2.0, False),
        (data.BatchSampler, range(3), 2, 0),
        (data.DistributedSampler, range(3), 2, 2),
        (data.DistributedSampler, range(3), 2, -1),
        (data.DistributedSampler, range(3)),
    ):
        show.raises(make, *arguments)
    show.raises(lambda: list(data.RandomSampler([], num_samples=5)))
    show.raises(lambda: list(data.WeightedRandomSampler([0.1, 0.9], 4, False)))
    show.raises(lambda: len(data.BatchSampler(iter(range(5)), 2, False)))
    show.raises(lambda: iter(data.Sampler()))


def distributed_samplers_share_the_indices(torch: Any, show: Any) -> None:
    data = torch.utils.data
    for n, replicas, rank, options, epoch in (
        (10, 3, 0, {}, 0), (10, 3, 2, {}, 4), (10, 3, 2, {"shuffle": False}, 0), (2, 5, 4, {"shuffle": False}, 0),
        (10, 3, 1, {"drop_last": True, "seed": 7}, 0), (10, 4, 3, {"shuffle": False, "drop_last": True}, 0),
        (2, 7, 6, {"shuffle": False}, 0), (2, 5, 4, {"drop_last": True}, 1), (9, 3, 2, {}, 2), (0, 2, 0, {}, 0),
    ):  # fmt: skip
        sampler = data.DistributedSampler(range(n), replicas, rank, **options)
        sampler.set_epoch(epoch)
        show(list(sampler), len(sampler), vars(sampler))


def the_default_collate_keeps_structures(torch: Any, show: Any) -> None:
    collate = torch.utils.data.default_collate

    class Own(dict):
        pass

    class Marked(dict):
        def __init__(self, content: Any, mark: Any) -> None:
            super().__init__(content)
            self.mark = mark

    class Fixed(collections.abc.Mapping):
        def __init__(self, content: Any) -> None:
            self.content = content

        def __getitem__(self, key: Any) -> Any:
            return self.content[key]

        def __len__(self) -> int:
            return len(self.content)

        def __iter__(self) -> Any:
            return iter(self.content)

    class OwnList(list):
        pass

    class OwnTuple(tuple):
        __slots__ = ()

    t = torch.tensor
    for batch in (
        [1, 2], [1.0, 2], [1, 2.5], [True, False], [1.5, True], ["a", "b"], [b"a", b"b"], [t(1), t(2)],
        [t([1, 2]), t([3, 4])], [t([1, 2]), t([3.0, 1])], [np.array([1, 2]), np.array([3, 4])], (1, 2),
        [np.float32(1), np.float32(2)], [np.array(1.5), np.array(2.0)], [np.int8(1)], [np.bool_(1)],
        [np.complex64(1j)], [{"a": 1, "b": [1, 2]}, {"a": 2, "b": [3, 4]}], [{"a": 1}, {"a": 2, "b": 2}],
        [(1, "x"), (2, "y")], [[1, 2], [3, 4]], [[], []], [[1, [2, 3]], [4, [5, 6]]],
        [Point(1, "a"), Point(2, "b")], [collections.OrderedDict(a=1)], [collections.defaultdict(int, a=1)],
        [collections.UserDict(a=1)], [collections.deque([1])], [range(3), range(3)], [Own(a=1)],
        [Marked({"a": 1}, 7)], [Fixed({"a": 1})], [OwnList([1])], [OwnTuple([1])], [collections.UserList([1])],
        [types.MappingProxyType({"a": 1})], [torch.ones(1, requires_grad=True)],
    ):  # fmt: skip
        result = collate(batch)
        shown = dict(result) if isinstance(result, Fixed) else result
        show(type(result).__name__, shown, getattr(result, "mark", ""))


def the_default_collate_names_what_it_cannot_take(torch: Any, show: Any) -> None:
    collate = torch.utils.data.default_collate
    t = torch.tensor
    for batch in (
        [None], [1j], [object], [{1, 2}], [iter([1])], [np.array(["a"])], [np.array([None])], [[1, 2], [3]], [],
        [np.datetime64("2020-01-01")], [{"a": 1}, {"b": 2}], [t([1, 2]), t([3])], [[1, 2], 3], {"a": 1}, [t(1), 3],
    ):  # fmt: skip
        show.raises(collate, batch)


def collate_takes_functions_for_types(torch: Any, show: Any) -> None:
    collate = torch.utils.data._utils.collate.collate

    class Own:
        def __init__(self, value: int) -> None:
            self.value = value

        def __repr__(self) -> str:
            return "Own"

    def values(batch: Any, *, collate_fn_map: Any = None) -> Any:
        return [item.value for item in batch], len(collate_fn_map)

    show(collate([{"a": Own(1)}, {"a": Own(2)}], collate_fn_map={Own: values}))
    show(collate([Own(1), Own(2)], collate_fn_map={(Own, int): values}))
    show(collate([[Own(1), 2]], collate_fn_map={object: lambda batch, collate_fn_map=None: list(batch)}))
    show(collate([True], collate_fn_map={int: lambda batch, collate_fn_map=None: "int"}))
    show.raises(collate, [1, 2])
    names = torch.utils.data._utils.collate.default_collate_fn_map
    show([function.__name__ for function in names.values()])


def default_convert_makes_tensors_of_arrays(torch: Any, show: Any) -> None:
    convert = torch.utils.data.default_convert
    for value in (
        1, "abc", b"ab", None, np.array([1, 2]), np.array(["a"]), np.float32(3), np.array(3.0), {1}, range(2), [],
        {"a": np.array([1])}, [np.array([1]), np.array([2])], (np.array([1]), "x"), Point(np.array([1]), 2),
        collections.defaultdict(int, a=np.array(1)), np.str_("a"), torch.tensor([1]),
    ):  # fmt: skip
        result = convert(value)
        show(type(result).__name__, result)


def the_loader_refuses_bad_options(torch: Any, show: Any) -> None:
    data = torch.utils.data
    loader, made = data.DataLoader, _datasets(data)
    numbers, count = range(5), made.Count(3)
    for dataset, options in (
        (numbers, {"num_workers": -1}), (numbers, {"timeout": -1}), (numbers, {"prefetch_factor": 2}),
        (numbers, {"num_workers": 1, "prefetch_factor": -1}), (numbers, {"persistent_workers": True}),
        (count, {"shuffle": True}), (count, {"sampler": [1]}), (count, {"batch_sampler": [1]}),
        (count, {"shuffle": "a"}), (numbers, {"sampler": [1], "shuffle": True}),
        (numbers, {"batch_sampler": [[1]], "shuffle": True}), (numbers, {"batch_sampler": [[1]], "batch_size": 2}),
        (numbers, {"batch_sampler": [[1]], "drop_last": True}), (numbers, {"batch_size": None, "drop_last": True}),
        (numbers, {"batch_size": 0}), (numbers, {"batch_size": 2.5}), (numbers, {"batch_size": True}),
        (numbers, {"multiprocessing_context": "fork"}), (numbers, {"num_workers": "a"}), ([], {"shuffle": True}),
        (numbers, {"num_workers": 1, "multiprocessing_context": 3}), (5, {"shuffle": True}),
    ):  # fmt: skip
        show.raises(loader, dataset, **options)
    show.raises(lambda: list(loader(numbers, timeout=3)))
    show.raises(lambda: len(loader(count)))
    show.raises(lambda: list(loader([None, 1], 2)))
    show.raises(lambda: list(loader(numbers, 5, sampler=[9])))


def the_loader_lists_its_settings(torch: Any, show: Any) -> None:
    data = torch.utils.data
    loader, made = data.DataLoader, _datasets(data)
    numbers = range(5)
    for one in (
        loader(numbers, 2), loader(numbers, num_workers=1), loader(made.Count(2)), loader(numbers, None),
        loader(numbers, batch_sampler=[[1]]),
    ):  # fmt: skip
        show(vars(one), one._auto_collation, type(one._index_sampler).__name__)
    one = loader(numbers, 2)
    for name in ("batch_size", "batch_sampler", "sampler", "drop_last", "dataset", "persistent_workers"):
        show.raises(setattr, one, name, 3)
    for name in ("num_workers", "collate_fn", "timeout", "own"):
        show.raises(setattr, one, name, 3)
    show(len(loader(numbers, 2)), len(loader(numbers, 2, drop_last=True)))
    for n, drop in ((4, False), (4, True), (None, False)):
        show(len(loader(made.Sized(3, 10), n, drop_last=drop)))


def the_loader_fetches_batches(torch: Any, show: Any) -> None:
    data = torch.utils.data
    loader, made = data.DataLoader, _datasets(data)
    numbers = range(5)
    for one in (
        loader(numbers, 2), loader(numbers, 2, drop_last=True), loader(made.Many(), 2), loader(made.Many(), None),
        loader(made.Many(), batch_sampler=[[0, 1], [2]]), loader({"a": 1, "b": 2}, sampler=["a", "b"]),
        loader(numbers, sampler=[1, 2], batch_size=None), loader(numbers, 2, collate_fn=list), loader([]),
        loader(numbers, None, collate_fn=lambda item: (item,)), loader(made.Count(5), 2), loader(made.Count(0), 2),
        loader(made.Count(5), 2, drop_last=True), loader(made.Count(5), None), loader(numbers, in_order=False),
        loader(numbers, worker_init_fn=print),
    ):  # fmt: skip
        show(list(one), list(one))
    one = loader(numbers, 2)
    show(list(pickle.loads(pickle.dumps(one))), list(copy.deepcopy(one)))
    iterator = iter(one)
    show(type(iterator).__name__, len(iterator), iter(iterator) is iterator, iterator._profile_name)
    show(list(iterator), list(iterator))
    show.raises(pickle.dumps, iterator)
    show.raises(lambda: len(iter(loader(made.Count(3)))))
    show(data.get_worker_info())


def the_loader_draws_seeds_as_torch_draws_them(torch: Any, show: Any) -> None:
    loader = torch.utils.data.DataLoader
    for options in ({}, {"shuffle": True}, {"shuffle": True, "batch_size": None}):
        for own in (False, True):
            torch.manual_seed(0)
            generator = torch.Generator().manual_seed(0)
            one = loader(range(4), generator=generator if own else None, **options)
            show(torch.rand(1).item(), torch.rand(1, generator=generator).item())
            iterator = iter(one)
            show(iterator._base_seed, torch.rand(1).item(), torch.rand(1, generator=generator).item())
            show(list(iterator), torch.rand(1).item(), torch.rand(1, generator=generator).item())
            show(list(one), torch.rand(1).item(), torch.rand(1, generator=generator).item())


def the_loader_warns(torch: Any, show: Any) -> None:
    data = torch.utils.data
    made = _datasets(data)

    def counted(n: int, length: int, batch_size: Any) -> Any:
        dataset = made.Sized(n, length)
        type(dataset).__repr__ = lambda self: "Sized"  # type: ignore[method-assign]
        loader = data.DataLoader(dataset, batch_size)
        return len(loader), list(loader)

    for arguments in ((3, 2, 1), (3, 2, 2), (3, 2, None), (3, 5, None), (5, 4, 2)):
        show(show.warns(counted, *arguments))
    show(show.warns(lambda: list(data.DataLoader(range(2), pin_memory=True))))
    show(show.warns(lambda: list(data.DataLoader(range(2), pin_memory=True, pin_memory_device="cuda"))))


def data_pipes_are_chained_by_name(torch: Any, show: Any) -> None:
    data = torch.utils.data

    class Source(data.IterDataPipe):
        def __init__(self, n: int) -> None:
            self.n = n

        def __iter__(self) -> Any:
            yield from range(self.n)

    class Table(data.MapDataPipe):
        def __getitem__(self, i: int) -> Any:
            return [1, 2, 3][i]

        def __len__(self) -> int:
            return 3

    try:

        @data.functional_datapipe("case_times")
        class Times(data.IterDataPipe):
            def __init__(self, source: Any, k: int = 2) -> None:
                self.source, self.k = source, k

            def __iter__(self) -> Any:
                for item in self.source:
                    yield item * self.k

        show(list(Source(3).case_times()), list(Source(3).case_times(k=5)), "case_times" in dir(Source(3)))
        show(Source(3), repr(Source(3)), Table(), list(Source(2) + Source(3)), (Table() + Table())[4])
        show.raises(data.IterDataPipe.register_datapipe_as_function, "case_times", Times)
        show.raises(lambda: Source(3).nothing)
        show.raises(lambda: Source(3)[1])
        show.raises(lambda: len(Source(3).case_times()))
        data.IterDataPipe.register_function("case_pair", lambda self, a: (type(self).__name__, a))
        show(Source(1).case_pair(3))
    finally:
        data.IterDataPipe.functions.pop("case_times", None)
        data.IterDataPipe.functions.pop("case_pair", None)
    chunk = data.DataChunk([1, 2, 3])
    show(
        chunk,
        str(chunk),
        chunk.as_str("  "),
        list(chunk),
        list(chunk.raw_iterator()),
        chunk.items,
        len(chunk),
    )


def data_pipes_can_promise_determinism(torch: Any, show: Any) -> None:
    data = torch.utils.data

    @data.non_deterministic
    class Never(data.IterDataPipe):
        def __iter__(self) -> Any:
            yield 1

    @data.non_deterministic(lambda a: a > 3)
    class Sometimes(data.IterDataPipe):
        def __init__(self, a: int) -> None:
            self.a = a

        def __iter__(self) -> Any:
            yield self.a

    show(list(Never()), list(Sometimes(5)))
    with data.guaranteed_datapipes_determinism():
        show(list(Sometimes(1)))
        show.raises(Sometimes, 5)
        show.raises(Never)
    show(list(Never()))
    show.raises(data.non_deterministic, 3)
    show.raises(data.non_deterministic, int)
    show.raises(data.non_deterministic(lambda: 3), int)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        show.raises(lambda: data.runtime_validation(lambda: 1))
