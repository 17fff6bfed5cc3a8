"""Names that packages import from torch beyond its documented ones. Expected values are torch's."""

from __future__ import annotations

import copy
import importlib.metadata
import os
import pickle
import subprocess
import sys
import warnings
from collections import OrderedDict, defaultdict, deque
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import mindtorch_v2 as torch
import mindtorch_v2._functorch.vmap
from mindtorch_v2.utils import _foreach_utils
from mindtorch_v2.utils import _pytree as pytree

METADATA = """
import importlib.metadata as metadata
import mindtorch_v2
with mindtorch_v2.as_torch():
    import torch
    assert metadata.version("torch") == torch.__version__, metadata.version("torch")
    assert metadata.metadata("torch")["Name"] == "torch"
    assert metadata.requires("torch") is None
    assert "torch" in {d.metadata["Name"] for d in metadata.distributions()}
    assert metadata.version("numpy")
    assert torch.torch is torch
try:
    metadata.version("torch")
except metadata.PackageNotFoundError:
    pass
else:
    raise AssertionError("still there")
"""


def test_the_metadata_of_torch_is_served_while_the_package_stands_in_for_it() -> None:
    environment = {**os.environ, "PYTHONPATH": str(Path(torch.__file__).parent.parent)}
    try:
        importlib.metadata.version("torch")
    except importlib.metadata.PackageNotFoundError:
        subprocess.run([sys.executable, "-c", METADATA], check=True, env=environment)
    else:
        pytest.skip("torch itself is installed")


class Point(NamedTuple):
    x: int
    y: int


@pytest.mark.parametrize(
    ("name", "container", "context", "keys"),
    [
        ("dict", {"b": 1, "a": 2}, ["b", "a"], "['b']['a']"),
        ("list", [1, 2], None, "[0][1]"),
        ("tuple", (1, 2), None, "[0][1]"),
        ("ordereddict", OrderedDict(a=1, b=2), ["a", "b"], "['a']['b']"),
        ("defaultdict", defaultdict(int, a=1, b=2), [int, ["a", "b"]], "['a']['b']"),
        ("deque", deque([1, 2], 3), 3, "[0][1]"),
        ("namedtuple", Point(1, 2), Point, ".x.y"),
    ],
)
def test_containers_flatten_and_rebuild_by_their_own_functions(
    name: str, container: Any, context: Any, keys: str
) -> None:
    flat = getattr(pytree, f"_{name}_flatten")(container)
    assert flat == ([1, 2], context)
    assert getattr(pytree, f"_{name}_unflatten")(*flat) == container
    with_keys = getattr(pytree, f"_{name}_flatten_with_keys")(container)
    assert "".join(str(key) for key, _ in with_keys[0]) == keys
    assert with_keys[1] == context


def test_the_call_forms_of_to_are_parsed() -> None:
    parse = torch._C._nn._parse_to
    cpu = torch.device("cpu")
    assert parse("cpu") == (cpu, None, False, None)
    assert parse(torch.float64) == (None, torch.float64, False, None)
    assert parse("cpu", torch.float32, True) == (cpu, torch.float32, True, None)
    assert parse(torch.ones(1)) == (cpu, torch.float32, False, None)
    assert parse(memory_format=torch.channels_last) == (None, None, False, torch.channels_last)


def test_tensors_are_grouped_by_device_and_dtype() -> None:
    a, b, c = torch.ones(2), torch.ones(3, dtype=torch.float64), torch.zeros(1)
    groups = _foreach_utils._group_tensors_by_device_and_dtype([[a, b, c], [c, b, a]], with_indices=True)
    cpu = torch.device("cpu")
    assert set(groups) == {(cpu, torch.float32), (cpu, torch.float64)}
    (first, second), places = groups[cpu, torch.float32]
    assert [first[0] is a, first[1] is c, second[0] is c, second[1] is a, places] == [*[True] * 4, [0, 2]]


