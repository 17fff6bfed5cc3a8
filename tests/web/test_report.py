"""The HTML report in a real Chromium: what people see and do. Skips loudly where there is no browser."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path
from typing import Any

import chromium
import kineto_documents as documents
import pytest
from chromium import Browser
from kineto_documents import waiting_device
from synthetic_traces import linear_with_synthetic_ops
from trace_builder import calls_in_a_row, make_device, make_trace, op_with_a_kernel
from trace_file_builder import noisy_ops

import mindtorch_v2 as torch
from mindtorch_prof import load
from mindtorch_prof.analysis.advice import advise
from mindtorch_prof.analysis.diff_tree import diff_tree
from mindtorch_prof.analysis.figures import figures
from mindtorch_prof.export.html import export_html
from mindtorch_prof.settings import Settings
from mindtorch_prof.synthetic_rows import as_recorded
from mindtorch_prof.torch_api.results import Results
from mindtorch_prof.trace import DEVICE_COPY, DEVICE_KERNEL
from mindtorch_v2 import nn
from mindtorch_v2.profiler import profile, record_function, schedule

pytestmark = pytest.mark.skipif(
    chromium.executable() is None,
    reason="NOT CHECKED: the report in a browser (no chromium here; `apt-get install chromium` brings it)",
)

HOSTILE = [
    "</script><script>document.title='bad'</script>",
    "<img src=x onerror=\"document.title='bad'\">",
    "\"'`${document.title='bad'}",
    "\x1b[31mred\x1b[0m",
    "abc\u202efed\u2066",
    "long" * 2_500,
]


class Recorded:
    """Two recordings and the pages that show them."""

    def __init__(self, folder: Path) -> None:
        self.first, self.second = train(3), train(3, extra=True)
        self.one, self.two = folder / "one.html", folder / "two.html"
        self.memory = folder / "memory.html"
        self.notebook = folder / "notebook.html"
        self.hostile = folder / "hostile.html"
        self.first.export_html(self.one)
        self.first.export_html(self.two, self.second)
        self.first.export_memory_timeline(str(self.memory))
        self.notebook.write_text(
            f"<!doctype html><div id=app><table></table></div>{self.first._repr_html_()}"
        )
        with profile(record_shapes=True) as prof:
            for name in HOSTILE:
                with record_function(name):
                    torch.ones(3) + 1
        prof.export_html(self.hostile)  # type: ignore[arg-type]
        self.device, self.thin = folder / "device.html", folder / "thin.html"
        export_html(Results(op_with_a_kernel()), self.device)
        export_html(self.first, self.thin, max_events=50)
        # in microseconds: four calls of 10 and 25, three of 10, what went and what came
        before = [("aten::mm", 10)] * 4 + [("aten::add", 10)] * 3 + [("aten::relu", 30)]
        after = [("aten::mm", 25)] * 4 + [("aten::add", 10)] * 3 + [("aten::gelu", 20)]
        self.synthetic, self.both = folder / "synthetic.html", folder / "both.html"
        shown = Results(linear_with_synthetic_ops())
        export_html(shown, self.synthetic)
        export_html(shown, self.both, Results(as_recorded(shown.trace)))
        self.devices = folder / "devices.html"
        export_html(Results(op_with_a_kernel()), self.devices, Results(op_with_a_kernel()))
        self.waiting_trace = waiting_device(folder / "waiting.json")
        self.waiting = folder / "waiting.html"
        export_html(load(self.waiting_trace), self.waiting)
        self.launches = folder / "launches.html"
        export_html(load(launches(folder / "launches.json")), self.launches)
        self.noisy = folder / "noisy.html"
        first, second = (
            load(noisy_ops({"aten::mm": (4, 100.0)}, seed=seed).dump(folder / f"noisy{seed}.json"))
            for seed in (0, 1)
        )
        export_html(first, self.noisy, second)
        self.changed = folder / "changed.html"
        export_html(Results(calls_in_a_row(before)), self.changed, Results(calls_in_a_row(after)))

    @property
    def rows(self) -> dict[str, Any]:
        """The averages of events, without Python calls: the report shows those apart."""
        rows = self.first.profiler._results.key_averages()
        return {row.key: row for row in rows}


def launches(path: Path) -> Path:
    """A file: an annotation around two ops that launch a kernel each, and a kernel that nothing launched."""
    events = [documents.event("train", 0, 100, "user_annotation")]
    for number, at in enumerate((10, 40), start=1):
        ids = {"External id": number, "correlation": number}
        events += [
            documents.event("aten::mm", at, 20, **ids),
            documents.event("cudaLaunchKernel", at + 5, 5, "cuda_runtime", **ids),
            documents.kernel("gemm", at + 10, 5, **ids),
        ]
    events.append(documents.kernel("lost", 80, 10, correlation=99))
    return documents.write(path, events)


def train(steps: int, *, extra: bool = False) -> Any:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with profile(
        schedule=schedule(wait=0, warmup=1, active=steps, repeat=1),
        record_shapes=True,
        profile_memory=True,
        with_stack=True,
        with_flops=True,
        with_modules=True,
    ) as prof:
        for _ in range(steps + 1):
            loss = model(torch.ones(16, 4)).sum()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if extra:
                torch.ones(300, 300) @ torch.ones(300, 300)
            prof.step()
    return prof


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    return Recorded(tmp_path_factory.mktemp("pages"))


@pytest.fixture(scope="module")
def window(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with chromium.browser(tmp_path_factory.mktemp("profile")) as window:
        yield window


@pytest.fixture
def page(window: Browser) -> Iterator[Browser]:
    """A window of a desktop's size; whatever a test did, the page must not have complained."""
    window.size(1400, 900)
    window.dark(False)
    yield window
    assert window.complaints == []


