// Flame graph: the merged call tree, widest callers on top, drawn on a canvas.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { ViewProps } from "../app";
import { FONT, fitted, useCanvas, type Surface } from "../canvas";
import { theme } from "../colours";
import type { Block, Column } from "../data";
import { bytes, count, flops, label, percent, spelled, time } from "../format";
import { Empty, Facts, matcher, Search, Segments } from "../parts";
import { onDevice } from "../rows";
import { useBlock, useStore } from "../store";

const ROW = 20;
const METRICS: Record<string, [string, (n: number) => string]> = {
  total_ns: ["Time", time],
  calls: ["Calls", count],
  allocated: ["Allocated", bytes],
  flops: ["FLOPs", flops],
  device_ns: ["Device time", time],
};

const SOURCES: Record<string, string> = { calls: "Modules", classes: "Modules by class", python: "Python calls" };

/** The tree with children in the order of their size; node 0 is the root of all. */
class Tree {
  readonly names: string[];
  readonly count: number;
  readonly parent: Uint32Array;
  readonly depth: Uint16Array;
  readonly value: Float64Array;
  readonly left: Float64Array; // where each begins, in the metric's unit
  readonly children: Uint32Array[];
  readonly deepest: number;
  private readonly get: (field: string) => Column;

  constructor(block: Block, key: string, metric: string) {
    const about = block.values.trees[key];
    this.get = (field) => block.columns[`${key}.${field}`]!;
    this.names = about.names;
    const above = this.get("parent");
    const n = (this.count = above.length + 1);
    this.parent = new Uint32Array(n);
    this.value = new Float64Array(n);
    this.depth = new Uint16Array(n);
    this.left = new Float64Array(n);
    const lists: number[][] = Array.from({ length: n }, () => []);
    const values = this.get(metric);
    const own = metric === "calls"; // calls of a caller are not the sum of its children's: the widths are
    const category = this.get("category");
    for (let i = 1; i < n; i++) {
      this.parent[i] = above[i - 1]!;
      this.depth[i] = this.depth[this.parent[i]!]! + 1;
      // kernels and copies have device time only: they are no calls of the program
      this.value[i] = own && onDevice(category[i - 1]!) ? 0 : values[i - 1]!;
      lists[this.parent[i]!]!.push(i);
    }
    for (let i = n - 1; i > 0; i--) {
      // callers stand before what they call: from the end, children come first
      const sum = lists[i]!.reduce((total, c) => total + this.value[c]!, 0);
      if (own) this.value[i] = this.value[i]! + sum;
      else this.value[i] = Math.max(this.value[i]!, sum);
    }
    this.value[0] = lists[0]!.reduce((total, c) => total + this.value[c]!, 0);
    this.children = lists.map((list) => Uint32Array.from(list.sort((a, b) => this.value[b]! - this.value[a]!)));
    let deepest = 0;
    for (let i = 0; i < n; i++) {
      let at = this.left[i]!;
      for (const c of this.children[i]!) {
        this.left[c] = at;
        at += this.value[c]!;
      }
      deepest = Math.max(deepest, this.depth[i]!);
    }
    this.deepest = deepest;
  }

  name(node: number): string {
    return node === 0 ? "all" : this.names[this.nameId(node)]!;
  }

  nameId(node: number): number {
    return this.get("name")[node - 1]!;
  }

  field(field: string, node: number): number {
    return node === 0 ? 0 : (this.get(field)?.[node - 1] ?? 0);
  }

  has(field: string): boolean {
    return this.get(field)?.some((v) => v > 0) ?? false;
  }
}

export function Flame({ trace, summary }: ViewProps) {
  const block = useBlock("flame", trace);
  if (block === undefined) return <Empty>Loading …</Empty>;
  if (block === null || !block.columns["calls.parent"]?.length) return <Empty>No calls were recorded.</Empty>;
  return <Graph block={block} trace={trace} device={summary.values.device} />;
}