def test_a_storage_maps_a_file(tmp_path: Path) -> None:
    file = tmp_path / "bytes"
    file.write_bytes(bytes(range(8)))
    private = torch.UntypedStorage.from_file(str(file), False, 8)
    assert (private.tolist(), private.filename, private.is_shared()) == (list(range(8)), None, True)
    private[0] = 9
    assert file.read_bytes()[0] == 0
    shared = torch.UntypedStorage.from_file(str(file), True, 8)
    shared[0] = 9
    assert (file.read_bytes()[0], shared.filename) == (9, str(file))
    view = torch.empty(0).set_(shared, 1, (1,), (1,))
    view.view(torch.uint8)[0] = 7
    assert file.read_bytes()[4] == 7
    with pytest.raises(RuntimeError, match="smaller than the required mapping size <100>"):
        torch.UntypedStorage.from_file(str(file), False, 100)


def test_small_names_do_what_torchs_do() -> None:
    def function() -> None: ...

    assert torch._dynamo.assume_constant_result(function) is function
    assert function._dynamo_marked_constant  # type: ignore[attr-defined]
    assert torch.jit._overload(function) is function
    assert torch.jit._overload_method(function) is function
    assert torch._C._TensorMeta is type(torch.Tensor)
    assert torch._C._get_tracing_state() is None
    assert torch._C._log_api_usage_once("event") is None
    assert torch._tensor_str._tensor_str(torch.ones(2, 2), 0) == "[[1., 1.],\n [1., 1.]]"
    assert torch.device in torch.serialization.MAP_LOCATION.__args__


AS_TORCH_NAMES = """
import pickle
import mindtorch_v2
before = repr(mindtorch_v2.Tensor)
with mindtorch_v2.as_torch() as torch:
    assert torch.__name__ == "torch"
    assert repr(type(torch.ones(1))) == "<class 'torch.Tensor'>"
    assert repr(torch.Size) == "<class 'torch.Size'>"
    assert torch.torch is torch
    assert torch.nn.Linear(1, 1).weight.dtype is pickle.loads(pickle.dumps(torch.float32))
    assert pickle.loads(pickle.dumps(torch.ones(2))).tolist() == [1.0, 1.0]
assert mindtorch_v2.__name__ == "mindtorch_v2"
assert repr(mindtorch_v2.Tensor) == before
"""


def test_under_as_torch_the_package_and_its_classes_are_called_torch() -> None:
    environment = {**os.environ, "PYTHONPATH": str(Path(torch.__file__).parent.parent)}
    subprocess.run([sys.executable, "-c", AS_TORCH_NAMES], check=True, env=environment)


def test_conditions_are_checked_with_the_error_of_each_function() -> None:
    torch._check(True, lambda: "not called")
    for check, error in (
        (torch._check, RuntimeError),
        (torch._check_index, IndexError),
        (torch._check_value, ValueError),
        (torch._check_type, TypeError),
        (torch._check_not_implemented, NotImplementedError),
    ):
        with pytest.raises(error, match="too short"):
            check(False, lambda: "too short")
    with pytest.raises(RuntimeError, match="Expected cond to be True"):
        torch._check(False)
    with pytest.raises(TypeError, match="cond must be a bool"):
        torch._check(torch.tensor(True))
    with pytest.raises(AssertionError, match="no"):
        torch._assert(0, "no")
    with pytest.raises(RuntimeError, match="Expected Tensor with single nonzero value"):
        torch._assert_async(torch.zeros(1))
    with pytest.raises(RuntimeError, match="some"):
        torch._check_tensor_all(torch.tensor([True, False]), lambda: "some")


@pytest.mark.parametrize("name", ["SymInt", "SymFloat", "SymBool"])
def test_symbolic_numbers_are_classes_of_which_there_are_no_instances(name: str) -> None:
    assert not isinstance(3, getattr(torch, name))
    with pytest.raises(NotImplementedError, match="every size is a plain number"):
        getattr(torch, name)(3)


def test_futures_have_a_type_argument() -> None:
    assert torch.futures.Future[int] is not None
    future: Any = torch.Future()
    future.set_result(3)
    assert future.wait() == 3


