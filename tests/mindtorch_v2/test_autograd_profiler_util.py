"""torch.autograd.profiler_util: torch's helpers of tables."""

from __future__ import annotations

import mindtorch_v2 as torch
from mindtorch_v2.profiler import profile


def test_helpers_of_tables_are_torchs():
    from mindtorch_v2.autograd import profiler_util

    assert [profiler_util._filter_name(n) for n in ("[memory]", "aten::is_leaf", "aten::mm")] == [
        True,
        True,
        False,
    ]
    assert profiler_util._filter_stack_entry("a.py(3): backward")
    assert not profiler_util._filter_stack_entry("torch/autograd/__init__.py(5): backward")
    assert profiler_util._rewrite_name("ProfilerStep#3", with_wildcard=True) == "ProfilerStep*"
    assert profiler_util._rewrite_name("ProfilerStep#3") == "ProfilerStep#3"
    shown = type("Timed", (), {"x": 1500.0, "x_str": profiler_util._attr_formatter("x")})
    assert shown().x_str == "1.500ms"
    with profile() as prof:
        torch.ones(1)
    assert profiler_util._build_table(prof.events(), row_limit=2) == prof.events().table(row_limit=2)
    assert int(torch.profiler.RecordScope.USER_SCOPE) == 7