function Graph({ block, device }: { block: Block; trace: number; device: string }) {
  const store = useStore();
  const sources = Object.keys(block.values.trees);
  const [source, setSource] = useState("calls");
  const [metric, setMetric] = useState((block.values.trees.calls.metrics as string[]).includes("device_ns") ? "device_ns" : "total_ns");
  const [query, setQuery] = useState(store.wanted?.name ?? "");
  const [zoom, setZoom] = useState(0);
  const [chosen, setChosen] = useState<number | null>(null);
  const [hover, setHover] = useState<{ node: number; x: number; y: number } | null>(null);
  const tree = useMemo(() => new Tree(block, source, metric), [block, source, metric]);
  const metrics = (block.values.trees[source].metrics as string[]).map(
    (m) => [m, m === "device_ns" && device ? `${device.toUpperCase()} time` : METRICS[m]![0]] as [string, string],
  );
  const format = METRICS[metric]![1];
  useEffect(() => {
    if (store.wanted) setQuery(store.wanted.name);
  }, [store.wanted]);

  // which names match, and what they cover (a match inside a match counts once)
  const found = useMemo(() => {
    const test = matcher(query);
    if (!test) return null;
    const whole = query.trim().toLowerCase();
    const exact = tree.names.some((n) => n.toLowerCase() === whole);
    const names = tree.names.map((n) => (exact ? n.toLowerCase() === whole : test(n.toLowerCase())));
    const hit = new Uint8Array(tree.count);
    const under = new Uint8Array(tree.count);
    let value = 0;
    let nodes = 0;
    for (let i = 1; i < tree.count; i++) {
      const up = tree.parent[i]!;
      under[i] = under[up]! | hit[up]!;
      if (names[tree.nameId(i)]) {
        hit[i] = 1;
        nodes++;
        if (!under[i]) value += tree.value[i]!;
      }
    }
    return { hit, value, nodes };
  }, [query, tree]);

  const boxes = useRef<{ node: number; x: number; w: number; depth: number }[]>([]);
  const height = (tree.deepest + 1) * ROW + 2;

  const [ref] = useCanvas((surface) => {
    boxes.current = draw(surface, tree, zoom, chosen, hover?.node ?? null, found?.hit ?? null, format);
    surface.canvas.dataset.drawn = String(boxes.current.length);
  });

  const at = (event: MouseEvent): number | null => {
    const rect = ref.current!.getBoundingClientRect();
    const x = event.clientX - rect.left;
    const depth = Math.floor((event.clientY - rect.top) / ROW);
    return boxes.current.find((b) => b.depth === depth && x >= b.x && x < b.x + b.w)?.node ?? null;
  };

  const reveal = (node: number) => {
    const box = ref.current!.parentElement!;
    const y = tree.depth[node]! * ROW;
    if (y < box.scrollTop) box.scrollTop = y;
    else if (y + ROW > box.scrollTop + box.clientHeight) box.scrollTop = y + ROW - box.clientHeight;
  };

  const onKeyDown = (event: KeyboardEvent) => {
    const now = chosen ?? zoom;
    let next: number | undefined;
    const siblings = tree.children[tree.parent[now]!]!;
    const place = siblings.indexOf(now);
    if (event.key === "ArrowDown") next = tree.children[now]![0] ?? now;
    else if (event.key === "ArrowUp") next = tree.parent[now]!;
    else if (event.key === "ArrowRight") next = siblings[place + 1] ?? now;
    else if (event.key === "ArrowLeft") next = siblings[Math.max(0, place - 1)] ?? now;
    else if (event.key === "Enter") setZoom(now);
    else if (event.key === "Escape") {
      setZoom(0);
      setChosen(null);
    } else if (event.key === "t" && now) store.go("timeline", { name: tree.name(now) });
    else return;
    event.preventDefault();
    if (next !== undefined) {
      setChosen(next);
      reveal(next);
      const inside = (node: number) => {
        for (let n = node; ; n = tree.parent[n]!) {
          if (n === zoom) return true;
          if (n === 0) return zoom === 0;
        }
      };
      if (!inside(next)) setZoom(next);
    }
  };

  const shown = chosen ?? zoom;
  const left = block.values.trees[source].left_out;
  return (
    <>
      <div class="controls">
        <Search
          label="Search calls"
          value={query}
          onInput={setQuery}
          note={found ? `${count(found.nodes)} found, ${percent(found.value, tree.value[0]!)}` : undefined}
        />
        {metrics.length > 1 && <Segments label="Width" value={metric} options={metrics} onChange={setMetric} />}
        {sources.length > 1 && (
          <Segments
            label="Calls"
            value={source}
            options={sources.map((s) => [s, SOURCES[s]!] as [string, string])}
            onChange={(next) => {
              setSource(next);
              setZoom(0);
              setChosen(null);
            }}
          />
        )}
        <button
          type="button"
          disabled={zoom === 0}
          onClick={() => {
            setZoom(0);
            setChosen(null);
          }}
          data-testid="flame-reset"
        >
          Show all
        </button>
      </div>
      {left > 0 && <p class="muted">{`The ${count(left)} smallest calls are left out.`}</p>}
      <div class="canvas-box flame">
        <canvas
          ref={ref}
          style={{ height: `${height}px` }}
          tabIndex={0}
          data-keys
          role="application"
          aria-label={`Flame graph by ${METRICS[metric]![0]}. Selected: ${label(tree.name(shown))}, ${format(tree.value[shown]!)}`}
          data-zoom={label(tree.name(zoom))}
          data-chosen={label(tree.name(shown))}
          onMouseMove={(e) => {
            const node = at(e);
            setHover(node === null ? null : { node, x: e.clientX, y: e.clientY });
          }}
          onMouseLeave={() => setHover(null)}
          onClick={(e) => {
            const node = at(e);
            if (node === null) return;
            setChosen(node);
            setZoom(node === zoom ? tree.parent[node]! : node);
          }}
          onKeyDown={onKeyDown}
        />
      </div>
      {hover && <Tip tree={tree} node={hover.node} x={hover.x} y={hover.y} format={format} />}
      {shown > 0 ? (
        <aside class="details" aria-label="Details of the call">
          <div class="details-head">
            <h2 class="whole">{spelled(tree.name(shown))}</h2>
          </div>
          <div class="controls">
            <button type="button" onClick={() => store.go("operators", { name: tree.name(shown) })}>
              Operators
            </button>
            <button type="button" onClick={() => store.go("timeline", { name: tree.name(shown) })}>
              Timeline
            </button>
          </div>
          <Facts rows={facts(tree, shown, format)} />
        </aside>
      ) : (
        <p class="muted hint">Click a call to zoom in, click it again to zoom out; or use the keys ← → ↑ ↓, Enter and Escape.</p>
      )}
    </>
  );
}

