"""The choice between the compiled modules and their Python twins."""

from __future__ import annotations

import pytest

from mindtorch_prof import core


def test_python_refuses_the_compiled_modules(monkeypatch):
    monkeypatch.setenv(core.VARIABLE, "python")
    assert core.compiled("math") is None


def test_unset_uses_what_was_built(monkeypatch):
    monkeypatch.delenv(core.VARIABLE, raising=False)
    assert core.compiled("math").sqrt(4) == 2
    assert core.compiled("mindtorch_prof.not_built") is None


def test_c_insists_and_says_what_is_missing(monkeypatch):
    monkeypatch.setenv(core.VARIABLE, "c")
    with pytest.raises(ImportError, match=r"mindtorch_prof\.not_built was not built"):
        core.compiled("mindtorch_prof.not_built")


def test_other_choices_are_refused(monkeypatch):
    monkeypatch.setenv(core.VARIABLE, "rust")
    with pytest.raises(ImportError, match="MINDTORCH_CORE=rust: expected"):
        core.compiled("math")
