// Memory: the curve by category, what was alive at the peak, and who took most.
import { useMemo, useState } from "preact/hooks";
import type { ViewProps } from "../app";
import { Areas, type Layer } from "../chart";
import type { Block } from "../data";
import { bytes, count, label, percent, spelled, time } from "../format";
import { Empty, matcher, Panel, Search, Segments, Stack } from "../parts";
import { useBlock } from "../store";
import { sorted, Table, type Sort, type TableColumn } from "../table";

type Group = [string, number, number, number, number, number[]]; // op, category, bytes, how many, the largest, frames

export function Memory({ trace }: ViewProps) {
  const block = useBlock("memory", trace);
  const [device, setDevice] = useState<number | null>(null);
  if (block === undefined) return <Empty>Loading …</Empty>;
  if (block === null) return <Empty>No memory was recorded. Record with profile_memory=True.</Empty>;
  const devices: any[] = block.values.devices;
  const largest = devices.reduce((best, d, i) => (d.peak > devices[best].peak ? i : best), 0);
  const chosen = device ?? largest;
  return (
    <>
      {devices.length > 1 && (
        <div class="controls">
          <Segments label="Device" value={String(chosen)} options={devices.map((d, i) => [String(i), label(d.label)])} onChange={(v) => setDevice(Number(v))} />
        </div>
      )}
      <Device key={chosen} block={block} number={chosen} />
    </>
  );
}

function Device({ block, number }: { block: Block; number: number }) {
  const about = block.values.devices[number];
  const names: string[] = block.values.categories;
  const times = block.columns[`${number}.time_ns`] as Float64Array;
  const layers = useMemo<Layer[]>(
    () =>
      names.flatMap((name, i) => {
        const column = block.columns[`${number}.category.${i}`];
        return column ? [{ name, colour: i, values: Float64Array.from(column) }] : [];
      }),
    [block, number],
  );
  const [hover, setHover] = useState<number | null>(null);
  const at = hover === null ? null : hover;
  const value = (layer: Layer) => (at === null ? (about.at_peak[layer.colour] as number) : layer.values[at]!);
  const total = layers.reduce((sum, l) => sum + value(l), 0);
  return (
    <>
      <div class="tiles">
        <Tile title="Peak" value={bytes(about.peak)} note={`${count(about.peak)} bytes, at ${time(about.peak_ns)}` + (about.before ? `; and ${bytes(about.before)} of modules, allocated before the recording` : "")} />
        {about.taken !== undefined && (
          <>
            <Tile title="Total allocated" value={bytes(about.taken)} note={`${count(about.allocations)} allocations`} />
            <Tile title="Still allocated" value={bytes(about.still_allocated)} note="at the end of the recording" />
          </>
        )}
      </div>
      <Panel title={`Allocated memory over time, ${about.label}`} note={
          "The dashed line marks the peak. Drag to zoom in, double-click to show all." +
          (about.by_category === false ? " The file does not say which memory a free frees: only totals are known, neither categories nor what was allocated at the peak." : "")
        }
      >
        <div class="beside">
        {times && times.length > 1 ? <Areas times={times} layers={layers} peak={about.peak_ns} onHover={setHover} /> : <Empty>No memory was allocated.</Empty>}
        <table class="plain legend">
          <caption>{at === null ? "At the peak" : `At ${time(times[at]!)}`}</caption>
          <tbody>
            {layers.map((l) => (
              <tr key={l.name} data-memory={l.name}>
                <th scope="row">
                  <span class={`dot fill-m${l.colour}`} aria-hidden="true" />
                  {l.name}
                </th>
                <td class="number">{bytes(value(l))}</td>
                <td class="number">{percent(value(l), total)}</td>
              </tr>
            ))}
            <tr>
              <th scope="row">Total</th>
              <td class="number">{bytes(total)}</td>
              <td />
            </tr>
          </tbody>
        </table>
        </div>
      </Panel>
      {about.alive.length > 0 && (
        <Panel title="Allocated at the peak, by operator and stack">
          <Groups label="Allocated at the peak" rows={about.alive} names={names} frames={about.frames} />
        </Panel>
      )}
      {about.biggest.length > 0 && (
        <Panel title="Largest allocations, by operator and stack">
          <Groups label="Largest allocations" rows={about.biggest} names={names} frames={about.frames} />
        </Panel>
      )}
    </>
  );
}

function Tile(props: { title: string; value: string; note: string }) {
  return (
    <div class="tile">
      <span class="tile-title">{props.title}</span>
      <span class="tile-value">{props.value}</span>
      <span class="tile-note">{props.note}</span>
    </div>
  );
}

function Groups(props: { label: string; rows: Group[]; names: string[]; frames: string[] }) {
  const { rows } = props;
  const [sort, setSort] = useState<Sort>({ key: "bytes", down: true });
  const [query, setQuery] = useState("");
  const [active, setActive] = useState<number | null>(null);
  const most = Math.max(...rows.map((r) => r[2]), 1);
  const from = (r: number) => rows[r]![5].map((f) => props.frames[f]!);
  const columns: TableColumn[] = [
    {
      key: "op",
      title: "Operator",
      width: 240,
      text: (r) => label(rows[r]![0] || "(outside of operators)"),
      content: (r) => (
        <>
          <span class={`dot fill-m${rows[r]![1]}`} aria-hidden="true" />
          {label(rows[r]![0] || "(outside of operators)")}
        </>
      ),
    },
    { key: "category", title: "Category", width: 130, text: (r) => props.names[rows[r]![1]]! },
    { key: "bytes", title: "Bytes", width: 110, number: (r) => rows[r]![2], text: (r) => bytes(rows[r]![2]), share: (r) => rows[r]![2] / most },
    { key: "count", title: "Allocations", width: 100, number: (r) => rows[r]![3], text: (r) => count(rows[r]![3]) },
    { key: "largest", title: "Largest", width: 110, number: (r) => rows[r]![4], text: (r) => bytes(rows[r]![4]) },
  ];
  if (rows.some((r) => r[5].length)) columns.push({ key: "stack", title: "Called from", width: 260, text: (r) => label(from(r)[0] ?? "") });
  const visible = useMemo(() => {
    const test = matcher(query);
    const found = rows.flatMap((row, i) => (!test || test(`${row[0]} ${props.names[row[1]]} ${from(i).join(" ")}`.toLowerCase()) ? [i] : []));
    return sorted(found, columns, sort);
  }, [rows, query, sort]);
  return (
    <>
      {rows.length > 8 && (
        <div class="controls">
          <Search label={`Filter: ${props.label.toLowerCase()}`} value={query} onInput={setQuery} note={query ? `${count(visible.length)} of ${count(rows.length)}` : undefined} />
        </div>
      )}
      <Table label={props.label} columns={columns} rows={visible} sort={sort} onSort={setSort} active={active} onActive={setActive} height="340px" />
      {active !== null && from(active).length > 0 && (
        <aside class="details" aria-label="Stack of the allocation">
          <h3 class="whole">{spelled(rows[active]![0])}</h3>
          <Stack frames={from(active)} />
        </aside>
      )}
    </>
  );
}