def test_records_of_a_saved_file_are_read_by_name(tmp_path: Path) -> None:
    torch.save({"x": torch.arange(3.0)}, tmp_path / "x.pt")
    reader = torch.PyTorchFileReader(str(tmp_path / "x.pt"))
    assert "data/0" in reader.get_all_records()
    assert reader.has_record("version")
    assert not reader.has_record("nothing")
    assert len(reader.get_record("data/0")) == 12
    assert reader.get_storage_from_record("data/0", 3, torch.float32).tolist() == [0.0, 1.0, 2.0]


def test_context_managers_of_packages_are_decorators() -> None:
    from mindtorch_v2.utils._contextlib import _DecoratorContextManager

    entered = []

    class Noted(_DecoratorContextManager):
        def __enter__(self) -> None:
            entered.append("in")

        def __exit__(self, *exception: object) -> None:
            entered.append("out")

    @Noted()
    def function(x: int) -> int:
        entered.append("run")
        return x

    assert function(3) == 3
    assert entered == ["in", "run", "out"]


def test_compiler_settings_are_patched_for_a_block() -> None:
    config = torch._dynamo.config
    with config.patch(cache_size_limit=64), config.patch({"verbose": True}):
        assert (config.cache_size_limit, config.verbose) == (64, True)
    assert (config.cache_size_limit, config.verbose) == (8, False)
    with pytest.raises(AttributeError, match="does not exist"), config.patch(nothing=1):
        pass
    assert torch._dynamo.OptimizedModule is torch._dynamo.eval_frame.OptimizedModule
    assert torch._dynamo.utils.is_compile_supported("cpu") is False


def test_autocast_is_left_out_by_a_guard_of_dispatch_keys() -> None:
    keys = torch._C.DispatchKeySet(torch._C.DispatchKey.AutocastCPU)
    with torch.autocast("cpu"):
        with torch._C._ExcludeDispatchKeyGuard(keys):
            assert not torch.is_autocast_enabled("cpu")
        assert torch.is_autocast_enabled("cpu")
    with pytest.raises(NotImplementedError, match="only autocast can be left out"):
        torch._C._ExcludeDispatchKeyGuard(torch._C.DispatchKeySet(torch._C.DispatchKey.Python))


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: torch.cuda.graph(None), AssertionError, "not compiled with CUDA"),
        (lambda: torch.utils.cpp_extension.load("x", []), RuntimeError, "C\\+\\+ library"),
        (lambda: torch.ops.load_library("x.so"), OSError, "C\\+\\+ ops"),
        (lambda: torch.classes.pyg.Thing, RuntimeError, "not registered"),
        (lambda: torch.ao.quantization.prepare(None), NotImplementedError, "no quantized tensors"),
        (lambda: torch._inductor.compile(None), NotImplementedError, "no code generator"),
        (torch._subclasses.FakeTensorMode, NotImplementedError, "compiler"),
        (
            lambda: torch.export.export(torch.nn.Linear(1, 1), ()),
            NotImplementedError,
            "torch.export.export is not part of this library",
        ),
        (lambda: torch.ops.aten._pin_memory(torch.ones(1)), RuntimeError, "accelerator"),
        (torch._C.DeviceObjType, RuntimeError, "no TorchScript"),
        (torch._functorch.vmap._unwrap_batched, NotImplementedError, "once per example"),
        (torch.Stream, RuntimeError, "accelerator"),
    ],
)
def test_what_cannot_be_done_is_refused_in_a_sentence(call: Any, error: type, text: str) -> None:
    with pytest.raises(error, match=text):
        call()


def test_small_functions_of_packages_give_what_torch_gives() -> None:
    assert torch._shape_as_tensor(torch.zeros(2, 3)).tolist() == [2, 3]
    assert torch.hub.HASH_REGEX.search("resnet18-bfd8deac.pth").group(1) == "bfd8deac"
    assert torch.hub._get_torch_home() == os.path.dirname(torch.hub.get_dir())
    assert torch._utils._element_size(torch.bfloat16) == 2
    assert torch._utils._get_device_index("cpu", allow_cpu=True) == -1
    assert torch.profiler.profiler._default_schedule_fn(3) is torch.profiler.ProfilerAction.RECORD
    assert torch._C._get_accelerator() == torch.device("cpu")
    assert torch._tensor_str._add_suffixes("tensor([1]", ["size=3"], 7, False) == "tensor([1], size=3)"
    x = torch.ones(3)
    weak = __import__("mindtorch_v2.multiprocessing.reductions", fromlist=["x"]).StorageWeakRef
    assert weak(x.untyped_storage()) == weak(x[1:].untyped_storage())


