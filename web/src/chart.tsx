// Stacked areas over time, on uPlot: times and one column of values a layer in.
import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import { onTheme, theme } from "./colours";
import { bytes, time } from "./format";

export interface Layer {
  name: string;
  colour: number; // place among the memory colours
  values: Float64Array;
}

interface Props {
  times: Float64Array; // ns
  layers: Layer[];
  peak: number; // ns
  onHover(index: number | null): void;
}

export function Areas(props: Props) {
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const host = box.current!;
    let plot: uPlot | null = null;
    const make = () => {
      plot?.destroy();
      plot = new uPlot(options(props, host.clientWidth), stacked(props), host);
    };
    make();
    const observer = new ResizeObserver(() => plot?.setSize({ width: host.clientWidth, height: HEIGHT }));
    observer.observe(host);
    const stop = onTheme(make);
    return () => {
      stop();
      observer.disconnect();
      plot?.destroy();
    };
  }, [props.times, props.layers]);
  return <div class="chart" ref={box} role="img" aria-label="Allocated memory over time, by category" />;
}

const HEIGHT = 320;

/** Sums from the bottom up; the topmost comes first so that lower ones are painted over it. */
function stacked({ times, layers }: Props): uPlot.AlignedData {
  const sums: Float64Array[] = [];
  for (const layer of layers) {
    const below = sums.at(-1);
    sums.push(below ? layer.values.map((v, i) => v + below[i]!) : layer.values);
  }
  return [times, ...sums.reverse()] as unknown as uPlot.AlignedData;
}

function options(props: Props, width: number): uPlot.Options {
  const colours = theme();
  const stepped = uPlot.paths.stepped!({ align: 1 });
  const axis = { stroke: colours.muted, grid: { stroke: colours.line, width: 1 }, ticks: { stroke: colours.line, width: 1 } };
  return {
    width,
    height: HEIGHT,
    legend: { show: false },
    cursor: { y: false, points: { show: false }, drag: { x: true, y: false } },
    scales: { x: { time: false }, y: { range: (_u, _min, max) => [0, Math.max(max * 1.05, 1)] } },
    axes: [
      { ...axis, values: (_u, ticks) => ticks.map((t) => time(t, 1)), space: 90 },
      { ...axis, values: (_u, ticks) => ticks.map((t) => bytes(t)), size: 84, splits: (_u, _i, _min, max) => binarySplits(max) },
    ],
    series: [
      {},
      ...[...props.layers].reverse().map((layer) => ({
        label: layer.name,
        stroke: colours.memory[layer.colour]!,
        fill: colours.memory[layer.colour]!,
        width: 1,
        paths: stepped,
        points: { show: false },
      })),
    ],
    hooks: {
      setCursor: [(u) => props.onHover(u.cursor.idx ?? null)],
      draw: [
        (u) => {
          const x = u.valToPos(props.peak, "x", true);
          const { left, top, width: w, height: h } = u.bbox;
          if (x < left || x > left + w) return;
          u.ctx.save();
          u.ctx.strokeStyle = colours.text;
          u.ctx.setLineDash([4, 4]);
          u.ctx.beginPath();
          u.ctx.moveTo(x, top);
          u.ctx.lineTo(x, top + h);
          u.ctx.stroke();
          u.ctx.restore();
        },
      ],
    },
  };
}

/** Lines at round numbers of KB, MB or GB (of 1024). */
function binarySplits(max: number): number[] {
  const unit = 1024 ** Math.floor(Math.log(Math.max(max, 1)) / Math.log(1024));
  const rough = max / unit / 5;
  const power = 10 ** Math.floor(Math.log10(Math.max(rough, 1e-9)));
  const step = power * ([1, 2, 5, 10].find((f) => f * power >= rough) ?? 10) * unit;
  const made = [];
  for (let v = 0; v <= max; v += step) made.push(v);
  return made;
}