def time_text(us: float) -> str:
    """A time as the page words it: of whole nanoseconds, rounded as browsers do (halves up)."""
    ns = round(us * 1000)
    for size, unit in ((10**9, "s"), (10**6, "ms"), (10**3, "µs")):
        if abs(ns) >= size:
            return f"{Decimal(ns / size).quantize(Decimal('0.001'), ROUND_HALF_UP)} {unit}"
    return "0" if ns == 0 else f"{ns} ns"


NOTHING_STICKS_OUT = "document.documentElement.scrollWidth <= innerWidth"


def text_of(selector: str) -> str:
    """The expression for the text of an element."""
    return f"document.querySelector({json.dumps(selector)}).textContent"


def facts_of(selector: str) -> str:
    """The expression for the facts in elements: the text of the second part by that of the first."""
    return (
        f"Object.fromEntries([...document.querySelectorAll({json.dumps(selector)})].map("
        "e => [e.children[0].textContent, e.children[1].textContent]))"
    )


def cells(page: Browser, scope: str = ".table-box") -> list[dict[str, str]]:
    """The rows of a table that are drawn now, by title."""
    return page.js(f"""(() => {{
      const box = document.querySelector({json.dumps(scope)});
      const titles = [...box.querySelectorAll('thead th')].map(e => e.textContent.replace(/[▲▼]/g, ''));
      return [...box.querySelectorAll('tbody tr:not(.space)')].map(
        tr => Object.fromEntries([...tr.children].map((td, i) => [titles[i], td.textContent])));
    }})()""")


def search(page: Browser, name: str) -> None:
    """Search for a name in a view with a canvas."""
    page.wait("document.querySelector('canvas')")
    page.type("input[type=search]", name)
    page.wait("/found/.test(document.querySelector('.note')?.textContent)")


def view(page: Browser, name: str, ready: str = ".table-box tbody tr") -> None:
    page.click(f"[data-view={name}]")
    page.wait(f"document.querySelector('.view-{name}') && document.querySelector({json.dumps(ready)})")


# ------------------------------------------------------------------------------------ what is shown


def test_the_page_asks_for_nothing_but_itself(page: Browser, recorded: Recorded) -> None:
    page.open(recorded.one)
    for name in ("operators", "flame", "timeline", "memory", "modules"):
        view(page, name, "canvas, .table-box tbody tr")
    assert page.requests == [recorded.one.as_uri()]


def test_the_overview_shows_the_figures_shares_steps_and_top_operators(
    page: Browser, recorded: Recorded
) -> None:
    page.open(recorded.one)
    known = figures(recorded.first)
    top = max(recorded.rows.values(), key=lambda r: r.self_cpu_time_total)

    @page.eventually
    def check() -> None:
        tiles = page.js(facts_of(".tile"))
        assert tiles["Span"] == time_text(known.span_us)
        assert tiles["Events"] == f"{known.events:,}"
        assert tiles["Self CPU time"] == time_text(sum(r.self_cpu_time_total for r in recorded.rows.values()))
        shares = page.js(
            "[...document.querySelectorAll('[data-share]')].map(e => parseFloat(e.children[2].textContent))"
        )
        assert sum(shares) == pytest.approx(100, abs=0.1)
        assert page.js("document.querySelectorAll('.step').length") == 3
        first = page.js("[...document.querySelector('.top tr').children].map(e => e.textContent)")
        assert first[:2] == [top.key, time_text(top.self_cpu_time_total)]
        assert "complete" in page.js(text_of(".health"))


def test_the_operators_are_those_of_key_averages(page: Browser, recorded: Recorded) -> None:
    page.size(1400, 4000)
    page.open(recorded.one, "#operators")

    @page.eventually
    def check() -> None:
        shown = {row["Name"]: row for row in cells(page)}
        assert set(shown) == set(recorded.rows)
        for name, row in recorded.rows.items():
            assert shown[name]["Self CPU"] == time_text(row.self_cpu_time_total), name
            assert shown[name]["CPU total"] == time_text(row.cpu_time_total), name
            assert shown[name]["Calls"] == f"{row.count:,}", name
        assert shown["aten::addmm"]["FLOPs"].startswith(f"{recorded.rows['aten::addmm'].flops / 1000:.2f}")


def test_the_flame_graph_tells_the_numbers_of_a_call(page: Browser, recorded: Recorded) -> None:
    page.open(recorded.one, "#flame")
    page.wait("document.querySelector('canvas')?.dataset.drawn > 5")
    page.focus("canvas")
    page.key("ArrowDown")
    page.expect("document.querySelector('canvas').dataset.chosen", "ProfilerStep*")

    @page.eventually
    def check() -> None:
        facts = page.js(facts_of(".details .facts > div"))
        assert facts["Time"] == time_text(recorded.rows["ProfilerStep*"].cpu_time_total)
        assert facts["Calls"] == "3"


