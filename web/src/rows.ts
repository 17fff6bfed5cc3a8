// Rows of averages: a block's columns under a group's name in, functions of a row's number out.
import type { Block, Column } from "./data";
import { bytes, count, flops, label, percent, spelled, time } from "./format";
import type { TableColumn } from "./table";

export class Rows {
  readonly length: number;
  readonly left: number;
  private readonly names: string[];
  private readonly details: (string | string[])[];

  constructor(
    private readonly block: Block,
    readonly group: string,
  ) {
    const about = block.values.groups[group];
    this.names = about.names;
    this.details = about.details ?? [];
    this.left = about.left_out;
    this.length = this.column("name")?.length ?? 0;
  }

  column(field: string): Column | undefined {
    return this.block.columns[`${this.group}.${field}`];
  }

  has(field: string): boolean {
    return this.column(field) !== undefined;
  }

  get(field: string, row: number): number {
    return this.column(field)?.[row] ?? 0;
  }

  name(row: number): string {
    return this.names[this.get("name", row)]!;
  }

  detail(row: number): string | string[] {
    return this.details[this.get("detail", row)] ?? "";
  }

  detailText(row: number): string {
    const detail = this.detail(row);
    return typeof detail === "string" ? detail : (detail[0] ?? "");
  }

  /** The calls that have a time: all but synthetic ones. */
  timed(row: number): number {
    return this.get("count", row) - this.get("synthetic", row);
  }

  /** Time per call that has one. */
  mean(row: number): number {
    return this.get("total_ns", row) / Math.max(1, this.timed(row));
  }

  sum(field: string): number {
    const column = this.column(field);
    let sum = 0;
    if (column) for (const value of column) sum += value;
    return sum;
  }

  /** What devices did in all: kernels and copies. Operators repeat the time of their kernels. */
  get deviceTime(): number {
    const category = this.column("category");
    let sum = 0;
    let any = false;
    for (let r = 0; r < this.length; r++) {
      if (!onDevice(category?.[r] ?? 0)) continue;
      any = true;
      sum += this.get("self_device_ns", r);
    }
    return any ? sum : this.sum("self_device_ns");
  }

  max(field: string): number {
    const column = this.column(field);
    let most = 0;
    if (column) for (const value of column) most = Math.max(most, value);
    return most;
  }
}

/** Whether a category is of what runs on a device. */
export const onDevice = (category: number): boolean => category === 8 || category === 9;

export const DETAIL_TITLES: Record<string, string> = {
  shapes: "Input shapes",
  stack: "Called from",
  module: "Module",
  step: "Step",
};

/** All columns that a group of rows has something for. */
export function rowColumns(rows: Rows, device: string): TableColumn[] {
  const made: TableColumn[] = [
    {
      key: "name",
      title: "Name",
      width: 300,
      text: (r) => label(rows.name(r)),
      exact: (r) => spelled(rows.name(r)),
    },
  ];
  if (rows.has("detail")) {
    made.push({
      key: "detail",
      title: DETAIL_TITLES[rows.group] ?? "",
      width: 240,
      text: (r) => label(rows.detailText(r)),
      exact: (r) => spelled([rows.detail(r)].flat().join("; ")),
    });
  }
  const unit = device ? device.toUpperCase() : "Device";
  const add = (
    key: string,
    title: string,
    field: string,
    text: (n: number) => string,
    options: { bar?: boolean; of?: number; help?: string; value?: (r: number) => number } = {},
  ) => {
    if (!rows.has(field)) return;
    const most = options.bar ? rows.max(field) : 0;
    const value = options.value ?? ((r: number) => rows.get(field, r));
    made.push({
      key,
      title,
      help: options.help,
      width: Math.max(100, title.length * 8 + 34),
      number: value,
      text: (r) => text(value(r)),
      exact: (r) => String(options.of === undefined ? value(r) : (100 * value(r)) / Math.max(options.of, 1)),
      share: options.bar && most > 0 ? (r) => Math.max(0, value(r)) / most : undefined,
    });
  };
  const whole = rows.sum("self_ns");
  const wholeDevice = rows.deviceTime;
  add("self_device_ns", `Self ${unit}`, "self_device_ns", time, { bar: true });
  add("self_device_share", `Self ${unit} %`, "self_device_ns", (n) => percent(n, wholeDevice), { of: wholeDevice });
  add("device_ns", `${unit} total`, "device_ns", time, { bar: true });
  add("self_ns", "Self CPU", "self_ns", time, { bar: true, help: "Time in the operator itself, without the operators it calls" });
  add("self_share", "Self CPU %", "self_ns", (n) => percent(n, whole), { of: whole, help: "Share of the sum of all self times" });
  add("total_ns", "CPU total", "total_ns", time, { bar: true, help: "Time in the operator, including the operators it calls" });
  add("total_share", "CPU total %", "total_ns", (n) => percent(n, whole), { of: whole });
  add("mean_ns", "CPU mean", "total_ns", time, { value: (r) => rows.mean(r) });
  add("count", "Calls", "count", count, { bar: true });
  add("synthetic", "Synthetic", "synthetic", count, { help: "Calls that torch shows inside others and that ran as part of one kernel: they have no time of their own" });
  add("min_ns", "Min", "min_ns", time);
  add("p50_ns", "Median", "p50_ns", time);
  add("p95_ns", "p95", "p95_ns", time, { help: "95th percentile of the durations" });
  add("max_ns", "Max", "max_ns", time);
  add("self_memory", "Self CPU mem", "self_memory", bytes, { bar: true, help: "Bytes allocated minus bytes freed, in the operator itself" });
  add("memory", "CPU mem", "memory", bytes);
  add("self_device_memory", `Self ${unit} mem`, "self_device_memory", bytes);
  add("device_memory", `${unit} mem`, "device_memory", bytes);
  add("flops", "FLOPs", "flops", flops, { bar: true });
  return made;
}
