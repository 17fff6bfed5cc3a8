// Operators: the table of averages, to be sorted, filtered, grouped and copied.
import { useEffect, useMemo, useState } from "preact/hooks";
import type { ViewProps } from "../app";
import { KINDS } from "../colours";
import { csv, markdown, toClipboard } from "../copy";
import type { Block } from "../data";
import { count, label, plural, spelled, time } from "../format";
import { Facts, matcher, Search, Segments, Stack } from "../parts";
import { DETAIL_TITLES, onDevice, rowColumns, Rows } from "../rows";
import { useBlock, useStore } from "../store";
import { sorted, Table, type Sort, type TableColumn } from "../table";

const GROUPS: [string, string][] = [
  ["name", "Name"],
  ["shapes", "Shapes"],
  ["stack", "Stack"],
  ["module", "Module"],
  ["step", "Step"],
];
const HIDDEN = new Set(["min_ns", "max_ns", "memory", "device_memory", "self_device_memory", "p50_ns"]);

export function Operators({ trace, summary }: ViewProps) {
  const more = useBlock("operators", trace);
  const store = useStore();
  const [group, setGroup] = useState("name");
  const [query, setQuery] = useState(store.wanted?.name ?? "");
  const [hidden, setHidden] = useState(HIDDEN);
  const [sort, setSort] = useState<Sort | null>(null);
  const [active, setActive] = useState<number | null>(null);
  const [where, setWhere] = useState("all");
  useEffect(() => {
    if (store.wanted) setQuery(store.wanted.name);
  }, [store.wanted]);

  const groups = GROUPS.filter(([key]) => key === "name" || more?.values.groups[key]);
  const source: Block = group === "name" ? summary : (more ?? summary);
  const rows = useMemo(() => new Rows(source, source.values.groups[group] ? group : "name"), [source, group]);
  const all = useMemo(() => withDots(rowColumns(rows, summary.values.device), rows), [rows]);
  const columns = all.filter((c) => !hidden.has(c.key));
  const texts = useMemo(
    () => Array.from({ length: rows.length }, (_, r) => `${rows.name(r)} ${label(rows.name(r))} ${[rows.detail(r)].flat().join(" ")}`.toLowerCase()),
    [rows],
  );
  const order = sort ?? { key: rows.has("self_device_ns") ? "self_device_ns" : "self_ns", down: true };
  const visible = useMemo(() => {
    const test = matcher(query);
    const place = (r: number) => where === "all" || (where === "device") === onDevice(rows.get("category", r));
    const found = texts.flatMap((text, r) => ((!test || test(text)) && place(r) ? [r] : []));
    return sorted(found, all, order);
  }, [texts, query, order.key, order.down, all, where]);

  const choose = (key: string) => {
    setGroup(key);
    setWhere("all");
    setActive(null);
  };
  const copy = async (how: typeof csv, what: string) => {
    const cells = visible.map((r) => columns.map((c) => (how === csv ? (c.exact ?? c.text)(r) : c.text(r))));
    const unit = (key: string) => (key.endsWith("_ns") ? " (ns)" : key.endsWith("memory") ? " (bytes)" : "");
    const head = columns.map((c) => c.title + (how === csv ? unit(c.key) : ""));
    store.say((await toClipboard(how(head, cells))) ? `${count(visible.length)} rows copied as ${what}` : "The browser blocked access to the clipboard");
  };
  const onKey = (event: KeyboardEvent, row: number) => {
    if (event.key === "t") store.go("timeline", { name: rows.name(row) });
  };

  return (
    <>
      <div class="controls">
        <Search label="Filter operators" value={query} onInput={setQuery} note={query ? `${count(visible.length)} of ${count(rows.length)}` : undefined} />
        {groups.length > 1 && <Segments label="Group by" value={group} options={groups} onChange={choose} />}
        {rows.has("self_device_ns") && group !== "module" && group !== "step" && (
          <Segments
            label="Show"
            value={where}
            options={[
              ["all", "All"],
              ["cpu", "CPU"],
              ["device", "Kernels"],
            ]}
            onChange={setWhere}
          />
        )}
        <Chooser columns={all} hidden={hidden} onChange={setHidden} />
        <span class="push" />
        <button type="button" onClick={() => copy(csv, "CSV")} data-testid="copy-csv">
          Copy CSV
        </button>
        <button type="button" onClick={() => copy(markdown, "Markdown")} data-testid="copy-md">
          Copy Markdown
        </button>
      </div>
      {rows.left > 0 && <p class="muted">{`Showing the ${count(rows.length)} rows with the most time; ${count(rows.left)} others are left out.`}</p>}
      <Table
        label="Operators"
        columns={columns}
        rows={visible}
        sort={order}
        onSort={setSort}
        active={active}
        onActive={setActive}
        onEnter={(r) => store.go("flame", { name: rows.name(r) })}
        onKey={onKey}
        height="calc(100vh - 190px)"
        empty={query ? "No operator matches the filter." : "No operators were recorded."}
      />
      {active !== null && active < rows.length && <Details rows={rows} row={active} all={all} close={() => setActive(null)} />}
    </>
  );
}

/** The name's cell begins with the colour of its category. */
function withDots(columns: TableColumn[], rows: Rows): TableColumn[] {
  const [name, ...rest] = columns;
  return [
    {
      ...name!,
      content: (r) => (
        <>
          <span class={`dot fill-${KINDS[rows.get("category", r)]}`} aria-hidden="true" />
          {label(rows.name(r))}
        </>
      ),
    },
    ...rest,
  ];
}

function Chooser(props: { columns: TableColumn[]; hidden: Set<string>; onChange(hidden: Set<string>): void }) {
  const toggle = (key: string) => {
    const next = new Set(props.hidden);
    if (!next.delete(key)) next.add(key);
    props.onChange(next);
  };
  return (
    <details class="menu">
      <summary>Columns</summary>
      <div class="menu-list">
        {props.columns.slice(1).map((c) => (
          <label key={c.key}>
            <input type="checkbox" checked={!props.hidden.has(c.key)} onChange={() => toggle(c.key)} />
            {c.title}
          </label>
        ))}
      </div>
    </details>
  );
}

function Details(props: { rows: Rows; row: number; all: TableColumn[]; close(): void }) {
  const { rows, row } = props;
  const store = useStore();
  const name = rows.name(row);
  const detail = rows.detail(row);
  return (
    <aside class="details" aria-label="Details of the operator">
      <div class="details-head">
        <h2 class="whole">{spelled(name)}</h2>
        <button type="button" class="quiet" aria-label="Close" onClick={props.close}>
          ✕
        </button>
      </div>
      <div class="controls">
        <button type="button" onClick={() => store.go("flame", { name })} data-testid="to-flame">
          Flame graph
        </button>
        <button type="button" onClick={() => store.go("timeline", { name })} data-testid="to-timeline">
          Timeline
        </button>
        <button type="button" onClick={async () => store.say((await toClipboard(name)) ? "Name copied" : "The browser blocked access to the clipboard")}>
          Copy name
        </button>
      </div>
      <Facts
        rows={props.all
          .filter((c) => c.number)
          .map((c): [string, string] => [c.title, c.text(row)])}
      />
      {detail.length > 0 && (
        <>
          <h3>{DETAIL_TITLES[rows.group]}</h3>
          {typeof detail === "string" ? <p class="whole">{spelled(detail)}</p> : <Stack frames={detail} />}
        </>
      )}
      <p class="muted">{`Mean ${time(rows.mean(row))} over ${plural(rows.timed(row), "call")}.`}</p>
    </aside>
  );
}