def test_memory_shows_the_peak_and_what_was_alive_then(page: Browser, recorded: Recorded) -> None:
    page.open(recorded.one, "#memory")
    page.wait("document.querySelector('.uplot canvas')")
    memory = recorded.first.profiler._results.trace.memory
    before = sum(nbytes for address, nbytes, _ in memory.of_modules if address not in memory.address)

    @page.eventually
    def check() -> None:
        note = page.js(text_of(".tile-note"))
        assert f"{int(memory.total.max()):,} bytes" in note
        assert ("allocated before the recording" in note) is (before > 0)

    page.expect("document.querySelectorAll('.table-box').length", 2)


def test_modules_are_a_tree_with_their_times(page: Browser, recorded: Recorded) -> None:
    page.open(recorded.one, "#modules")

    @page.eventually
    def check() -> None:
        rows = cells(page)
        assert [re.sub(r"^\W*", "", row["Module"]) for row in rows] == [
            "Sequential_0",
            "Linear_0",
            "ReLU_0",
            "Linear_1",
        ]
        assert rows[0]["Forward %"] == "100.00%"
        assert {row["Calls"] for row in rows} == {"3"}

    page.click(".twist")
    page.wait("document.querySelectorAll('.table-box tbody tr').length === 1")


def test_a_memory_timeline_is_the_memory_view_alone(page: Browser, recorded: Recorded) -> None:
    page.open(recorded.memory)
    page.wait("document.querySelector('.uplot canvas')")
    page.expect("document.querySelector('nav') === null", True)
    page.expect("document.querySelector('[data-memory]').dataset.memory", "Parameter")


def test_kernels_have_their_own_rows_and_tracks(page: Browser, recorded: Recorded) -> None:
    page.open(recorded.device)
    page.wait(
        "document.querySelectorAll('.share')[1].textContent.startsWith('GPU 0Computation250 ns100.00%')"
    )
    view(page, "operators")
    page.click(".segments [data-value=device]")
    page.wait("document.querySelectorAll('.table-box tbody tr').length === 1")

    @page.eventually
    def check() -> None:
        (row,) = cells(page)
        assert (row["Self CUDA"], row["Self CUDA %"]) == ("250 ns", "100.00%")

    view(page, "timeline", "canvas")
    search(page, "aten::mm")
    page.key("Enter")
    page.expect(text_of("[data-testid=arrow]"), "Kernel: gemm")


GPU_TRACE = Path(__file__).parents[1] / "mindtorch_prof" / "commands" / "screens" / "traces" / "h100.json.gz"


def test_a_gpu_trace_is_sorted_by_device_time_and_names_kernels_shortly(
    page: Browser, tmp_path: Path
) -> None:
    path = tmp_path / "gpu.html"
    loaded = load(GPU_TRACE)
    loaded.export_html(path)
    full = next(name for name in loaded.trace.device.names if "flash_fwd_kernel" in name)
    page.open(path)

    @page.eventually
    def check() -> None:
        panels = page.js("[...document.querySelectorAll('.grid h2')].map(e => e.textContent)")
        assert panels.index("Kernels by device time") < panels.index("Operators by self CPU time")
        buttons = page.js(
            "[...document.querySelectorAll('table.top button')].map(e => [e.textContent, e.title])"
        )
        assert ["flash_fwd<Flash_fwd_kernel_traits>", full] in buttons

    view(page, "operators")
    page.expect(
        "[...document.querySelectorAll('thead th')].filter(e => e.ariaSort).map(e => e.textContent)",
        ["Self CUDA▼"],
    )

    @page.eventually
    def check_names() -> None:
        titles = page.js(
            "[...document.querySelectorAll('.table-box tbody th')].map(e => [e.textContent, e.title])"
        )
        assert ["flash_fwd<Flash_fwd_kernel_traits>", full] in titles

    page.type("input[type=search]", "flash_fwd<Flash")
    page.wait("document.querySelectorAll('.table-box tbody tr').length === 1")
    view(page, "flame", "canvas")
    page.expect("document.querySelector('.segments [data-value=device_ns]').ariaPressed", "true")


def test_notebooks_of_gpu_traces_begin_with_device_time(page: Browser, tmp_path: Path) -> None:
    loaded = load(GPU_TRACE)
    (tmp_path / "notebook.html").write_text(
        f"<!doctype html><div id=app><table></table></div>{loaded.key_averages()._repr_html_()}"
    )
    page.open(tmp_path / "notebook.html")
    (tmp_path / "inside.html").write_text(page.wait("document.querySelector('iframe').srcdoc"))
    page.open(tmp_path / "inside.html")
    rows = sorted(loaded.key_averages(), key=lambda row: -row.self_device_time_total)

    @page.eventually
    def check() -> None:
        first = page.js("[...document.querySelectorAll('tbody th')].map(e => [e.textContent, e.title])")
        assert [title for _, title in first[:5]] == [row.key for row in rows[:5]]
        assert "elementwise<128, 4, Mul>" in [text for text, _ in first]