def test_names_of_spread_tensors_are_importable_and_refuse() -> None:
    from mindtorch_v2.distributed._composable.fsdp import fully_shard
    from mindtorch_v2.distributed._functional_collectives import wait_tensor
    from mindtorch_v2.distributed.checkpoint.hf_storage import (
        HuggingFaceStorageReader,
        HuggingFaceStorageWriter,
    )
    from mindtorch_v2.distributed.tensor import DTensor, distribute_module, distribute_tensor
    from mindtorch_v2.distributed.tensor._utils import compute_local_shape_and_global_offset

    x = torch.ones(1)
    assert wait_tensor(x) is x
    storage = (HuggingFaceStorageReader, HuggingFaceStorageWriter)
    spread = (DTensor, distribute_module, distribute_tensor)
    for refused in (fully_shard, compute_local_shape_and_global_offset, *storage, *spread):
        with pytest.raises((NotImplementedError, RuntimeError)):
            refused(x)


def test_a_model_is_not_of_the_sharded_class_wherever_a_package_imports_it_from() -> None:
    from mindtorch_v2.distributed import fsdp
    from mindtorch_v2.distributed._tensor import DTensor
    from mindtorch_v2.distributed._tensor.experimental import implicit_replication
    from mindtorch_v2.distributed.fsdp.api import LocalStateDictConfig, ShardingStrategy
    from mindtorch_v2.distributed.fsdp.fully_sharded_data_parallel import (
        FullyShardedDataParallel,
        StateDictType,
    )

    assert FullyShardedDataParallel is fsdp.FullyShardedDataParallel
    assert (ShardingStrategy, StateDictType) == (fsdp.ShardingStrategy, fsdp.StateDictType)
    assert not isinstance(torch.nn.Linear(1, 1), FullyShardedDataParallel)
    with pytest.raises(NotImplementedError, match="DistributedDataParallel"):
        FullyShardedDataParallel(torch.nn.Linear(1, 1))
    for refused in (DTensor, implicit_replication, LocalStateDictConfig):
        with pytest.raises(NotImplementedError, match="is not part of this library"):
            refused()


def test_placements_are_values() -> None:
    from mindtorch_v2.distributed.tensor import Partial, Placement, Replicate, Shard
    from mindtorch_v2.distributed.tensor.placement_types import _StridedShard

    texts = {
        ("Replicate()", "R"): Replicate,
        ("Shard(dim=-1)", "S(-1)"): lambda: Shard(-1),
        ("Shard(dim=2)", "S(2)"): lambda: Shard(dim=2),
        ("Partial(sum)", "P(sum)"): Partial,
        ("Partial(avg)", "P(avg)"): lambda: Partial("avg"),
        ("_StridedShard(dim=2, sf=3)", "_S(2, 3)"): lambda: _StridedShard(2, split_factor=3),
    }
    for (representation, text), create in texts.items():
        placement = create()
        assert isinstance(placement, Placement)
        assert (repr(placement), str(placement)) == (representation, text)
        assert {placement} == {create()} == {pickle.loads(pickle.dumps(placement))}
    assert len({create() for create in texts.values()}) == len(texts)
    with pytest.raises(AttributeError):
        Shard(0).dim = 1
    for create_wrong in (lambda: Shard("0"), lambda: Shard(1.5), lambda: Partial(3)):
        with pytest.raises(TypeError):
            create_wrong()


