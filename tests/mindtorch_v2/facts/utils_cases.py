"""Cases of torch.utils: hook handles, trees of containers, DLPack, the tables of benchmark."""

from __future__ import annotations

import collections
import dataclasses
import pickle
from collections import OrderedDict
from typing import Any

import numpy as np

Point = collections.namedtuple("Point", "x y")  # noqa: PYI024  (what users have)


def handles_take_hooks_out(torch: Any, show: Any) -> None:
    from importlib import import_module

    handle_of = import_module(torch.__name__ + ".utils.hooks").RemovableHandle
    hooks, extra = OrderedDict(), OrderedDict()
    first = handle_of(hooks)
    second = handle_of(hooks, extra_dict=extra)
    third = handle_of(hooks, extra_dict=[OrderedDict(), extra])
    show(second.id - first.id, third.id - second.id, handle_of.next_id - third.id)
    hooks[first.id], hooks[second.id], extra[second.id] = 1, 2, 3
    second.remove()
    second.remove()
    show(list(hooks.values()), list(extra.values()), len(third.extra_dict_ref), third.extra_dict_ref[0]())
    show(first.__getstate__()[0] is hooks, first.__getstate__()[2], third.__getstate__()[2])
    again, content = pickle.loads(pickle.dumps((first, hooks)))
    show(again.id == first.id, again.hooks_dict_ref() is content, list(content.values()))
    alone = pickle.loads(pickle.dumps(first))
    alone.remove()
    show(alone.hooks_dict_ref())
    with first as entered:
        show(entered is first, len(hooks))
    show(len(hooks))
    before = handle_of.next_id
    alone.__setstate__((None, before + 100))
    show(handle_of.next_id - before, alone.hooks_dict_ref())
    show.raises(handle_of, {})


def hooks_on_tensors_warn_when_they_would_be_lost(torch: Any, show: Any) -> None:
    import importlib

    hooks = importlib.import_module(torch.__name__ + ".utils.hooks")

    class Hook:
        def __call__(self, gradient: Any) -> None: ...

        def __repr__(self) -> str:
            return "Hook()"

    hook = Hook()
    tensor = torch.ones(2, requires_grad=True)
    show.warns(hooks.warn_if_has_hooks, tensor)
    tensor.register_hook(hook)
    show.warns(hooks.warn_if_has_hooks, tensor)
    show(hooks.unserializable_hook(hook) is hook)
    show.warns(hooks.warn_if_has_hooks, tensor)


def _backward(torch: Any, show: Any, user_hooks: Any, pre_hooks: Any = (), needs_grad: bool = True) -> None:
    import importlib

    hooks = importlib.import_module(torch.__name__ + ".utils.hooks")
    x = torch.ones(2, 3, requires_grad=True)
    wired = hooks.BackwardHook("module", list(user_hooks), list(pre_hooks))
    given = (x, torch.full((2, 3), 2.0)) if needs_grad else (x.detach(), torch.ones(2, 3))
    inputs = wired.setup_input_hook(given)
    outputs = wired.setup_output_hook(
        (x * 2 if not needs_grad else inputs[0] * inputs[1], "text", x.detach() * 3)
    )
    show(wired.input_tensors_index, wired.output_tensors_index, wired.n_inputs, wired.n_outputs)
    show.raises(lambda: show.warns(lambda: outputs[0].sum().backward()))
    show(x.grad, wired.grad_outputs is None)


def backward_hooks_see_the_gradients_of_inputs_and_outputs(torch: Any, show: Any) -> None:
    def look(module: Any, grad_input: Any, grad_output: Any) -> None:
        show("hook", module, grad_input, grad_output)

    def look_before(module: Any, grad_output: Any) -> None:
        show("before", module, grad_output)

    _backward(torch, show, [look], [look_before])
    _backward(torch, show, [look], [look_before], needs_grad=False)
    _backward(torch, show, [lambda m, gi, go: (gi[0] * 2, gi[1]), look])
    _backward(torch, show, [lambda m, gi, go: (None, None)])
    _backward(torch, show, [look], [lambda m, go: (go[0] * 4, None, None), look_before])


def backward_hooks_refuse_wrong_results(torch: Any, show: Any) -> None:
    _backward(torch, show, [lambda m, gi, go: 5])
    _backward(torch, show, [lambda m, gi, go: (1,)])
    _backward(torch, show, [], [lambda m, go: (go[0],)])
    _backward(torch, show, [lambda m, gi, go: (None, go[0])], needs_grad=False)
    _backward(torch, show, [lambda m, gi, go: (None, None)], needs_grad=False)


def _tree() -> Any:
    return {
        "b": [1, (2, 3)],
        "a": OrderedDict(z=4, y=5),
        "n": None,
        "p": Point(6, 7),
        "d": collections.deque([8, 9], maxlen=5),
        "f": collections.defaultdict(list, q=10),
        "e": [],
        "t": (),
        "s": {1},
    }