def test_two_recordings_are_compared_by_their_trees(page: Browser, recorded: Recorded) -> None:
    page.open(recorded.two, "#compare")
    page.wait("document.querySelector('.segments [data-value=tree]')")
    page.click(".segments [data-value=tree]")
    comparison = diff_tree(recorded.first, recorded.second)
    expected = {(place.name, place.status) for place in comparison.differences}
    assert expected

    @page.eventually
    def check() -> None:
        rows = page.js(
            "[...document.querySelectorAll('[data-testid=places] tbody tr')]"
            ".map(r => [...r.children].map(c => c.textContent))"
        )
        assert {(row[0].partition(" (")[0], row[1]) for row in rows if row[1] != "same"} == expected

    page.expect("document.querySelector('input[type=search]') === null", True)
    page.click(".segments [data-value=name]")
    page.wait("document.querySelector('input[type=search]')")


def test_the_critical_path_can_be_shown_on_the_timeline(page: Browser, recorded: Recorded) -> None:
    page.open(recorded.device, "#timeline")
    page.wait("document.querySelector('canvas')?.dataset.to")
    before = page.js("document.querySelector('canvas').toDataURL()")
    page.click("[data-testid=critical-path]")
    # 10 ns until the launch, 140 ns until the kernel starts, its 250 ns
    words = ": 400 ns. kernel 62.5%, launch 35.0%, host 2.5%."
    page.wait(f"{text_of('[data-testid=path-words]')}.includes({json.dumps(words)})")
    page.wait(f"document.querySelector('canvas').toDataURL() !== {json.dumps(before)}")
    search(page, "gemm")
    page.key("Enter")
    page.wait(f"{text_of('.details')}.includes('On the critical path250 ns')")
    page.expect(
        "[...document.querySelectorAll('[data-testid=arrow]')].map(e => e.textContent)",
        ["Launched by: cudaLaunchKernel", "Waited for: cudaLaunchKernel"],
    )


def test_a_thinned_timeline_says_so(page: Browser, recorded: Recorded) -> None:
    page.open(recorded.thin, "#timeline")
    note = page.wait(text_of("[data-testid=thinned]"))
    assert re.match(r"Showing the 50 longest of \d{3} events", note), note


# ------------------------------------------------------------------------------------ synthetic events


def expect_calls(page: Browser, calls: dict[str, str]) -> None:
    """Wait until the table has these names and calls."""

    @page.eventually
    def check() -> None:
        assert {row["Name"]: row["Calls"] for row in cells(page)} == calls


def expect_found(page: Browser, name: str, words: str) -> None:
    """Search for a name, and wait until the view says what it has found."""
    page.wait("document.querySelector('canvas')")
    page.type("input[type=search]", name)
    page.wait(f"document.querySelector('.note')?.textContent.startsWith({json.dumps(words)})")


def test_a_switch_hides_synthetic_events_in_every_view(page: Browser, recorded: Recorded) -> None:
    page.open(recorded.synthetic, "#operators")
    calls = {"forward": "1", "aten::linear": "2", "aten::t": "1"}
    synthetic = {"aten::t": "3", "aten::transpose": "2", "aten::addmm": "2"}
    expect_calls(page, calls | synthetic)
    row = next(row for row in cells(page) if row["Name"] == "aten::t")
    assert (row["CPU mean"], row["Synthetic"]) == ("2.000 µs", "2")
    view(page, "flame", "canvas")
    expect_found(page, "aten::addmm", "2 found")
    view(page, "timeline", "canvas")
    expect_found(page, "aten::addmm", "2 found")
    view(page, "memory")
    page.wait(f"{text_of('.view-memory')}.includes('aten::addmm')")
    view(page, "overview", ".tile")
    page.wait(f"{text_of('.tiles')}.includes('6 synthetic more')")

    @page.eventually
    def check_counts() -> None:
        facts = page.js(facts_of(".facts > div"))
        assert (facts["Events"], facts["Synthetic events"]) == ("4", "6")

    page.click("[data-testid=as-recorded]")
    page.wait(f"!{text_of('.view-overview')}.includes('synthetic')")
    page.expect(f"{facts_of('.facts > div')}['Events']", "4")
    view(page, "operators")
    expect_calls(page, calls)
    view(page, "flame", "canvas")
    expect_found(page, "aten::addmm", "0 found")
    view(page, "timeline", "canvas")
    expect_found(page, "aten::addmm", "0 found")
    expect_found(page, "aten::linear", "2 found")
    view(page, "memory")
    page.wait(f"!{text_of('.view-memory')}.includes('aten::addmm')")

    page.focus("main")
    page.key("r")  # the same by a key
    page.wait(f"{text_of('.view-memory')}.includes('aten::addmm')")


def test_compared_traces_are_both_shown_as_recorded(page: Browser, recorded: Recorded) -> None:
    page.open(recorded.both, "#compare")
    page.wait(f"{text_of('.view-compare')}.includes('aten::transpose')")
    page.click("[data-testid=as-recorded]")
    page.wait(f"!{text_of('.view-compare')}.includes('aten::transpose')")
    page.wait(f"{text_of('.view-compare')}.includes('aten::linear')")


def test_without_synthetic_events_there_is_no_switch(page: Browser, recorded: Recorded) -> None:
    page.open(recorded.device)
    page.wait("document.querySelector('.tile')")
    assert page.js("document.querySelector('[data-testid=as-recorded]')") is None


# ------------------------------------------------------------------------------------ what people do