def test_placements_say_what_they_are() -> None:
    from mindtorch_v2.distributed.tensor import Partial, Replicate, Shard
    from mindtorch_v2.distributed.tensor.placement_types import _StridedShard

    placements = (Replicate(), Shard(1), Partial("max"), _StridedShard(1, split_factor=2))
    assert [p.is_replicate() for p in placements] == [True, False, False, False]
    assert [p.is_shard() for p in placements] == [False, True, False, False]
    assert [p.is_partial() for p in placements] == [False, False, True, False]
    assert [Shard(1).is_shard(dim) for dim in (0, 1)] == [False, True]
    assert [Partial("max").is_partial(op) for op in ("sum", "max")] == [False, True]
    sizes = [Shard.local_shard_size_and_offset(10, 4, rank) for rank in range(4)]
    assert sizes == [(3, 0), (3, 3), (3, 6), (1, 9)]
    assert Shard.local_shard_size_and_offset(3, 4, 3) == (0, 3)


def test_the_size_of_a_storage_counts_its_bytes() -> None:
    small, large = torch.zeros(1), torch.zeros(1001)
    assert sys.getsizeof(large.untyped_storage()) - sys.getsizeof(small.untyped_storage()) == 4000


def test_policies_say_which_modules_would_be_wrapped() -> None:
    from mindtorch_v2.distributed.fsdp import wrap

    linear, container = torch.nn.Linear(1, 1), torch.nn.ModuleList()
    by_class = {"transformer_layer_cls": {torch.nn.Linear}}
    assert wrap.transformer_auto_wrap_policy(linear, False, 0, **by_class)
    assert not wrap.transformer_auto_wrap_policy(container, False, 0, **by_class)
    assert wrap.transformer_auto_wrap_policy(container, True, 0, **by_class)
    assert wrap.size_based_auto_wrap_policy(linear, False, 10, min_num_params=10)
    assert not wrap.size_based_auto_wrap_policy(linear, False, 9, min_num_params=10)
    assert not wrap.size_based_auto_wrap_policy(container, False, 10, min_num_params=10)
    assert wrap.ModuleWrapPolicy({torch.nn.Linear})(linear, False)
    assert wrap.wrap(linear) is linear


def test_questions_about_symbolic_sizes_have_the_answers_of_numbers() -> None:
    from mindtorch_v2.fx.experimental import symbolic_shapes

    assert symbolic_shapes.guard_or_false(1)
    assert not symbolic_shapes.guard_size_oblivious(0)
    assert symbolic_shapes.free_symbols(torch.ones(2).shape) == set()
    assert symbolic_shapes.sym_eq((1, 2), (1, 2))


def test_a_subclass_keeps_attributes_under_names_of_its_own() -> None:
    class MetaTensor(torch.Tensor):  # as MONAI's
        pass

    tensor = torch.ones(2).as_subclass(MetaTensor)
    tensor._meta = {"affine": 1}
    tensor.extra = 2
    assert tensor.__dict__ == {"_meta": {"affine": 1}, "extra": 2}
    assert tensor.clone().__dict__ == {}


def test_programs_choose_the_back_end_of_their_device() -> None:
    backend = torch.distributed.Backend
    assert backend.default_device_backend_map["cpu"] == backend.GLOO
    assert "cpu" in backend.backend_capability["gloo"]


def test_a_warning_of_the_compiler_is_shown_once_per_text() -> None:
    from mindtorch_v2._dynamo.utils import warn_once

    with pytest.warns(UserWarning, match="only now"):
        warn_once("only now")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_once("only now")


def test_calls_for_the_start_of_cuda_are_kept() -> None:
    def call() -> None:
        raise AssertionError("CUDA does not start here")

    torch.cuda._lazy_call(call, seed=True)
    assert torch.cuda._queued_calls.pop() == (call, {"seed": True})


def test_a_block_without_a_fake_mode_changes_nothing() -> None:
    from mindtorch_v2._subclasses.fake_tensor import unset_fake_temporarily

    with unset_fake_temporarily() as mode:
        assert mode is None


@pytest.mark.parametrize("name", ["ScriptFunction", "ScriptMethod"])
def test_classes_of_compiled_functions_are_for_checks_only(name: str) -> None:
    kind = getattr(torch._C, name)
    assert not isinstance(len, kind)
    with pytest.raises(RuntimeError, match="no compiler"):
        kind()


def test_quantization_is_refused_with_a_sentence() -> None:
    from mindtorch_v2.quantization.observer import MinMaxObserver

    with pytest.raises(NotImplementedError, match="no quantized tensors"):
        MinMaxObserver()
    with pytest.raises(NotImplementedError, match="no quantized tensors"):
        torch.ao.quantization.quantize_dynamic(torch.nn.Linear(1, 1), {torch.nn.Linear})