def trees_are_flattened_and_put_together(torch: Any, show: Any) -> None:
    tree = torch.utils._pytree
    leaves, spec = tree.tree_flatten(_tree())
    show(leaves, spec, tree.tree_unflatten(leaves, spec))
    show(spec.num_leaves, spec.num_nodes, spec.num_children, spec.type, spec.context, spec.is_leaf())
    show(tree.tree_structure(3), tree.tree_structure([]), tree.tree_structure([1, (2,)]).children())
    show(
        tree.tree_structure([1, 2]) == tree.tree_structure([3, 4]),
        tree.tree_structure([1]) == tree.tree_structure((1,)),
    )
    show(tree.tree_structure({"a": 1, "b": 2}) == tree.tree_structure({"b": 1, "a": 2}))
    show({tree.tree_structure({"a": 1}): 1})
    show.raises(tree.tree_unflatten, leaves[1:], spec)
    show.raises(tree.tree_unflatten, 5, spec)
    show.raises(tree.tree_unflatten, leaves, 3)
    show(tree.tree_leaves(torch.Size([1, 2])), tree.tree_is_leaf([]), tree.tree_is_leaf(None))


def trees_are_mapped(torch: Any, show: Any) -> None:
    tree = torch.utils._pytree
    show(
        tree.tree_map(lambda x: x * 2, {"a": 1, "b": (2, [3])}),
        tree.tree_map(lambda x, y: x + y, [1, (2,)], [3, (4,)]),
    )
    pair = lambda x, y: (x, y)
    show(
        tree.tree_map(pair, [1, 2], [10, (20,)]), tree.tree_map(pair, {"a": 1, "b": 2}, OrderedDict(b=3, a=4))
    )
    for one, other in (
        ([1, (2,)], [10, 20]),
        ([1, 2], (10, 20)),
        ({"a": 1}, {"b": 1}),
        ([1], [1, 2]),
        ([1], 3),
    ):
        show.raises(tree.tree_map, pair, one, other)
    show(tree.tree_map(lambda x: ("leaf", x), [(1, 2), 3], is_leaf=lambda x: isinstance(x, tuple)))
    show(
        tree.tree_map_only(int, lambda x: x + 1, [1, "a", 2.5]),
        tree.tree_map_only((int, str), lambda x: x * 2, [1, "a"]),
    )
    show(tree.tree_map_only(lambda x: x == 1, lambda x: "hit", [1, "a"]), tree.tree_map_(lambda x: None, [1]))
    show.raises(tree.tree_map_only, 3, lambda x: x, [1])
    show(tree.tree_all(lambda x: x > 0, [1, 2]), tree.tree_any(lambda x: x > 1, [1, 2]))
    show(
        tree.tree_all_only(int, lambda x: x > 0, [1, "a"]), tree.tree_any_only(int, lambda x: x > 5, [1, "a"])
    )
    show(list(tree.tree_iter([1, [2]])), tree.arg_tree_leaves(1, [2], a=3))
    for prefix in (1, [1, 2], [1, 2, 3]):
        show(tree._broadcast_to_and_flatten(prefix, tree.tree_structure([1, [2, 3]])))


def trees_have_paths(torch: Any, show: Any) -> None:
    tree = torch.utils._pytree
    show(tree.tree_leaves_with_path({"a": [1, 2], "p": Point(3, 4)}))
    show([tree.keystr(path) for path, _ in tree.tree_leaves_with_path({"a": [1], "p": Point(3, 4), 5: 6})])
    show(tree.tree_map_with_path(lambda path, x: (tree.keystr(path), x), {"a": [1, 2]}))
    show(tree.key_get({"a": [1, 2]}, (tree.MappingKey("a"), tree.SequenceKey(1))))


def types_become_nodes_of_trees(torch: Any, show: Any) -> None:
    tree = torch.utils._pytree

    class Pair:
        def __init__(self, a: Any, b: Any) -> None:
            self.a, self.b = a, b

        def __repr__(self) -> str:
            return f"Pair({self.a}, {self.b})"

    @dataclasses.dataclass
    class Record:
        a: int
        b: int = 0

    show(len(tree.tree_leaves(Pair(1, 2))))
    tree.register_pytree_node(Pair, lambda pair: ([pair.a, pair.b], None), lambda parts, _: Pair(*parts))
    tree.register_dataclass(Record)
    show(tree.tree_map(lambda x: x + 1, [Pair(1, Record(2, 3))]), tree.tree_structure(Pair(1, 2)))
    show.raises(tree.register_pytree_node, Pair, None, None)
    show.raises(tree.tree_leaves_with_path, [Pair(1, 2)])
    show(tree.tree_leaves_with_path(Record(1, 2)), tree.tree_structure(Record(1, 2)).context)


