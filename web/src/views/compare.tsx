// Compare: two recordings joined by operator, regressions first.
import { useMemo, useState } from "preact/hooks";
import { csv, markdown, toClipboard } from "../copy";
import type { Block } from "../data";
import { bytes, count, flops, label, median, spelled, time } from "../format";
import { matcher, Search, Segments } from "../parts";
import { onDevice, Rows } from "../rows";
import { useBlock, useStore } from "../store";
import { sorted, Table, type Sort, type TableColumn } from "../table";

const METRICS: [string, string, (n: number) => string][] = [
  ["self_ns", "Self CPU", time],
  ["total_ns", "CPU total", time],
  ["self_device_ns", "Self device", time],
  ["count", "Calls", count],
  ["self_memory", "Self memory", bytes],
  ["flops", "FLOPs", flops],
];

const TIMES = new Set(["self_ns", "total_ns", "self_device_ns"]);

const VERDICTS: Record<string, string> = {
  added: "only in B",
  gone: "only in A",
  calls: "calls changed",
  work: "work changed",
  slower: "slower",
  faster: "faster",
  same: "noise",
};

interface Pair {
  name: string;
  detail: string;
  kernel: boolean; // whether it ran on a device; operators repeat the time of their kernels
  rows: [number, number]; // -1: not there
}

/** Rows of both with the same name (and detail) stand together. */
function joined(a: Rows, b: Rows): Pair[] {
  const pairs = new Map<string, Pair>();
  [a, b].forEach((rows, side) => {
    for (let r = 0; r < rows.length; r++) {
      const detail = [rows.detail(r)].flat().join("; ");
      const key = `${rows.name(r)}\u0000${detail}\u0000${rows.get("category", r) === 4}\u0000${onDevice(rows.get("category", r))}`;
      let pair = pairs.get(key);
      if (!pair) pairs.set(key, (pair = { name: rows.name(r), detail, kernel: onDevice(rows.get("category", r)), rows: [-1, -1] }));
      pair.rows[side] = r;
    }
  });
  return [...pairs.values()];
}

interface Part {
  name: string;
  count: number;
  host_us: number;
  device_us: number;
}

/** Where the trees of ops part: for recordings whose ops have other names. */
function TreePlaces({ tree }: { tree: any }) {
  const by: string = tree.by;
  const us = (n: number) => time(n * 1000);
  const signed = (n: number) => (n > 0 ? "+" : n < 0 ? "−" : "") + us(Math.abs(n));
  const parts = (side: string, list: Part[]) =>
    list.slice(0, 3).map((p) => (
      <div key={side + p.name} title={spelled(p.name)}>
        {`${side}: ${label(p.name, 40)} · ${number(p.count)}× · ${us(by === "device" && (p.device_us || !p.host_us) ? p.device_us : p.host_us)}`}
      </div>
    ));
  const places = (tree.places as any[]).filter((p) => p.status !== "same" || Math.abs(p[`${by}_delta_us`]) >= 1);
  return (
    <>
      <div style={{ overflowX: "auto" }}>
      <table class="plain places" data-testid="places">
        <thead>
          <tr>
            <th scope="col">In</th>
            <th scope="col">What</th>
            <th scope="col" class="number">{`Change (${by})`}</th>
            <th scope="col" class="number">Device, A → B</th>
            <th scope="col" class="number">Host, A → B</th>
            <th scope="col">Only in A, only in B</th>
          </tr>
        </thead>
        <tbody>
          {places.map((p, i) => {
            const change = p[`${by}_delta_us`];
            return (
              <tr key={i}>
                <th scope="row" title={p.path.map((name: string) => spelled(name)).join(" > ")}>
                  {label(p.name, 40) + (p.paths > 1 ? ` (${count(p.paths)} places)` : "")}
                </th>
                <td>{p.status}</td>
                <td class={`number ${change > 0 ? "worse" : change < 0 ? "better" : ""}`}>{signed(change)}</td>
                <td class="number">{p.device_a_us || p.device_b_us ? `${us(p.device_a_us)} → ${us(p.device_b_us)}` : "–"}</td>
                <td class="number">{`${us(p.host_a_us)} → ${us(p.host_b_us)}`}</td>
                <td>
                  {parts("A", p.only_a)}
                  {parts("B", p.only_b)}
                </td>
              </tr>
            );
          })}
        </tbody>
      </table>
      </div>
      <p class="muted hint">
        {`Times per ${tree.per === "step" ? "step" : "run"}. What only one side has stands in the lowest operator or module that both have. `}
        {tree.left_out > 0 && `${count(tree.left_out)} further places: ${signed(tree.left_us)}. `}
        {(tree.notes as string[]).map((note) => `${label(note)}. `)}
      </p>
    </>
  );
}

