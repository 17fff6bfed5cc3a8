// A heat map of ranks and steps: one row per rank, or several ranks per pixel where there are too many; hover names, a click or arrow keys select.
import { useRef, useState } from "preact/hooks";
import { FONT, fitted, useCanvas } from "../canvas";
import { isDark, theme } from "../colours";
import type { Column } from "../data";
import { time } from "../format";

export type Metric = "wait" | "own" | "step" | "exposed" | "idle";

interface Props {
  values: Column; // rank x step, ns
  telling(a: number, b: number): number; // of two ranks on one line of pixels, the value to show
  steps: string[];
  rows: number[]; // of `values`
  name(row: number): string;
  marked: number; // the straggler's row; -1: none
  active: number;
  onRow(row: number): void;
}

const LEFT = 84;
const BOTTOM = 20;
const MOST = 560; // pixels of all rows
const TALL = 22; // of one row
const LABEL = 14; // of the name of a row
const PAGE = 10; // rows that a page key moves by

// dark where much time goes, in steps that are told apart in print too
const LIGHT = [[247, 248, 250], [198, 219, 247], [122, 172, 236], [45, 110, 200], [10, 44, 110]] as const;
const DARK = [[28, 34, 43], [31, 66, 120], [50, 110, 190], [120, 176, 245], [224, 238, 255]] as const;