def test_python_types_are_dtypes_of_modules_and_limits_too() -> None:
    assert torch.nn.Linear(1, 1).to(float).weight.dtype == torch.float64
    assert torch.nn.Linear(1, 1).to("cpu", dtype=float).weight.dtype == torch.float64
    with pytest.raises(TypeError, match="only accepts floating point"):
        torch.nn.Linear(1, 1).to(int)
    assert torch.finfo(float) == torch.finfo(torch.float64)
    assert torch.iinfo(int) == torch.iinfo(torch.int64)
    with pytest.raises(TypeError, match=r"must be torch\.dtype, not str"):
        torch.finfo("float")


def test_the_line_search_of_lbfgs_has_the_signature_of_torch() -> None:
    from mindtorch_v2.optim.lbfgs import _cubic_interpolate, _strong_wolfe

    def loss_and_gradient(x: torch.Tensor, t: float, d: torch.Tensor) -> tuple[float, torch.Tensor]:
        place = x + t * d
        return (place * place).sum().item(), 2 * place

    start = torch.tensor([1.0])
    direction = torch.tensor([-1.0])
    loss, gradient, t, n_evals = _strong_wolfe(
        loss_and_gradient, start, 0.9, direction, 1.0, torch.tensor([2.0]), torch.tensor(-2.0)
    )
    assert (loss, gradient.item(), t, n_evals) == pytest.approx((0.01, 0.2, 0.9, 1))
    values = [torch.tensor(value) for value in (0.0, 1.0, -2.0, 2.0, 1.0, 2.0)]
    assert _cubic_interpolate(*values).item() == pytest.approx(1.0)  # of (x - 1)**2
    assert _cubic_interpolate(*values, bounds=(0.0, 0.5)) == 0.5


def test_the_basis_of_several_tensors_is_cut_out_of_one_identity_matrix() -> None:
    from mindtorch_v2.autograd.functional import _as_tuple, _construct_standard_basis_for

    first, second = torch.ones(2), torch.ones(1, dtype=torch.float64)
    rows = _construct_standard_basis_for((first, second), (2, 1))
    assert [row.tolist() for row in rows] == [[[1, 0], [0, 1], [0, 0]], [[0], [0], [1]]]
    assert rows[1].dtype == torch.float64
    assert _as_tuple(first) == (first,)
    assert _as_tuple((first,), "inputs", "jacobian") == (True, (first,))
    with pytest.raises(TypeError, match="The inputs given to jacobian must be"):
        _as_tuple((1,), "inputs", "jacobian")


def test_functions_have_a_second_module() -> None:
    import mindtorch_v2._VF as functions

    assert functions.relu(torch.tensor([-1.0, 1.0])).tolist() == [0.0, 1.0]
    assert not torch.distributed.autograd.is_available()


def test_names_of_launchers_and_decompositions_are_importable_and_refuse() -> None:
    from mindtorch_v2._decomp import core_aten_decompositions, get_decompositions, register_decomposition
    from mindtorch_v2.distributed.fsdp._common_utils import _FSDPState
    from mindtorch_v2.distributed.launcher import LaunchConfig, elastic_launch, launch_agent

    launchers = (LaunchConfig, elastic_launch, launch_agent)
    decompositions = (core_aten_decompositions, get_decompositions, register_decomposition)
    for refused in (_FSDPState, *launchers, *decompositions):
        with pytest.raises(NotImplementedError, match="is not part of this library"):
            refused()


def test_small_names_of_distributed_packages_work() -> None:
    import socket

    from mindtorch_v2.distributed._composable_state import _get_module_state
    from mindtorch_v2.distributed.elastic.utils.distributed import get_free_port
    from mindtorch_v2.distributed.fsdp._common_utils import clean_tensor_name
    from mindtorch_v2.utils._triton import has_triton, has_triton_package

    assert _get_module_state(torch.nn.Linear(1, 1)) is None
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", get_free_port()))
    assert clean_tensor_name("_fsdp_wrapped_module.a._checkpoint_wrapped_module.b") == "a.b"
    assert (has_triton(), has_triton_package()) == (False, False)
    with pytest.warns(UserWarning, match="'set_vital' is deprecated, please do not call"):
        assert torch.set_vital("a", "b", "c") is None