def test_a_click_on_a_title_sorts_and_another_turns_the_order(page: Browser, recorded: Recorded) -> None:
    page.open(recorded.one, "#operators")
    page.wait("document.querySelector('.table-box tbody tr')")

    def numbers() -> list[int]:
        return [int(row["Calls"].replace(",", "")) for row in cells(page)]

    page.click("[data-key=count]")
    page.wait("document.querySelector('th[aria-sort=descending] [data-key=count]')")

    @page.eventually
    def check_largest_first() -> None:
        shown = numbers()
        assert shown == sorted(shown, reverse=True)
        assert shown[0] == max(row.count for row in recorded.rows.values())

    page.click("[data-key=count]")
    page.wait("document.querySelector('th[aria-sort=ascending] [data-key=count]')")

    @page.eventually
    def check_smallest_first() -> None:
        shown = numbers()
        assert shown == sorted(shown)

    page.click("[data-key=name]")
    page.wait("document.querySelector('th[aria-sort=ascending] [data-key=name]')")
    page.expect(text_of(".table-box tbody tr:not(.space) th"), min(recorded.rows))


def test_typing_filters_and_grouping_by_shapes_divides(page: Browser, recorded: Recorded) -> None:
    page.open(recorded.one, "#operators")
    page.wait("document.querySelector('.segments [data-value=shapes]')")
    page.type("input[type=search]", "ADDMM")

    @page.eventually
    def check_names() -> None:
        shown = [row["Name"].lower() for row in cells(page)]
        assert 0 < len(shown) < 8
        assert all("addmm" in name for name in shown)

    page.click(".segments [data-value=shapes]")
    page.wait("document.querySelector('[data-key=detail]')")

    @page.eventually
    def check_shapes() -> None:
        shapes = {row["Input shapes"] for row in cells(page) if row["Name"] == "aten::addmm"}
        assert shapes == {"[[8], [16, 4], [4, 8], [], []]", "[[2], [16, 8], [8, 2], [], []]"}

    page.type("input[type=search]", "no such op")
    page.wait("document.querySelector('.empty')")


def test_columns_can_be_chosen(page: Browser, recorded: Recorded) -> None:
    page.open(recorded.one, "#operators")
    page.wait("document.querySelector('.menu summary') && document.querySelector('.table-box tbody tr')")
    before = cells(page)[0]
    assert "Max" not in before
    page.click(".menu summary")
    page.wait("document.querySelector('.menu').open")
    page.js("[...document.querySelectorAll('.menu-list label')].find(e => e.textContent === 'Max').click()")
    page.wait("document.querySelector('[data-key=max_ns]')")


def test_the_table_is_copied_as_csv_and_as_markdown(page: Browser, recorded: Recorded) -> None:
    page.open(recorded.one, "#operators")
    page.wait("document.querySelector('[data-testid=copy-csv]')")
    page.js("Object.defineProperty(navigator, 'clipboard', {value: {writeText: async t => { copied = t }}})")
    page.click("[data-testid=copy-csv]")
    head, *lines = page.wait("window.copied").strip().split("\n")
    assert head.startswith("Name,Self CPU (ns),Self CPU %,CPU total (ns)")
    top = max(recorded.rows.values(), key=lambda r: r.self_cpu_time_total)
    assert lines[0].startswith(f"{top.key},{round(top.self_cpu_time_total * 1000)},")
    assert len(lines) == len(recorded.rows)
    page.click("[data-testid=copy-md]")
    assert page.wait("window.copied[0] === '|' && window.copied").startswith("| Name | Self CPU |")


def test_an_operator_leads_to_the_flame_graph_and_to_the_timeline(page: Browser, recorded: Recorded) -> None:
    page.open(recorded.one, "#operators")
    page.wait("document.querySelector('.table-box tbody tr')")
    page.type("input[type=search]", "aten::addmm")
    page.wait("document.querySelectorAll('.table-box tbody tr').length === 1")
    page.click(".table-box tbody tr")
    page.click("[data-testid=to-flame]")
    page.wait("document.querySelector('.view-flame .note').textContent.startsWith('2 found')")
    view(page, "operators")
    page.type("input[type=search]", "aten::addmm")
    page.wait("document.querySelectorAll('.table-box tbody tr').length === 1")
    page.click(".table-box tbody tr")
    page.click("[data-testid=to-timeline]")
    page.wait("document.querySelector('.view-timeline canvas')?.dataset.chosen === 'aten::addmm'")
    page.expect(
        "[...document.querySelectorAll('.inputs li')].map(e => e.textContent).slice(0, 3)",
        ["float [8]", "float [16, 4]", "float [4, 8]"],
    )


def test_wheel_drag_buttons_and_keys_move_the_timeline(page: Browser, recorded: Recorded) -> None:
    page.open(recorded.one, "#timeline")
    page.wait("document.querySelector('canvas')?.dataset.to")
    look = "(c => ({from: Number(c.from), wide: c.to - c.from}))(document.querySelector('canvas').dataset)"

    def seen(condition: str = "true") -> dict[str, float]:
        """What part of the time is drawn, once a condition holds for it."""
        return page.wait(f"(see => ({condition}) && see)({look})")

    whole = seen()["wide"]
    page.frames()
    page.wheel(700, 300, -300)
    before = seen(f"see.wide < {whole}")
    page.drag(900, 300, 600, 300)
    after = seen(f"see.from > {before['from']}")
    assert after["wide"] == pytest.approx(before["wide"])
    page.frames()  # until the last part of the drag is drawn
    page.click("[data-testid=zoom-all]")
    seen(f"see.from === 0 && Math.abs(see.wide - {whole}) < 1")
    page.focus("canvas")
    page.key("w")
    at = seen(f"Math.abs(see.wide - {whole * 0.7}) < 1")
    page.key("d")
    seen(f"see.from > {at['from']}")
    page.key("0")
    seen("see.from === 0")
    page.key("ArrowRight")
    page.wait("document.querySelector('canvas').dataset.chosen !== ''")
    search(page, "aten::relu")
    page.key("Enter")
    page.wait("document.querySelector('canvas').dataset.chosen === 'aten::relu'")
    page.focus("canvas")
    page.key("f")
    seen(f"see.wide < {whole * 0.9}")


