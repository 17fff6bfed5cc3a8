"""Which kernel torch shows inside a convolution: oneDNN's or its own, by shape, dtype and number of threads."""

from __future__ import annotations

from typing import Any

_SHAPES: tuple[tuple[tuple[int, ...], tuple[int, ...], dict[str, int]], ...] = (
    ((2, 3, 8, 8), (4, 3, 1, 1), {}),
    ((2, 3, 8, 8), (4, 3, 1, 1), {"stride": 2}),
    ((16, 3, 8, 8), (4, 3, 1, 1), {}),
    ((2, 3, 8, 8), (4, 3, 3, 3), {}),
    ((1, 3, 8, 8), (4, 3, 3, 3), {}),
    ((1, 3, 8, 8), (4, 3, 5, 5), {}),
    ((1, 3, 100, 100), (4, 3, 3, 3), {}),
    ((1, 3, 8, 8), (4, 3, 3, 3), {"dilation": 2}),
    ((2, 4, 8, 8), (4, 1, 3, 3), {"groups": 4}),
    ((2, 4, 8, 8), (4, 2, 1, 1), {"groups": 2}),
    ((2, 3, 8), (4, 3, 3), {}),
    ((1, 3, 8), (4, 3, 1), {}),
    ((2, 3, 6, 6, 6), (4, 3, 3, 3, 3), {}),
    ((1, 3, 6, 6, 6), (4, 3, 3, 3, 3), {}),
)


def in_one_thread(torch: Any, show: Any) -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    functional = torch.nn.functional
    try:
        for shape, weight, options in _SHAPES:
            call = (functional.conv1d, functional.conv2d, functional.conv3d)[len(shape) - 3]
            for dtype in (torch.float32, torch.float64):
                arguments = (torch.ones(shape, dtype=dtype), torch.ones(weight, dtype=dtype))
                with torch.profiler.profile(record_shapes=True) as profile:
                    call(*arguments, **options)
                names = [e.name for e in profile.events() if "conv" in e.name]
                show(shape, weight, options, dtype, names[2:])
    finally:
        torch.set_num_threads(before)
