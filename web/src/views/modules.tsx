// Modules: the tree of nn.Modules with what each costs.
import { useMemo, useState } from "preact/hooks";
import type { ViewProps } from "../app";
import type { Block } from "../data";
import { bytes, count, flops, label, percent, time } from "../format";
import { Empty, matcher, Search } from "../parts";
import { useBlock, useStore } from "../store";
import { Table, type Sort, type TableColumn } from "../table";

export function Modules({ trace, summary }: ViewProps) {
  const block = useBlock("modules", trace);
  if (block === undefined) return <Empty>Loading …</Empty>;
  if (block === null) return <Empty>No modules were recorded. Record with with_modules=True or with_stack=True.</Empty>;
  return <Tree block={block} device={summary.values.device} />;
}

function Tree({ block, device }: { block: Block; device: string }) {
  const store = useStore();
  const names: string[] = block.values.names;
  const parent = block.columns["parent"]!;
  const children = useMemo(() => {
    const made: number[][] = Array.from({ length: names.length + 1 }, () => []);
    parent.forEach((p: number, i: number) => made[p]!.push(i));
    return made;
  }, [block]);
  const depth = useMemo(() => {
    const made = new Uint16Array(names.length);
    for (let i = 0; i < names.length; i++) made[i] = parent[i]! ? made[parent[i]! - 1]! + 1 : 0;
    return made;
  }, [block]);
  const [closed, setClosed] = useState(() => new Set(names.flatMap((_, i) => (depth[i]! >= 3 && children[i + 1]!.length ? [i] : []))));
  const [sort, setSort] = useState<Sort | null>(null);
  const [query, setQuery] = useState("");
  const [active, setActive] = useState<number | null>(null);

  const whole = children[0]!.reduce((sum, i) => sum + block.columns["total_ns"]![i]!, 0);
  const columns: TableColumn[] = [
    {
      key: "name",
      title: "Module",
      width: 300,
      text: (r) => label(names[r]!),
      content: (r) => (
        <span class="tree" style={{ paddingLeft: `${depth[r]! * 16}px` }}>
          <button
            type="button"
            class="twist"
            tabIndex={-1}
            aria-label={closed.has(r) ? "Expand" : "Collapse"}
            disabled={!children[r + 1]!.length}
            onClick={(e) => {
              e.stopPropagation();
              toggle(r);
            }}
          >
            {children[r + 1]!.length ? (closed.has(r) ? "▸" : "▾") : "·"}
          </button>
          {label(names[r]!)}
        </span>
      ),
    },
  ];
  const add = (key: string, title: string, text: (n: number) => string, help?: string, bar = true) => {
    const column = block.columns[key];
    if (!column) return;
    let most = 0;
    for (const v of column) most = Math.max(most, v);
    columns.push({ key, title, help, width: 110, number: (r) => column[r]!, text: (r) => text(column[r]!), share: bar ? (r) => column[r]! / (most || 1) : undefined });
  };
  add("calls", "Calls", count, undefined, false);
  add("total_ns", "Forward", time, "Time in the module's forward, including its submodules");
  columns.push({
    key: "share",
    title: "Forward %",
    width: 90,
    number: (r) => block.columns["total_ns"]![r]!,
    text: (r) => percent(block.columns["total_ns"]![r]!, whole),
  });
  add("self_ns", "Self", time, "Time in the module's forward, without its submodules");
  add("backward_ns", "Backward", time, "Time of the backward nodes of its operators, including its submodules");
  add("device_ns", `${device ? device.toUpperCase() : "Device"} time`, time);
  add("allocated", "Allocated", bytes);
  add("flops", "FLOPs", flops);

  const rows = useMemo(() => {
    const test = matcher(query);
    const kept = new Uint8Array(names.length);
    if (test) {
      for (let i = names.length - 1; i >= 0; i--) {
        if (test(names[i]!.toLowerCase())) kept[i] = 1;
        if (kept[i] && parent[i]) kept[parent[i]! - 1] = 1;
      }
    }
    const column = sort && columns.find((c) => c.key === sort.key);
    const ordered = (list: number[]) => {
      if (!column) return list;
      const sign = sort.down ? -1 : 1;
      const { number, text } = column;
      return [...list].sort((a, b) => sign * (number ? number(a) - number(b) : text(a) < text(b) ? -1 : 1) || a - b);
    };
    const made: number[] = [];
    const walk = (list: number[]) => {
      for (const i of ordered(list)) {
        if (test && !kept[i]) continue;
        made.push(i);
        if (test || !closed.has(i)) walk(children[i + 1]!);
      }
    };
    walk(children[0]!);
    return made;
  }, [block, closed, query, sort]);

  const toggle = (row: number) => {
    const next = new Set(closed);
    if (!next.delete(row)) next.add(row);
    setClosed(next);
  };
  const onKey = (event: KeyboardEvent, row: number) => {
    if (event.key === "t") store.go("timeline", { name: names[row]! });
    const open = children[row + 1]!.length > 0 && !closed.has(row);
    if (event.key === "ArrowRight" && !open && children[row + 1]!.length) toggle(row);
    else if (event.key === "ArrowLeft" && open) toggle(row);
    else if (event.key === "ArrowLeft" && parent[row]) setActive(parent[row]! - 1);
    else return;
    event.preventDefault();
  };
  return (
    <>
      <div class="controls">
        <Search label="Filter modules" value={query} onInput={setQuery} />
        <button type="button" onClick={() => setClosed(new Set())}>
          Expand all
        </button>
        <button type="button" onClick={() => setClosed(new Set(names.map((_, i) => i)))}>
          Collapse all
        </button>
      </div>
      <Table
        label="Modules"
        columns={columns}
        rows={rows}
        sort={sort}
        onSort={setSort}
        active={active}
        onActive={setActive}
        onEnter={(r) => store.go("flame", { name: names[r]! })}
        onKey={onKey}
        height="calc(100vh - 190px)"
      />
      <p class="muted hint">Enter or double-click shows a module in the flame graph, t on the timeline; ← and → collapse and expand it.</p>
    </>
  );
}