def test_keys_work_without_a_click(page: Browser, recorded: Recorded) -> None:
    page.open(recorded.one, "#timeline")
    page.wait("document.querySelector('canvas')?.dataset.to")
    page.expect("document.activeElement === document.body", True)
    wide = "(d => d.to - d.from)(document.querySelector('canvas').dataset)"
    whole = page.js(wide)
    page.key("w")
    page.wait(f"Math.abs({wide} - {whole * 0.7}) < 1")
    page.key("ArrowRight")
    page.wait("document.querySelector('canvas').dataset.chosen !== ''")
    page.open(recorded.one, "#flame")
    page.wait("document.querySelector('canvas')?.dataset.drawn > 5")
    page.key("ArrowDown")
    page.wait("document.querySelector('.details')")
    page.open(recorded.one, "#operators")
    page.wait("document.querySelector('.table-box tbody tr')")
    page.key("ArrowDown")
    page.wait("document.querySelector('tr.active[aria-rowindex=\"2\"]')")


def test_only_the_arrows_of_the_selected_event_are_drawn(page: Browser, recorded: Recorded) -> None:
    page.open(recorded.launches, "#timeline")
    page.wait("document.querySelector('canvas')?.dataset.to")

    def arrows(name: str, count: int) -> None:
        search(page, name)
        page.key("Enter")
        page.wait(f"document.querySelector('canvas').dataset.chosen === {json.dumps(name)}")
        page.wait(f"document.querySelector('canvas').dataset.arrows === '{count}'")

    arrows("train", 0)
    arrows("aten::mm", 1)
    arrows("gemm", 1)
    page.click(".segments [data-value=inside]")
    arrows("train", 2)
    page.click(".segments [data-value=own]")
    page.wait("document.querySelector('canvas').dataset.arrows === '0'")


def test_findings_stand_on_the_first_page(page: Browser, recorded: Recorded) -> None:
    page.open(recorded.waiting)
    codes = [advice.code for advice in advise(load(recorded.waiting_trace))]
    assert "synchronisation" in codes
    page.expect("[...document.querySelectorAll('[data-finding]')].map(e => e.dataset.finding)", codes)
    text = page.wait(text_of("[data-finding=synchronisation]"))
    assert "Next step: wait less often" in text
    assert "aten::item" in text
    assert "What looks wrong" in page.wait(text_of(".view-overview"))


def test_what_doctor_finds_stands_on_the_first_page(page: Browser, recorded: Recorded) -> None:
    page.open(recorded.launches)
    page.expect(
        text_of(".health"), "1 of 3 device events (50.0% of the device time) have no op that launched them"
    )


def test_a_forward_op_leads_to_its_backward_node(page: Browser, recorded: Recorded) -> None:
    page.open(recorded.one, "#timeline")
    page.wait("document.querySelector('canvas')?.dataset.to")
    search(page, "aten::relu")
    page.key("Enter")
    page.expect(text_of("[data-testid=arrow]"), "Backward: ReluBackward0")
    page.click("[data-testid=arrow]")
    page.wait("document.querySelector('canvas').dataset.chosen === 'ReluBackward0'")


def test_a_click_in_the_flame_graph_zooms_and_escape_goes_back(page: Browser, recorded: Recorded) -> None:
    page.open(recorded.one, "#flame")
    page.wait("document.querySelector('canvas')?.dataset.drawn > 5")
    page.frames()
    x, y = page.js("(r => [r.left, r.top])(document.querySelector('canvas').getBoundingClientRect())")
    page.click_at(x + 40, y + 50)
    page.wait("document.querySelector('canvas').dataset.zoom !== 'all'")
    page.focus("canvas")
    page.key("Escape")
    page.wait("document.querySelector('canvas').dataset.zoom === 'all'")


def test_the_comparison_puts_regressions_first(page: Browser, recorded: Recorded) -> None:
    page.open(recorded.changed, "#compare")

    @page.eventually
    def check() -> None:
        rows = cells(page)
        assert [(row["Name"], row["Verdict"], row["Change"]) for row in rows] == [
            ("aten::mm", "slower", "+60.000 µs"),
            ("aten::gelu", "only in B", "+20.000 µs"),
            ("aten::add", "noise", "0"),
            ("aten::relu", "only in A", "−30.000 µs"),
        ]
        assert (rows[0]["Self CPU, A"], rows[0]["Self CPU, B"], rows[0]["B / A"]) == (
            "40.000 µs",
            "100.000 µs",
            "2.50×",
        )

    page.expect(
        "Object.fromEntries([...document.querySelectorAll('.table-box tbody tr')].map(tr =>"
        " [tr.children[0].textContent,"
        " ['worse', 'better'].filter(c => tr.children[2].classList.contains(c))]))",
        {
            "aten::mm": ["worse"],
            "aten::gelu": ["worse"],
            "aten::add": [],
            "aten::relu": ["better"],
        },
    )
    # no steps, no test
    page.expect("document.querySelectorAll('.totals .worse, .totals .better').length", 0)
    page.click("[data-testid=no-noise]")
    page.wait("document.querySelectorAll('.table-box tbody tr').length === 3")