def test_loaders_of_other_packages_find_what_the_worker_processes_of_torch_use() -> None:
    import os
    import signal

    from mindtorch_v2._utils import ExceptionWrapper
    from mindtorch_v2.utils.data import _utils
    from mindtorch_v2.utils.data._utils.worker import ManagerWatchdog

    try:
        raise KeyError("lost")
    except KeyError:
        wrapped = ExceptionWrapper(where="in a thread")
    with pytest.raises(KeyError, match="Caught KeyError in a thread"):
        wrapped.reraise()
    assert ManagerWatchdog().is_alive()
    assert (_utils.HAS_NUMPY, _utils.python_exit_status) == (True, False)
    # a worker that ends with an error is noticed, one that is running is not
    reading, writing = os.pipe()
    running = os.posix_spawn("/bin/cat", ["cat"], {}, file_actions=[(os.POSIX_SPAWN_DUP2, reading, 0)])
    killed = os.posix_spawn("/bin/cat", ["cat"], {}, file_actions=[(os.POSIX_SPAWN_DUP2, reading, 0)])
    try:
        _utils.signal_handling._set_worker_pids(1, [running])
        _utils.signal_handling._error_if_any_worker_fails()
        os.kill(killed, signal.SIGKILL)
        os.waitid(os.P_PID, killed, os.WEXITED | os.WNOWAIT)
        _utils.signal_handling._set_worker_pids(2, [killed])
        with pytest.raises(RuntimeError, match=f"worker .pid {killed}. is killed by signal: Killed"):
            _utils.signal_handling._error_if_any_worker_fails()
        _utils.signal_handling._remove_worker_pids(2)
        _utils.signal_handling._error_if_any_worker_fails()
    finally:
        os.kill(running, signal.SIGKILL)
        for pid in (running, killed):
            os.waitpid(pid, 0)
        _utils.signal_handling._worker_pids.clear()
        os.close(reading)
        os.close(writing)