export function Compare({ summaries }: { summaries: Block[] }) {
  const store = useStore();
  const more = [useBlock("operators", 0), useBlock("operators", 1)];
  const verdicts = useBlock("compare", 0)?.values;
  const [group, setGroup] = useState("name");
  const [metric, setMetric] = useState("self_ns");
  const steps = summaries.map((s) => s.values.steps.length as number);
  const [perStep, setPerStep] = useState(steps[0]! > 0 && steps[1]! > 0 && steps[0] !== steps[1]);
  const [query, setQuery] = useState("");
  const [sort, setSort] = useState<Sort>({ key: "change", down: true });
  const [active, setActive] = useState<number | null>(null);
  const [real, setReal] = useState(false);
  const [shown, setShown] = useState("operators");

  const byTree = group === "tree" && verdicts?.tree;
  const shapes = more.every((m) => m?.values.groups.shapes);
  const sides = useMemo(
    () => summaries.map((s, i) => new Rows(group === "shapes" && shapes ? more[i]! : s, group === "shapes" && shapes ? "shapes" : "name")),
    [group, shapes],
  );
  const pairs = useMemo(() => joined(sides[0]!, sides[1]!), [sides]);
  const available = METRICS.filter(([key]) => sides.some((s) => s.has(key)));
  const [, title, text] = available.find(([key]) => key === metric) ?? available[0]!;
  const by = perStep ? steps.map((n) => Math.max(1, n)) : [1, 1];
  const value = (p: number, side: number) => {
    const row = pairs[p]!.rows[side]!;
    return row < 0 ? 0 : sides[side]!.get(metric, row) / by[side]!;
  };
  const calls = (p: number, side: number) => (pairs[p]!.rows[side]! < 0 ? 0 : sides[side]!.get("count", pairs[p]!.rows[side]!) / by[side]!);
  const change = (p: number) => value(p, 1) - value(p, 0);
  const ratio = (p: number) => (value(p, 0) > 0 ? value(p, 1) / value(p, 0) : value(p, 1) > 0 ? Infinity : 1);
  const most = Math.max(...pairs.map((_, p) => Math.abs(change(p))), 1);
  const tone = (p: number) => (beyondNoise(p) ? (change(p) > 0 ? "worse" : "better") : "");
  const state = (p: number) => (pairs[p]!.kernel ? "" : (VERDICTS[verdicts?.status[pairs[p]!.name] ?? ""] ?? ""));
  const kernels = pairs.some((p) => p.kernel);
  // counters have no noise; a time is coloured if a rank test says so, and if it is the one that the test found changed
  const beyondNoise = (p: number) => {
    if (!change(p)) return false;
    if (!TIMES.has(metric)) return true;
    if (group !== "name") return false;
    const status = verdicts?.status[pairs[p]!.name];
    if (pairs[p]!.kernel || !status || status === "same") return false;
    return status === "slower" || status === "faster" ? (verdicts.by[pairs[p]!.name] === "self_device") === (metric === "self_device_ns") : true;
  };
  const signed = (n: number) => (n > 0 ? "+" : n < 0 ? "−" : "") + text(Math.abs(n));

  const columns: TableColumn[] = [
    { key: "name", title: "Name", width: 280, text: (p) => label(pairs[p]!.name), exact: (p) => spelled(pairs[p]!.name) },
    ...(sides[0]!.group === "shapes"
      ? [{ key: "detail", title: "Input shapes", width: 200, text: (p: number) => label(pairs[p]!.detail) } as TableColumn]
      : []),
    {
      key: "change",
      title: `Change`,
      width: 120,
      number: change,
      text: (p) => signed(change(p)),
      exact: (p) => String(change(p)),
      share: (p) => Math.abs(change(p)) / most,
      tone,
    },
    {
      key: "ratio",
      title: "B / A",
      width: 80,
      number: ratio,
      text: (p) => (ratio(p) === Infinity ? "new" : value(p, 0) === 0 ? "–" : `${ratio(p).toFixed(2)}×`),
      tone,
    },
    { key: "a", title: `${title}, A`, width: 110, number: (p) => value(p, 0), text: (p) => text(value(p, 0)), exact: (p) => String(value(p, 0)) },
    { key: "b", title: `${title}, B`, width: 110, number: (p) => value(p, 1), text: (p) => text(value(p, 1)), exact: (p) => String(value(p, 1)) },
    { key: "calls_a", title: "Calls, A", width: 80, number: (p) => calls(p, 0), text: (p) => number(calls(p, 0)) },
    { key: "calls_b", title: "Calls, B", width: 80, number: (p) => calls(p, 1), text: (p) => number(calls(p, 1)) },
  ];
  if (group === "name") columns.splice(1, 0, { key: "state", title: "Verdict", help: "Whether the time changed, by a rank test over steps or calls", width: 110, text: state, tone: (p) => (state(p) === "noise" ? "zero" : "") });
  const rows = useMemo(() => {
    const test = matcher(query);
    const found = pairs.flatMap((p, i) => ((!test || test(`${p.name} ${p.detail}`.toLowerCase())) && !(real && state(i) === "noise") && (!kernels || p.kernel === (shown === "kernels")) ? [i] : []));
    return sorted(found, columns, sort);
  }, [pairs, query, sort, metric, perStep, real, verdicts, shown]);
  const copy = async (how: typeof csv, what: string) => {
    const cells = rows.map((r) => columns.map((c) => (how === csv ? (c.exact ?? c.text)(r) : c.text(r))));
    store.say((await toClipboard(how(columns.map((c) => c.title), cells))) ? `${count(rows.length)} rows copied as ${what}` : "The browser blocked access to the clipboard");
  };

  return (
    <>
      <Totals summaries={summaries} stepChanged={verdicts?.step ?? ""} />
      <div class="controls">
        {!byTree && <Search label="Filter operators" value={query} onInput={setQuery} note={query ? `${count(rows.length)} of ${count(pairs.length)}` : undefined} />}
        {!byTree && <Segments label="Compare" value={metric} options={available.map(([key, name]) => [key, name] as [string, string])} onChange={setMetric} />}
        {!byTree && kernels && (
          <Segments
            label="Rows"
            value={shown}
            options={[
              ["operators", "Operators"],
              ["kernels", "Kernels"],
            ]}
            onChange={(v) => {
              setShown(v);
              setMetric(v === "kernels" ? "self_device_ns" : "self_ns");
            }}
          />
        )}
        {(shapes || verdicts?.tree) && (
          <Segments
            label="Group by"
            value={group}
            options={[["name", "Name"], ...(shapes ? ([["shapes", "Shapes"]] as [string, string][]) : []), ...(verdicts?.tree ? ([["tree", "Tree"]] as [string, string][]) : [])]}
            onChange={setGroup}
          />
        )}
        {!byTree && steps[0]! > 0 && steps[1]! > 0 && (
          <label class="check">
            <input type="checkbox" checked={perStep} onChange={(e) => setPerStep(e.currentTarget.checked)} />
            Per step
          </label>
        )}
        {verdicts && group === "name" && (
          <label class="check">
            <input type="checkbox" checked={real} onChange={(e) => setReal(e.currentTarget.checked)} data-testid="no-noise" />
            Hide noise
          </label>
        )}
        <span class="push" />
        {!byTree && (
          <>
            <button type="button" onClick={() => copy(csv, "CSV")}>
              Copy CSV
            </button>
            <button type="button" onClick={() => copy(markdown, "Markdown")}>
              Copy Markdown
            </button>
          </>
        )}
      </div>
      {byTree && <TreePlaces tree={verdicts.tree} />}
      {!byTree && <Table
        label="Differences"
        columns={columns}
        rows={rows}
        sort={sort}
        onSort={setSort}
        active={active}
        onActive={setActive}
        onEnter={(p) => store.go("flame", { name: pairs[p]!.name })}
        onKey={(e, p) => e.key === "t" && store.go("timeline", { name: pairs[p]!.name })}
        height="calc(100vh - 320px)"
        empty="No operator matches the filter."
      />}
      {!byTree && <p class="muted hint">
        {`Change is B − A; the largest increase comes first. `}
        {verdicts?.noise != null && `Noise floor: about ${(100 * verdicts.noise).toFixed(0)}% of a row's time, measured over ${verdicts.repeats}. `}
        {(verdicts?.notes ?? []).map((note: string) => `${label(note).replace(/\.$/, "")}. `)}
        The other views show both traces side by side.
      </p>}
    </>
  );
}