def test_changes_within_noise_have_no_colour(page: Browser, recorded: Recorded) -> None:
    page.open(recorded.noisy, "#compare")

    @page.eventually
    def check() -> None:
        rows = cells(page)
        assert {row["Verdict"] for row in rows} == {"noise"}
        assert any(row["Change"] != "0" for row in rows)

    page.expect("document.querySelectorAll('.worse, .better').length", 0)


def test_compared_device_time_is_that_of_the_kernels(page: Browser, recorded: Recorded) -> None:
    page.open(recorded.devices, "#compare")
    page.expect(text_of('.totals [data-total="Device time"] :nth-child(2)'), "250 ns")

    # operators repeat the time of their kernels: the two are never in one table
    @page.eventually
    def check_operators() -> None:
        assert {row["Name"] for row in cells(page)} == {"aten::mm", "cudaLaunchKernel"}

    page.click(".segments [data-value=kernels]")

    @page.eventually
    def check_kernels() -> None:
        assert [(row["Name"], row["Self device, A"]) for row in cells(page)] == [("gemm", "250 ns")]


def test_two_recordings_stand_side_by_side_in_every_view(page: Browser, recorded: Recorded) -> None:
    page.open(recorded.two)
    for name in ("overview", "operators", "flame", "timeline", "memory", "modules"):
        view(page, name, ".side")
        page.expect("[...document.querySelectorAll('.side')].map(e => e.dataset.trace)", ["0", "1"])
    page.click(".segments [data-value='1']")
    page.wait("document.querySelectorAll('.side').length === 1")


def test_everything_can_be_reached_by_keys(page: Browser, recorded: Recorded) -> None:
    page.open(recorded.one)
    page.key("2")
    page.wait("document.querySelector('.view-operators .table-box tbody tr')")
    page.key("/")
    page.wait("document.activeElement.type === 'search'")
    page.send("Input.insertText", text="aten")
    page.wait("document.querySelector('.view-operators input[type=search]').value === 'aten'")
    page.key("Escape")
    page.frames()
    page.focus(".table-box")
    page.key("ArrowDown")
    page.key("ArrowDown")
    name = page.wait(text_of('tr.active[aria-rowindex="3"] th'))
    page.key("Enter")
    page.expect("document.querySelector('.view-flame input').value", name)
    page.focus("nav [aria-selected=true]")
    page.key("ArrowRight")
    page.wait("document.querySelector('.view-timeline')")
    page.key("?")
    page.wait("document.querySelector('.help')")


def test_the_table_scrolls_through_more_rows_than_it_draws(page: Browser, recorded: Recorded) -> None:
    page.size(1400, 420)
    page.open(recorded.one, "#operators")
    page.wait("document.querySelector('.table-box tbody tr')")
    page.wait(f"document.querySelectorAll('.table-box tbody tr').length < {len(recorded.rows)}")
    page.focus(".table-box")
    page.key("End")
    page.wait(f"document.querySelector('tr.active[aria-rowindex=\"{len(recorded.rows) + 1}\"]')")


# ------------------------------------------------------------------------------------ looks


def test_dark_and_light_follow_the_system_and_the_button(page: Browser, recorded: Recorded) -> None:
    back = "getComputedStyle(document.documentElement).backgroundColor"
    page.open(recorded.one)
    light = page.wait(back)
    page.dark(True)
    page.wait(f"{back} !== {json.dumps(light)}")
    page.click("[data-testid=theme]")
    page.wait(f"{back} === {json.dumps(light)}")


@pytest.mark.parametrize("name", ["waiting", "device", "one"])
def test_cards_hold_what_is_in_them_on_a_phone(page: Browser, recorded: Recorded, name: str) -> None:
    page.size(420, 844, phone=True)
    page.open(getattr(recorded, name))
    page.wait("document.querySelector('.tile')")
    page.frames()
    page.expect(
        "[...document.querySelectorAll('.tile, .tile > *, .finding, .health, .panel')]"
        ".filter(e => e.scrollWidth > e.clientWidth && getComputedStyle(e).overflowX === 'visible')"
        ".map(e => e.textContent)",
        [],
    )
    page.wait(NOTHING_STICKS_OUT)


@pytest.mark.parametrize("width", [390, 820])
def test_nothing_sticks_out_on_a_phone(page: Browser, recorded: Recorded, width: int) -> None:
    page.size(width, 844, phone=True)
    page.open(recorded.two)
    for name in ("overview", "operators", "flame", "timeline", "memory", "modules", "compare"):
        view(page, name, ".side, .totals")
        page.frames()
        page.wait(NOTHING_STICKS_OUT)