def memory_is_shared_through_dlpack(torch: Any, show: Any) -> None:
    import importlib

    dlpack = importlib.import_module(torch.__name__ + ".utils.dlpack")
    x = torch.arange(6.0).reshape(2, 3)
    capsule = dlpack.to_dlpack(x)
    taken = dlpack.from_dlpack(capsule)
    taken[0, 0] = 9
    show(x, type(capsule).__name__)
    show.raises(dlpack.from_dlpack, capsule)
    show.raises(dlpack.from_dlpack, 3)
    show.raises(dlpack.to_dlpack, 3)
    array = np.arange(3.0)
    dlpack.from_dlpack(array)[0] = 5
    show(array, np.from_dlpack(x), dlpack.from_dlpack(x.t()).stride())
    dlpack.from_dlpack(x, copy=True)[0, 0] = 0
    dlpack.from_dlpack(x)[0, 1] = 7
    show(x, dlpack.from_dlpack(x, device="cpu").data_ptr() == x.data_ptr())
    show(dlpack.from_dlpack(np.array([True])), dlpack.from_dlpack(torch.ones(1, dtype=torch.bfloat16)))
    show.raises(dlpack.from_dlpack, x, device="meta")
    show.raises(dlpack.from_dlpack, torch.ones(1, requires_grad=True))
    show(list(dlpack.DLDeviceType))


def _measured(benchmark: Any, times: Any, number: int = 1, **options: Any) -> Any:
    task = benchmark.TaskSpec(options.pop("stmt", "x + y"), options.pop("setup", "pass"), **options)
    return benchmark.Measurement(number, list(times), task)


def measurements_are_summed_up(torch: Any, show: Any) -> None:
    import importlib

    benchmark = importlib.import_module(torch.__name__ + ".utils.benchmark")
    for times, options in (
        ([1e-5], {}),
        ([1e-5] * 5, {}),
        (
            [1e-5, 1.1e-5, 1.2e-5, 1.05e-5, 9e-6],
            {"label": "L", "sub_label": "S", "description": "D", "num_threads": 2},
        ),
        ([1.0, 2.0, 3.0, 10.0, 20.0], {}),
        ([1.0, 1.1, 1.0, 1.1, 1.2, 1.2, 1.0, 1.2], {}),
        ([1e-3 * i for i in range(1, 30)], {"number": 10, "setup": "a = 1\nb = 2"}),
        ([1e-5, 1.01e-5, 1.02e-5], {"stmt": "f(\n  x)", "setup": "import math", "num_threads": 4}),
    ):
        one = _measured(benchmark, times, **options)
        show(repr(one).partition("\n")[2])
        show(one.median, round(one.mean, 12), one.iqr, one.significant_figures, one.has_warnings, one.title)
        show(
            one.as_row_name,
            one.meets_confidence(0.5),
            one.task_spec.summarize(),
            one.stmt,
            one.number_per_run,
        )
    show.raises(lambda: _measured(benchmark, [1.0]).nothing)
    merged = benchmark.Measurement.merge(
        [_measured(benchmark, [t], n) for t, n in ((1.0, 1), (2.0, 1), (2.0, 10))]
    )
    show([(one.number_per_run, one.times) for one in merged])
    show([benchmark.select_unit(t) for t in (1e-10, 1e-8, 1e-6, 3e-5, 1e-3, 0.5, 1, 100)])
    show([benchmark.trim_sigfig(123.456, n) for n in (1, 2, 3, 4)], benchmark.ordered_unique([3, 1, 3, 2]))
    for arguments in ({"stmt": 3}, {"language": "foo"}, {"global_setup": "a = 1"}):
        show.raises(benchmark.Timer, **arguments)
    show.raises(benchmark.Timer().autorange)
    show.raises(benchmark.Timer, "x +")


def measurements_are_compared_in_a_table(torch: Any, show: Any) -> None:
    import importlib

    benchmark = importlib.import_module(torch.__name__ + ".utils.benchmark")
    rng = np.random.default_rng(1)

    def spread(base: float, rel: float, n: int = 8) -> Any:
        return [base * (1 + rel * i) for i in range(n)]

    tables = [
        [
            (1e-6 * n * f, 0.01, f"n={n}", d, t, None)
            for n in (1, 10)
            for t in (1, 2)
            for d, f in (("a", 1), ("b", 30))
        ],
        [
            (1e-6 * f, 0.01, s, d, 1, e)
            for f, s, d in ((1, "n", "a"), (3, "longer", "b"))
            for e in ("A", "Be")
        ],
        [(1e-5 * f, 0.01, str(f), "x", 1, None) for f in (1, 1.05, 1.2, 1.6, 2.1, 3.5, 10)],
        [
            (1e-5, 1.0, "wild", "x", 1, None),
            (2e-5, 0.01, "calm", "x", 1, None),
            (1.0, 0.01, "calm", "why", 1, None),
        ],
    ]
    for rows in tables:
        measured = [
            _measured(
                benchmark, spread(base, rel), label="ops", sub_label=s, description=d, num_threads=t, env=e
            )
            for base, rel, s, d, t, e in rows
        ]
        for change in (None, "trim_significant_figures", "colorize", "highlight_warnings"):
            table = benchmark.Compare(measured)
            if change:
                getattr(table, change)()
            show(table)
        table = benchmark.Compare([measured[i] for i in rng.permutation(len(measured))])
        table.colorize(rowwise=True)
        show(table)
    table.extend_results([_measured(benchmark, [2.0], label="other", description="z")])
    show(table)
    show.raises(table.extend_results, [3])
