"""as_torch(): `import torch` gives this package, in a process of its own each time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest


def test_imports_of_torch_give_the_same_module_objects(run_python: Any) -> None:
    run_python(
        """
        import mindtorch_v2, sys
        mindtorch_v2.as_torch()
        import torch
        import torch.nn.functional as F
        from torch import nn
        from torch.nn import Linear
        from torch.nn.modules.linear import Linear as SameLinear
        from torch.utils.data import DataLoader, TensorDataset
        from torch.optim.lr_scheduler import StepLR
        import torch.cuda.amp
        assert torch is mindtorch_v2
        assert F is sys.modules["mindtorch_v2.nn.functional"] is torch.nn.functional
        assert Linear is SameLinear is mindtorch_v2.nn.Linear
        assert sys.modules["torch.nn"] is sys.modules["mindtorch_v2.nn"]
        assert F.__spec__.name == "mindtorch_v2.nn.functional" and F.__name__ == "mindtorch_v2.nn.functional"
        """
    )


def test_other_modules_that_import_torch_run_unchanged(run_python: Any, tmp_path: Path) -> None:
    (tmp_path / "somebody.py").write_text(
        "import torch\nimport torch.nn as nn\n\n"
        "class Net(nn.Module):\n"
        "    def __init__(self):\n        super().__init__()\n        self.a = nn.Linear(2, 1)\n"
        "    def forward(self, x):\n        return torch.relu(self.a(x))\n"
    )
    printed = run_python(
        """
        import mindtorch_v2
        with mindtorch_v2.as_torch() as torch:
            import somebody
        net = somebody.Net()
        print(tuple(net(torch.ones(3, 2)).shape), somebody.torch is mindtorch_v2)
        """,
        tmp_path,
    )
    assert printed == "(3, 1) True\n"


def test_leaving_the_block_undoes_it(run_python: Any, tmp_path: Path) -> None:
    (tmp_path / "torch.py").write_text("real = True\n")
    run_python(
        """
        import sys, mindtorch_v2
        finders = list(sys.meta_path)
        with mindtorch_v2.as_torch():
            import torch.nn
            assert torch is mindtorch_v2
        assert sys.meta_path == finders
        assert not [name for name in sys.modules if name == "torch" or name.startswith("torch.")]
        import torch
        assert torch.real
        """,
        tmp_path,
    )


def test_blocks_nest_and_a_plain_call_stays_in_force(run_python: Any) -> None:
    run_python(
        """
        import mindtorch_v2
        with mindtorch_v2.as_torch():
            with mindtorch_v2.as_torch():
                import torch
            import torch.nn
        mindtorch_v2.as_torch()
        with mindtorch_v2.as_torch():
            pass
        import torch.optim
        assert torch is mindtorch_v2
        """
    )


def test_it_refuses_when_real_torch_is_already_imported(run_python: Any, tmp_path: Path) -> None:
    (tmp_path / "torch.py").write_text("real = True\n")
    run_python(
        """
        import torch, mindtorch_v2
        try:
            mindtorch_v2.as_torch()
        except RuntimeError as error:
            assert "already imported" in str(error)
        else:
            raise AssertionError("two kinds of torch")
        assert torch.real
        """,
        tmp_path,
    )


@pytest.mark.parametrize(
    ("name", "missing"),  # the error names the first package that is missing, as for any other import
    [
        ("torch._prims", "torch._prims"),
        ("torch._prims.executor", "torch._prims"),
        ("torch.nn.nothing", "torch.nn.nothing"),
        ("torchvision_of_nobody", "torchvision_of_nobody"),
    ],
)
def test_modules_this_package_does_not_have_are_not_found(run_python: Any, name: str, missing: str) -> None:
    run_python(
        f"""
        import mindtorch_v2
        mindtorch_v2.as_torch()
        try:
            import {name}
        except ModuleNotFoundError as error:
            assert error.name == {missing!r}, error.name
        else:
            raise AssertionError
        """
    )


def test_functorch_is_served_beside_torch_with_its_old_names(run_python: Any) -> None:
    run_python(
        """
        import sys, warnings
        import mindtorch_v2
        with mindtorch_v2.as_torch():
            import torch, functorch
            from functorch import combine_state_for_ensemble, vmap
            from functorch import make_functional, make_functional_with_buffers
            from functorch.compile import make_boxed_func
            from functorch.einops import rearrange
        assert "functorch" not in sys.modules and functorch.__version__ == torch.__version__
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            assert functorch.grad(lambda x: x.sum())(torch.ones(2)).tolist() == [1.0, 1.0]
        assert caught[0].category is FutureWarning
        assert "Please use `torch.func.grad` instead" in str(caught[0].message)
        warnings.simplefilter("ignore")
        linear = torch.nn.Linear(2, 1)
        function, parameters = make_functional(linear)
        x = torch.tensor([[1.0, 2.0]])
        assert torch.equal(function(parameters, x), linear(x))
        untracked = make_functional(linear, disable_autograd_tracking=True)[1]
        assert [p.requires_grad for p in untracked] == [False, False]
        norm = torch.nn.BatchNorm1d(2)
        function, parameters, buffers = make_functional_with_buffers(norm)
        function(parameters, buffers, torch.tensor([[0.0, 2.0], [2.0, 4.0]]))
        assert torch.allclose(buffers[0], torch.tensor([0.1, 0.3]))
        assert norm.running_mean.tolist() == [0.0, 0.0]
        try:
            make_functional(norm)
        except RuntimeError as error:
            assert "has buffers" in str(error)
        else:
            raise AssertionError("a module with buffers was accepted")
        function, parameters, buffers = combine_state_for_ensemble([linear, torch.nn.Linear(2, 1)])
        assert vmap(function, in_dims=(0, 0, None))(parameters, buffers, x).shape == (2, 1, 1)
        assert not parameters[0].requires_grad
        boxed = make_boxed_func(lambda a, b: a + b)
        assert boxed([1, 2]) == 3 and boxed._boxed_call
        """
    )