const number = (n: number) => (Number.isInteger(n) ? count(n) : n.toFixed(1));

function Totals({ summaries, stepChanged }: { summaries: Block[]; stepChanged: string }) {
  const figures = summaries.map((s) => s.values.figures);
  const step = (s: Block) => median((s.values.steps as [string, number, number][]).map((x) => x[2]).sort((a, b) => a - b));
  const us = (name: string) => figures.map((f) => 1000 * f[name]);
  // which figure, of both sides, as text, and the verdict on it
  const lines: [string, number[], (n: number) => string, string?][] = [
    ["Span", us("span_us"), time],
    ["Median step", summaries.map(step), time, stepChanged],
    ["Self CPU time", us("self_cpu_us"), time],
    ["Device time", us("device_work_us"), time],
    ["Device busy", us("device_busy_us"), time],
    ["Events", figures.map((f) => f.events), count],
    ["Device events", figures.map((f) => f.device_events), count],
  ];
  return (
    <table class="plain totals">
      <thead>
        <tr>
          <th scope="col" />
          {summaries.map((s, i) => (
            <th scope="col" class="number" key={i} title={label(s.values.label)}>
              {`${"AB"[i]}: ${label(s.values.label, 32)}`}
            </th>
          ))}
          <th scope="col" class="number">
            B / A
          </th>
        </tr>
      </thead>
      <tbody>
        {lines
          .filter(([, [a, b]]) => a || b)
          .map(([name, [a, b], text, verdict]) => (
            <tr key={name} data-total={name}>
              <th scope="row">{name}</th>
              <td class="number">{text(a!)}</td>
              <td class="number">{text(b!)}</td>
              <td class={`number ${verdict === "slower" ? "worse" : verdict === "faster" ? "better" : ""}`}>{a! > 0 ? `${(b! / a!).toFixed(2)}×` : "–"}</td>
            </tr>
          ))}
      </tbody>
    </table>
  );
}