def test_the_device_view_shows_the_breakdown_on_desks_and_phones(page: Browser, tmp_path: Path) -> None:
    hostile = {**documents.kernel("<img src=x onerror=alert(1)>", 900.0, 2.5)}
    document = documents.gpu()
    document["traceEvents"].append(hostile)
    loaded = documents.load_document(document)
    (times,) = loaded.device_breakdown()
    loaded.export_html(tmp_path / "gpu.html")
    for width in (1400, 390):
        page.size(width, 844, phone=width < 600)
        page.open(tmp_path / "gpu.html", "#device")
        page.expect(text_of(".view-device [data-part=idle_us] .number"), f"{times.idle_us:.3f} µs")
        page.frames()
        assert page.js("document.querySelectorAll('#app img').length") == 0
        page.wait(NOTHING_STICKS_OUT)


def test_the_device_view_of_an_ascend_capture_tells_the_copies_that_it_leaves_out(
    page: Browser, tmp_path: Path
) -> None:
    copy, kernel = ("MEMCPY_ASYNC", 0, 1500, 3, DEVICE_COPY, 0), ("MatMulV2", 2000, 3000, 2, DEVICE_KERNEL, 0)
    trace = make_trace(("aten::mm", 0, 10), device=make_device(copy, kernel), settings=Settings(device="npu"))
    export_html(Results(trace), tmp_path / "npu.html")
    page.open(tmp_path / "npu.html", "#device")
    text = page.wait(text_of("section[data-device] .health"))
    assert "copies before the first and after the last computation or communication (1.500 µs)" in text


def test_the_overview_stacks_each_step_of_a_device_by_what_it_did(page: Browser, tmp_path: Path) -> None:
    loaded = documents.load_document(_two_steps_on_a_gpu())
    (times,) = loaded.device_breakdown()
    assert len(times.steps) == 2
    assert times.steps[1].gap_before_ns > 0
    loaded.export_html(tmp_path / "gpu.html")
    page.size(1400, 900)
    page.open(tmp_path / "gpu.html")
    page.wait("document.querySelectorAll('[data-device-step]').length === 2")
    for step in times.steps:
        whole = step.span_ns + step.gap_before_ns
        heights = page.wait(
            f"[...document.querySelectorAll('[data-device-step=\"{step.step}\"] .step-stack > span')]"
            ".map(e => [e.className.replace('fill-', ''), parseFloat(e.style.height)])"
        )
        shares = {
            "gap": step.gap_before_ns,
            "kernel": step.computation_ns,
            "copy": step.exposed_copy_ns,
            "idle": step.idle_ns,
        }
        assert {kind: round(height, 3) for kind, height in heights} == {
            kind: pytest.approx(100 * part / whole, abs=0.01) for kind, part in shares.items()
        }
        assert sum(height for _, height in heights) == pytest.approx(100)


def _two_steps_on_a_gpu() -> dict[str, Any]:
    """Two steps, each of which launches two kernels and a copy, with gaps between them."""
    events = []
    for step in (1, 2):
        begin = 1000.0 * step
        events.append(documents.event(f"ProfilerStep#{step}", begin, 900.0, "user_annotation"))
        work = (
            ("gemm", 100.0, 300.0, "kernel"),
            ("add", 500.0, 100.0, "kernel"),
            ("Memcpy DtoD", 580.0, 60.0, "gpu_memcpy"),
        )
        for place, (name, start, length, category) in enumerate(work):
            number = 10 * step + place
            events.append(documents.launch(begin + 10 * place + 1, number))
            events.append(documents.kernel(name, begin + start, length, cat=category, correlation=number))
    return documents.document(events)


# ------------------------------------------------------------------------------------ hostile names


def test_hostile_names_are_text_everywhere(page: Browser, recorded: Recorded) -> None:
    page.open(recorded.hostile)
    title = page.js("document.title")
    for name in ("overview", "operators", "flame", "timeline"):
        view(page, name, "canvas, table")
        page.wait("document.querySelectorAll('#app img, #app script').length === 0")
    view(page, "operators")

    @page.eventually
    def check() -> None:
        names = {row["Name"] for row in cells(page)}
        assert HOSTILE[0] in names
        assert HOSTILE[1] in names
        assert "\\u001b[31mred\\u001b[0m" in names
        assert "abc\\u202efed\\u2066" in names

    page.type("input[type=search]", "<img")
    page.wait("document.querySelectorAll('.table-box tbody tr').length === 1")
    page.click(".table-box tbody tr")
    page.expect(text_of(".details h2"), HOSTILE[1])
    page.click("[data-testid=to-timeline]")
    page.wait("document.querySelector('.view-timeline canvas')?.dataset.chosen")
    page.expect(text_of(".details h2"), HOSTILE[1])
    search(page, "longlong")
    page.key("Enter")
    page.wait("document.querySelector('.details h2').textContent.length === 10000")
    page.frames()
    page.wait(NOTHING_STICKS_OUT)
    assert page.js("document.title") == title


def test_notebooks_sort_and_filter_in_a_frame_of_their_own(page: Browser, recorded: Recorded) -> None:
    page.open(recorded.notebook)
    frame = page.wait("document.querySelector('iframe').srcdoc")
    inside = recorded.notebook.with_name("inside.html")
    inside.write_text(frame)
    page.open(inside)
    names = "[...document.querySelectorAll('tbody th')].map(e => e.textContent)"
    page.expect(f"{names}.sort()", sorted(recorded.rows))
    page.click("thead th:first-child button")
    page.expect(names, sorted(recorded.rows))
    page.type("input", "addmm")
    page.expect(f"{names}.filter(name => !/addmm/i.test(name))", [])