function facts(tree: Tree, node: number, format: (n: number) => string): [string, string][] {
  const made: [string, string][] = [
    ["Width", `${format(tree.value[node]!)} (${percent(tree.value[node]!, tree.value[0]!)} of total)`],
    ["Time", time(tree.field("total_ns", node))],
    ["Self time", time(tree.field("self_ns", node))],
    ["Calls", count(tree.field("calls", node))],
    ["Time per call", time(tree.field("total_ns", node) / Math.max(1, tree.field("calls", node) - tree.field("synthetic", node)))],
  ];
  if (tree.field("synthetic", node)) made.push(["Synthetic calls", count(tree.field("synthetic", node))]);
  if (tree.has("allocated")) made.push(["Allocated", bytes(tree.field("allocated", node))]);
  if (tree.has("flops")) made.push(["FLOPs", flops(tree.field("flops", node))]);
  if (tree.has("device_ns")) made.push(["Device time", time(tree.field("device_ns", node))]);
  return made;
}

function Tip(props: { tree: Tree; node: number; x: number; y: number; format: (n: number) => string }) {
  const { tree, node } = props;
  const left = Math.min(props.x + 12, window.innerWidth - 330);
  const top = props.y + 110 > window.innerHeight ? props.y - 90 : props.y + 16;
  return (
    <div class="tip" style={{ left: `${Math.max(4, left)}px`, top: `${top}px` }} aria-hidden="true">
      <b>{spelled(tree.name(node).slice(0, 400))}</b>
      <div>{`${props.format(tree.value[node]!)} · ${percent(tree.value[node]!, tree.value[0]!)}`}</div>
      {node > 0 && <div class="muted">{`self ${time(tree.field("self_ns", node))} · ${count(tree.field("calls", node))} calls`}</div>}
    </div>
  );
}

function draw(
  { context: c, width, height }: Surface,
  tree: Tree,
  zoom: number,
  chosen: number | null,
  hover: number | null,
  hit: Uint8Array | null,
  format: (n: number) => string,
) {
  const colours = theme();
  c.fillStyle = colours.panel;
  c.fillRect(0, 0, width, height);
  c.font = FONT;
  c.textBaseline = "middle";
  const boxes: { node: number; x: number; w: number; depth: number }[] = [];
  const scale = tree.value[zoom]! > 0 ? width / tree.value[zoom]! : 0;
  const box = (node: number, x: number, w: number) => {
    const depth = tree.depth[node]!;
    boxes.push({ node, x, w, depth });
    const y = depth * ROW;
    c.globalAlpha = hit && !hit[node] ? 0.25 : 1;
    c.fillStyle = node === 0 ? colours.line : colours.kinds[tree.field("category", node)]!;
    c.fillRect(x, y + 1, Math.max(w - 1, 0.5), ROW - 2);
    c.globalAlpha = 1;
    const name = node === 0 ? `all · ${format(tree.value[0]!)}` : label(tree.name(node));
    const text = w > 28 ? fitted(c, name, w - 8) : "";
    if (text) {
      c.fillStyle = hit && !hit[node] ? colours.muted : node === 0 ? colours.text : colours.onColour;
      c.fillText(text, Math.max(x, 0) + 4, y + ROW / 2 + 0.5);
    }
    c.globalAlpha = 1;
    if (node === chosen || node === hover) {
      c.strokeStyle = colours.text;
      c.lineWidth = node === chosen ? 2 : 1;
      c.strokeRect(x + 1, y + 1.5, Math.max(w - 3, 1), ROW - 3);
    }
  };
  for (let up = zoom; up !== 0; ) {
    up = tree.parent[up]!;
    box(up, 0, width);
  }
  const pending = [zoom];
  const origin = tree.left[zoom]!;
  while (pending.length) {
    const node = pending.pop()!;
    const x = (tree.left[node]! - origin) * scale;
    const w = tree.value[node]! * scale;
    if (w < 0.4) continue;
    box(node, x, w);
    for (const child of tree.children[node]!) {
      if (tree.value[child]! * scale < 0.4) break; // in the order of size: all others are smaller
      pending.push(child);
    }
  }
  return boxes;
}