export function HeatMap(props: Props) {
  const { values, steps, rows } = props;
  const [cell, setCell] = useState<[number, number] | null>(null);
  const box = useRef<HTMLDivElement>(null);
  const n = steps.length;
  const tall = Math.min(TALL, MOST / rows.length);
  const height = Math.max(40, Math.round(tall * rows.length)) + BOTTOM;
  // one outlier must not make all else pale: the scale ends at the 98th percentile
  const shown = rows.flatMap((row) => Array.from({ length: n }, (_, s) => values[row * n + s]!)).sort((a, b) => a - b);
  const low = shown[0] ?? 0;
  const high = Math.max(low + 1, shown[Math.floor(0.98 * (shown.length - 1))] ?? 1);

  const [ref] = useCanvas(({ context, width, height }) => {
    const colours = theme();
    context.fillStyle = colours.panel;
    context.fillRect(0, 0, width, height);
    const across = (width - LEFT) / n;
    const down = (height - BOTTOM) / rows.length;
    const lines = Math.max(1, Math.min(rows.length, Math.floor(height - BOTTOM)));
    const gap = across > 6 ? 1 : 0;
    for (let line = 0; line < lines; line++) {
      const first = Math.floor((line * rows.length) / lines);
      const last = Math.max(first + 1, Math.floor(((line + 1) * rows.length) / lines));
      const y = (line * (height - BOTTOM)) / lines;
      const h = (height - BOTTOM) / lines;
      for (let s = 0; s < n; s++) {
        let value = values[rows[first]! * n + s]!;
        for (let i = first + 1; i < last; i++) value = props.telling(value, values[rows[i]! * n + s]!);
        context.fillStyle = colour((value - low) / (high - low));
        context.fillRect(LEFT + s * across, y, Math.max(1, across - gap), Math.max(1, h - (h > 6 ? 1 : 0)));
      }
    }
    context.font = FONT;
    context.textBaseline = "middle";
    context.textAlign = "right";
    const bottom = height - BOTTOM - LABEL / 2;
    const middle = (i: number) => Math.min(bottom, Math.max(LABEL / 2, (i + 0.5) * down));
    for (const i of labelled(rows.length, middle, [rows.indexOf(props.marked), rows.indexOf(props.active)])) {
      const row = rows[i]!;
      const special = row === props.marked || row === props.active;
      context.fillStyle = row === props.marked ? getComputedStyle(document.documentElement).getPropertyValue("--worse") : special ? colours.text : colours.muted;
      context.font = special ? `600 ${FONT}` : FONT;
      context.fillText(fitted(context, props.name(row), LEFT - 10), LEFT - 6, middle(i));
    }
    for (const [row, stroke] of [
      [props.active, colours.text],
      [props.marked, getComputedStyle(document.documentElement).getPropertyValue("--worse")],
    ] as const) {
      const i = rows.indexOf(row);
      if (i < 0) continue;
      context.strokeStyle = stroke;
      context.lineWidth = 1.5;
      context.strokeRect(LEFT - 1, i * down - 0.5, width - LEFT, Math.max(down, 3));
    }
    context.font = FONT;
    context.fillStyle = colours.muted;
    context.textAlign = "center";
    const skip = Math.max(1, Math.ceil(56 / across));
    for (let s = 0; s < n; s += skip) context.fillText(fitted(context, steps[s]!, Math.max(across * skip, 30)), LEFT + (s + 0.5) * across, height - BOTTOM / 2);
  });

  const at = (event: MouseEvent): [number, number] | null => {
    const rect = ref.current!.getBoundingClientRect();
    const s = Math.floor(((event.clientX - rect.left - LEFT) / (rect.width - LEFT)) * n);
    const i = Math.floor(((event.clientY - rect.top) / (rect.height - BOTTOM)) * rows.length);
    return s < 0 || s >= n || i < 0 || i >= rows.length ? null : [rows[i]!, s];
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const row = rows.indexOf(props.active);
    const step = Math.min(cell?.[1] ?? 0, n - 1);
    const moves: Record<string, [number, number]> = {
      ArrowDown: [row + 1, step],
      ArrowUp: [row - 1, step],
      PageDown: [row + PAGE, step],
      PageUp: [row - PAGE, step],
      Home: [0, step],
      End: [rows.length - 1, step],
      ArrowLeft: [row, step - 1],
      ArrowRight: [row, cell ? step + 1 : step],
    };
    const to = moves[event.key];
    if (!to) return;
    event.preventDefault();
    const next = rows[Math.min(rows.length - 1, Math.max(0, to[0]))]!;
    setCell([next, Math.min(n - 1, Math.max(0, to[1]))]);
    props.onRow(next);
  };
  const gradient = (isDark() ? DARK : LIGHT).map((c) => `rgb(${c.join(",")})`);
  return (
    <div class="heat" ref={box}>
      <canvas
        ref={ref}
        style={{ height: `${height}px` }}
        role="application"
        tabIndex={0}
        aria-label={`${rows.length} ranks and ${n} steps as a heat map: arrow keys choose a rank and a step; the table below has the sums`}
        data-testid="heat"
        onKeyDown={onKeyDown}
        onMouseMove={(e) => setCell(at(e))}
        onMouseLeave={() => setCell(null)}
        onClick={(e) => {
          const clicked = at(e);
          if (clicked) props.onRow(clicked[0]);
        }}
      />
      <p class="legend">
        <span>{time(low)}</span>
        <svg width="120" height="10" aria-hidden="true">
          {gradient.map((fill, i) => (
            <rect key={i} x={i * 24} y="0" width="24" height="10" fill={fill} />
          ))}
        </svg>
        <span>{time(high)} and more</span>
        <span class="hovered" aria-live="polite">
          {cell ? `${props.name(cell[0])}, step ${steps[cell[1]]}: ${time(values[cell[0] * n + cell[1]]!)}` : ""}
        </span>
      </p>
    </div>
  );
}

/** The rows whose names fit below each other: those that must be named, then from the top whatever is free. middle: of a name, in pixels. */
function labelled(n: number, middle: (i: number) => number, first: number[]): number[] {
  const taken: number[] = [];
  const isFree = (i: number) => taken.every((other) => Math.abs(middle(other) - middle(i)) >= LABEL - 0.01);
  for (const i of first) if (i >= 0 && isFree(i)) taken.push(i);
  const named = taken.map(middle);
  let last = -Infinity;
  for (let i = 0; i < n; i++) {
    const y = middle(i);
    if (y - last < LABEL - 0.01 || named.some((other) => Math.abs(other - y) < LABEL - 0.01)) continue;
    taken.push(i);
    last = y;
  }
  return taken;
}

function colour(share: number): string {
  const stops = isDark() ? DARK : LIGHT;
  const place = Math.min(1, Math.max(0, share)) * (stops.length - 1);
  const i = Math.min(stops.length - 2, Math.floor(place));
  const t = place - i;
  const [a, b] = [stops[i]!, stops[i + 1]!];
  return `rgb(${a.map((v, k) => Math.round(v + (b[k]! - v) * t)).join(",")})`;
}
