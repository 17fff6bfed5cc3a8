// Roofline: intensity and rate of each op under what the device can do, and the same as a table.
import { useMemo, useRef, useState } from "preact/hooks";
import type { ViewProps } from "../app";
import { FONT, useCanvas, type Surface } from "../canvas";
import { theme } from "../colours";
import type { Block } from "../data";
import { bytes, count, flops, label, percent, spelled, time } from "../format";
import { Empty, matcher, Panel, Search } from "../parts";
import { useBlock, useStore } from "../store";
import { sorted, Table, type Sort, type TableColumn } from "../table";

export function Roofline({ trace }: ViewProps) {
  const block = useBlock("roofline", trace);
  if (block === undefined) return <Empty>Loading …</Empty>;
  if (block === null) return <Empty>No kernel belongs to an op whose work is known. Record on a device, with record_shapes=True.</Empty>;
  return <Rows block={block} />;
}

function Rows({ block }: { block: Block }) {
  const store = useStore();
  const { names, shapes, types, categories, bounds, peaks, sentence, notes, not_covered: missing } = block.values;
  const column = (key: string) => block.columns[key]!;
  const [sort, setSort] = useState<Sort | null>(null);
  const [query, setQuery] = useState("");
  const [active, setActive] = useState<number | null>(null);
  const kernel = column("kernel_ns");
  const whole = Array.from(kernel).reduce((sum, v) => sum + v, 0);
  const most = Math.max(...kernel, 1);
  const number = (key: string, title: string, text: (n: number) => string, help: string, width = 100): TableColumn => ({
    key,
    title,
    help,
    width,
    number: (r) => column(key)[r]!,
    text: (r) => (column(key)[r] ? text(column(key)[r]!) : "–"),
  });
  const columns: TableColumn[] = [
    { key: "name", title: "Operator", width: 240, text: (r) => label(names[r]) },
    { key: "shapes", title: "Shapes", width: 230, text: (r) => label(shapes[r]) },
    { key: "types", title: "Types", width: 90, text: (r) => types[r] },
    number("count", "Calls", count, "Calls that ran kernels", 70),
    {
      key: "kernel_ns",
      title: "Kernel time",
      help: "Time of the kernels that it launched, without those of other ops inside; overlapping ones count once",
      width: 110,
      number: (r) => kernel[r]!,
      text: (r) => time(kernel[r]!),
      share: (r) => kernel[r]! / most,
    },
    { key: "share", title: "Share", width: 80, number: (r) => kernel[r]!, text: (r) => percent(kernel[r]!, whole) },
    number("flop", "FLOP", flops, "Operations of one call, by a model of the op"),
    number("bytes", "Bytes", bytes, "The least that one call must move"),
    number("tflops", "TFLOP/s", rate, "Operations per second of kernel time", 90),
    number("tbps", "TB/s", rate, "Bytes per second of kernel time", 80),
    number("intensity", "FLOP/byte", rate, "Operations per byte", 90),
    { key: "bound", title: "Bound", width: 90, text: (r) => bounds[r] },
    number("share_of_peak", "Of peak", (n) => `${(100 * n).toFixed(1)}%`, "Least possible time at the device's peaks ÷ kernel time", 80),
    { key: "category", title: "Kind", width: 120, text: (r) => categories[r] },
  ];
  const rows = useMemo(() => {
    const test = matcher(query);
    const all = names.map((_: string, i: number) => i);
    return sorted(test ? all.filter((r: number) => test(`${names[r]} ${shapes[r]} ${types[r]} ${categories[r]} ${bounds[r]}`.toLowerCase())) : all, columns, sort);
  }, [block, query, sort]);
  return (
    <>
      <Panel title="Roofline" note={sentence[0].toUpperCase() + sentence.slice(1) + "."}>
        <Plot block={block} rows={rows} active={active} onActive={setActive} />
        {peaks && (
          <p class="muted">
            Peaks of {label(peaks.name)}: {peaks.memory_tbps} TB/s; {Object.entries(peaks.tflops).map(([kind, n]) => `${kind} ${n}`).join(", ")} TFLOP/s. Source:{" "}
            {spelled(peaks.source)}.
          </p>
        )}
        {notes.map((note: string) => (
          <p class="muted" key={note}>
            Note: {spelled(note)}
          </p>
        ))}
      </Panel>
      <div class="controls">
        <Search label="Filter operators" value={query} onInput={setQuery} />
      </div>
      <Table
        label="Roofline"
        columns={columns}
        rows={rows}
        sort={sort}
        onSort={setSort}
        active={active}
        onActive={setActive}
        onEnter={(r) => store.go("flame", { name: names[r] })}
        onKey={(event, r) => event.key === "t" && store.go("timeline", { name: names[r] })}
        height="480px"
      />
      {missing.length > 0 && (
        <Panel title="Kernel time that no model explains">
          <div class="wide"><table class="plain">
            <thead>
              <tr>
                <th scope="col">Launched by</th>
                <th scope="col" class="number">Kernels</th>
                <th scope="col" class="number">Kernel time</th>
                <th scope="col">Why</th>
              </tr>
            </thead>
            <tbody>
              {missing.slice(0, 10).map(([name, kernels, ns, reason]: [string, number, number, string], i: number) => (
                <tr key={i}>
                  <th scope="row">{name ? label(name, 80) : "(no op)"}</th>
                  <td class="number">{count(kernels)}</td>
                  <td class="number">{time(ns)}</td>
                  <td>{spelled(reason)}</td>
                </tr>
              ))}
            </tbody>
          </table></div>
        </Panel>
      )}
    </>
  );
}