def test_a_tracer_that_writes_trace_anew_finds_the_parts_of_torchs() -> None:
    """As torch-geometric's `to_hetero` does."""
    from mindtorch_v2.fx import _symbolic_trace as parts

    class Tracer(torch.fx.Tracer):
        def trace(self, root: torch.nn.Module, concrete_args: Any = None) -> torch.fx.Graph:
            self.root, self.submodule_paths = root, {module: name for name, module in root.named_modules()}
            self.graph, self.tensor_attrs = torch.fx.Graph(tracer_cls=type(self)), {root.scale: "scale"}
            forward, arguments = self.create_args_for_root(type(root).forward, True, concrete_args)
            cache: dict[str, Any] = {}

            def module_getattr(module: Any, name: str) -> Any:
                return self.getattr(name, parts._orig_module_getattr(module, name), cache)

            def module_call(module: Any, *args: Any) -> Any:
                def call(*args: Any) -> Any:
                    return parts._orig_module_call(module, *args)

                return self.call_module(module, call, args, {})

            with parts._Patcher() as patcher:
                patcher.patch_method(torch.nn.Module, "__getattr__", module_getattr, deduplicate=False)
                patcher.patch_method(torch.nn.Module, "__call__", module_call, deduplicate=False)
                parts._patch_wrapped_functions(patcher)
                parts._autowrap_check(patcher, forward.__globals__, self._autowrap_function_ids)
                self.create_node("output", "output", (self.create_arg(forward(*arguments)),), {})
            return self.graph

    class Layer(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear, self.scale = torch.nn.Linear(2, 2), torch.ones(2)

        def forward(self, x: Any) -> Any:
            return self.scale.mul(self.linear(x))

    layer, before = Layer(), (torch.nn.Module.__call__, torch.Tensor.mul)
    graph = Tracer().trace(layer)
    operations = [node.op for node in graph.nodes]
    assert operations == ["placeholder", "call_module", "get_attr", "call_method", "output"]
    assert (torch.nn.Module.__call__, torch.Tensor.mul) == before
    x = torch.ones(1, 2)
    assert torch.equal(torch.fx.GraphModule(layer, graph)(x), layer(x))
    with pytest.raises(NotImplementedError, match="TorchScript"):
        parts.ScriptObject()


def test_a_handler_tells_the_function_unbind_from_the_method() -> None:
    """monai's MetaTensor calls `torch.unbind` when it handles `Tensor.unbind`."""
    seen = []

    class Batch(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            seen.append([func == torch.unbind, func == torch.Tensor.unbind])
            return super().__torch_function__(func, types, args, kwargs or {})

    batch = torch.arange(4).view(2, 2).as_subclass(Batch)
    seen.clear()
    assert [part.tolist() for part in torch.unbind(batch, dim=0)] == [[0, 1], [2, 3]]
    assert seen[0] == [True, False]
    seen.clear()
    batch.unbind(1)
    assert seen == [[False, True]]


def test_flags_may_be_set_in_the_context_that_packages_ask_for() -> None:
    allow = getattr(torch.backends, "__allow_nonbracketed_mutation")
    before = torch.backends.cudnn.deterministic
    with allow():
        torch.backends.cudnn.deterministic = True
        assert torch.backends.cudnn.deterministic
        torch.backends.cudnn.deterministic = before


def test_the_classes_of_torch_ops_have_their_other_path() -> None:
    assert torch._ops.ops is torch.ops
    assert isinstance(torch.ops.aten, torch._ops._OpNamespace)
    assert isinstance(torch.ops.aten.add, torch._ops.OpOverloadPacket)
    assert isinstance(torch.ops.aten.add.Tensor, torch._ops.OpOverload)


def test_quantization_schemes_are_named_objects_that_cannot_be_made() -> None:
    assert repr(torch.per_tensor_affine) == "torch.per_tensor_affine"
    assert isinstance(torch.per_channel_symmetric, torch.qscheme)
    assert pickle.loads(pickle.dumps(torch.per_channel_affine)) is torch.per_channel_affine
    assert copy.deepcopy(torch.per_tensor_symmetric) is torch.per_tensor_symmetric
    with pytest.raises(TypeError, match=r"cannot create 'torch\.qscheme' instances"):
        torch.qscheme()


def test_copies_between_gpus_can_be_imported_and_are_refused() -> None:
    from mindtorch_v2.cuda import comm

    with pytest.raises(NotImplementedError, match="runs on the CPU only"):
        comm.scatter(torch.ones(2), [0])


def test_the_setting_of_torchscript_can_be_read() -> None:
    from mindtorch_v2.jit import _state

    assert _state._enabled
    _state.disable()
    assert not _state._enabled
    _state.enable()


def test_functions_that_choose_by_an_argument_are_listed() -> None:
    from mindtorch_v2 import _jit_internal

    chooser = _jit_internal.boolean_dispatch("flag", 1, False, max, min, __name__, "chooser")
    entry = _jit_internal.boolean_dispatched[chooser]
    assert entry == {"if_true": max, "if_false": min, "index": 1, "default": False, "arg_name": "flag"}


def test_old_paths_of_the_distributed_package_are_the_same_objects() -> None:
    from mindtorch_v2.distributed._tensor import device_mesh
    from mindtorch_v2.distributed.distributed_c10d import _get_global_rank

    assert device_mesh.DeviceMesh is torch.distributed.device_mesh.DeviceMesh
    assert _get_global_rank is torch.distributed.get_global_rank
    assert torch.distributed.GradBucket is torch.nn.parallel.distributed.GradBucket


def test_paths_of_libraries_are_resolved(tmp_path: Path) -> None:
    from mindtorch_v2 import _utils_internal

    (tmp_path / "target").touch()
    (tmp_path / "link").symlink_to(tmp_path / "target")
    assert _utils_internal.resolve_library_path(str(tmp_path / "link")) == os.path.realpath(
        tmp_path / "target"
    )
    assert _utils_internal.get_writable_path(str(tmp_path)) == str(tmp_path)
