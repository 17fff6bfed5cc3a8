"""The compiled core: optional extension modules. Everything else about the distribution is in pyproject.toml.

Without a compiler or headers the modules are left out, and their plain Python twins do the work.
"""

import glob
import platform
import sysconfig

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext


class BuildBesideSources(build_ext):
    """Copies what was built into `src` too: a checkout that is used through PYTHONPATH has the core."""

    def run(self) -> None:
        super().run()
        self.copy_extensions_to_source()


def extension(module: str, *sources: str, numpy: bool = False) -> Extension:
    include_dirs = []
    if numpy:
        import numpy as np

        include_dirs.append(np.get_include())
    return Extension(
        module,
        [f"src/_core/{source}" for source in sources],
        include_dirs=include_dirs,
        depends=sorted(glob.glob("src/_core/*.h")),
        define_macros=[
            ("NPY_NO_DEPRECATED_API", "NPY_2_0_API_VERSION"),
            ("NPY_TARGET_VERSION", "NPY_2_0_API_VERSION"),
        ],
        # No a * b + c in one rounding: compiled kernels give what their NumPy twins give, to the last bit.
        extra_compile_args=[
            "-std=c11",
            "-O3",
            "-ffp-contract=off",
            "-fno-math-errno",
            "-fno-trapping-math",
            "-g0",
            "-fvisibility=hidden",
            "-Wall",
            "-Wextra",
        ],
        optional=True,
    )


EXTENSIONS = [
    extension(
        "mindtorch_v2.profiler.record._core",
        *("recorder.c", "calls.c", "inputs.c", "memory.c", "tensors.c", "log.c", "table.c", "clock.c"),
        "turns.c",
        numpy=True,
    ),
    extension(
        "mindtorch_v2._slots",
        *("tensor_slots.c", "operators.c", "annotations.c", "layout.c", "per_thread.c"),
        numpy=True,
    ),
    extension(
        "mindtorch_v2._ops._fused",
        *("fused_module.c", "fused_pointwise.c", "fused_rows.c", "fused_products.c", "fused_random.c"),
        *("fused_windows.c", "fused_grid.c", "fused_maps.c", "fused_along.c"),
        numpy=True,
    ),
    extension("mindtorch_prof._tree", "tree.c"),
    extension("mindtorch_prof.analysis._longest_path", "longest_path.c"),
    extension(
        "mindtorch_prof.load._reader",
        *("reader.c", "reader_json.c", "reader_groups.c", "reader_answers.c", "reader_spans.c"),
        "reader_tables.c",
        numpy=True,
    ),
]

# The modules rely on CPython and its lock: other interpreters and free-threaded builds use the twins.
is_free_threaded = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))
is_supported = platform.python_implementation() == "CPython" and not is_free_threaded
setup(ext_modules=EXTENSIONS if is_supported else [], cmdclass={"build_ext": BuildBesideSources})