const rate = (n: number): string => (n >= 100 ? n.toFixed(0) : n >= 1 ? n.toFixed(2) : n.toPrecision(2));

const LEFT = 64;
const BOTTOM = 34;
const TOP = 26;
const RIGHT = 26;

interface Point {
  row: number;
  x: number;
  y: number;
  radius: number;
}

function Plot(props: { block: Block; rows: number[]; active: number | null; onActive(row: number): void }) {
  const { block, rows, active } = props;
  const { names, bounds, peaks } = block.values;
  const points = useRef<Point[]>([]);
  const [hover, setHover] = useState<number | null>(null);
  const intensity = block.columns["intensity"]!;
  const tflops = block.columns["tflops"]!;
  const kernel = block.columns["kernel_ns"]!;
  const roofs = useMemo(() => [...new Set(Array.from(block.columns["peak_tflops"]!).filter(Boolean))].sort((a, b) => b - a), [block]);
  // rows that compute nothing have no place on logarithmic axes
  const drawn = rows.filter((r) => intensity[r]! > 0 && tflops[r]! > 0 && bounds[r] !== "link");

  const draw = ({ context, width, height }: Surface) => {
    const colours = theme();
    context.fillStyle = colours.panel;
    context.fillRect(0, 0, width, height);
    context.font = FONT;
    const bandwidth = peaks?.memory_tbps ?? 0;
    const xs = drawn.map((r) => intensity[r]!);
    const ys = drawn.map((r) => tflops[r]!);
    if (bandwidth) for (const roof of roofs) xs.push(roof / bandwidth);
    ys.push(...roofs);
    if (!xs.length || !ys.length) {
      context.fillStyle = colours.muted;
      context.fillText("No operator of these rows computes anything.", LEFT, height / 2);
      points.current = [];
      return;
    }
    const [x0, x1] = [Math.floor(Math.log10(Math.min(...xs)) - 0.2), Math.ceil(Math.log10(Math.max(...xs)) + 0.2)];
    const [y0, y1] = [Math.max(Math.floor(Math.log10(Math.min(...ys)) - 0.2), -6), Math.ceil(Math.log10(Math.max(...ys)) + 0.1)];
    const x = (v: number) => LEFT + ((Math.log10(v) - x0) / (x1 - x0)) * (width - LEFT - RIGHT);
    const y = (v: number) => height - BOTTOM - ((Math.log10(v) - y0) / (y1 - y0)) * (height - BOTTOM - TOP);
    context.lineWidth = 1;
    context.strokeStyle = colours.line;
    context.fillStyle = colours.muted;
    context.textAlign = "center";
    for (let power = x0; power <= x1; power++) {
      line(context, [x(10 ** power), TOP], [x(10 ** power), height - BOTTOM]);
      context.fillText(tick(power), x(10 ** power), height - BOTTOM + 14);
    }
    context.fillText("FLOP per byte", (LEFT + width - RIGHT) / 2, height - 5);
    context.textAlign = "right";
    for (let power = y0; power <= y1; power++) {
      line(context, [LEFT, y(10 ** power)], [width - RIGHT, y(10 ** power)]);
      context.fillText(tick(power), LEFT - 6, y(10 ** power) + 4);
    }
    context.textAlign = "left";
    context.fillText("TFLOP/s", 6, 12);
    if (bandwidth) {
      context.strokeStyle = colours.text;
      context.lineWidth = 1.5;
      const highest = roofs[0] ?? bandwidth * 10 ** x1;
      const knee = Math.min(highest / bandwidth, 10 ** x1);
      const from = Math.max(10 ** x0, 10 ** y0 / bandwidth);
      line(context, [x(from), y(from * bandwidth)], [x(knee), y(knee * bandwidth)]);
      for (const roof of roofs) {
        line(context, [x(roof / bandwidth), y(roof)], [width - RIGHT, y(roof)]);
        context.fillStyle = colours.text;
        context.textAlign = "right";
        context.fillText(`${roof} TFLOP/s`, width - RIGHT - 4, y(roof) - 4);
      }
      context.textAlign = "left";
      const middle = Math.sqrt(from * knee);
      context.fillText(`${bandwidth} TB/s`, x(middle) + 8, y(middle * bandwidth) + 14);
    }
    const most = Math.max(...drawn.map((r) => kernel[r]!), 1);
    points.current = drawn.map((r) => ({ row: r, x: x(intensity[r]!), y: Math.min(y(tflops[r]!), height - BOTTOM), radius: 3 + 11 * Math.sqrt(kernel[r]! / most) }));
    for (const point of [...points.current].reverse()) {
      context.globalAlpha = 0.65;
      context.fillStyle = bounds[point.row] === "compute" ? colours.kinds[0]! : colours.kinds[8]!;
      context.beginPath();
      context.arc(point.x, point.y, point.radius, 0, 2 * Math.PI);
      context.fill();
      context.globalAlpha = 1;
      if (point.row === active || point.row === hover) {
        context.strokeStyle = colours.text;
        context.lineWidth = 2;
        context.stroke();
      }
    }
    const named = hover ?? active;
    const at = points.current.find((p) => p.row === named);
    if (at) {
      const text = `${label(names[at.row], 60)}: ${rate(tflops[at.row]!)} TFLOP/s, ${rate(intensity[at.row]!)} FLOP/byte, ${time(kernel[at.row]!)}`;
      const size = context.measureText(text).width;
      const left = Math.min(Math.max(at.x - size / 2, LEFT), width - RIGHT - size - 8);
      const top = Math.max(at.y - at.radius - 24, 2);
      context.fillStyle = colours.back;
      context.fillRect(left - 4, top, size + 8, 18);
      context.fillStyle = colours.text;
      context.textAlign = "left";
      context.fillText(text, left, top + 13);
    }
  };
  const [canvas] = useCanvas(draw);
  const nearest = (event: MouseEvent): number | null => {
    let best: Point | null = null;
    let closest = 12;
    for (const point of points.current) {
      const distance = Math.hypot(point.x - event.offsetX, point.y - event.offsetY) - point.radius;
      if (distance < closest) [best, closest] = [point, distance];
    }
    return best ? best.row : null;
  };
  return (
    <>
      <div class="canvas-box roofline">
        <canvas
          ref={canvas}
          role="img"
          aria-label={`Roofline of ${drawn.length} rows: TFLOP/s over FLOP per byte; the table below has the same numbers`}
          data-points={drawn.length}
          onMouseMove={(e) => setHover(nearest(e))}
          onMouseLeave={() => setHover(null)}
          onClick={(e) => {
            const row = nearest(e);
            if (row !== null) props.onActive(row);
          }}
        />
      </div>
      <p class="muted">
        Each circle is an operator with its shapes, as large as its kernel time; copies over a link and operators that compute nothing are only in the table.
        {peaks ? "" : " The device's peaks are not known, so there is no roof."}
      </p>
    </>
  );
}

const tick = (power: number): string => (power >= 0 ? (10 ** power).toLocaleString("en-US") : power >= -3 ? String(Number((10 ** power).toFixed(3))) : `1e${power}`);

function line(context: CanvasRenderingContext2D, from: [number, number], to: [number, number]): void {
  context.beginPath();
  context.moveTo(...from);
  context.lineTo(...to);
  context.stroke();
}
