// Numbers and names as people read them. Names come from strangers: characters that steer terminals or the direction of text are spelled out.

// control characters, line and direction marks, invisible ones, halves of pairs, private "tags"
const unseen = /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202f\u2060-\u206f\ufeff\ufff9-\uffff]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]|\udb40[\udc00-\udc7f]/g;

/** A name as text that shows what is in it; whole. */
export function spelled(name: string): string {
  return name.replace(unseen, (c) => "\\u" + c.charCodeAt(0).toString(16).padStart(4, "0"));
}

const short = new Map<string, string>();
const kernels = new Map<string, string>();

/** Short forms of the names of kernels, which `label` shows from now on. Different names have different short forms. */
export function rememberShortNames(names: Record<string, string> | undefined): void {
  for (const [name, text] of Object.entries(names ?? {})) kernels.set(name, text);
  short.clear();
}

/** A name as a line shows it: a kernel by its short form, and cut to what fits. `spelled` is the whole name, for titles and details. */
export function label(name: string, most = 300): string {
  let text = short.get(name);
  if (text === undefined) {
    const form = kernels.get(name) ?? name;
    text = spelled(form.slice(0, 300));
    if (form.length > 300) text += "…";
    short.set(name, text);
  }
  return text.length > most ? text.slice(0, most - 1) + "…" : text;
}

export function time(ns: number, digits = 3): string {
  const size = Math.abs(ns);
  if (size >= 1e9) return `${(ns / 1e9).toFixed(digits)} s`;
  if (size >= 1e6) return `${(ns / 1e6).toFixed(digits)} ms`;
  if (size >= 1e3) return `${(ns / 1e3).toFixed(digits)} µs`;
  return size === 0 ? "0" : `${Math.round(ns)} ns`;
}

// of 1024 and named as in torch's tables, as `format_memory` of number_formats.py does
const units = ["B", "KB", "MB", "GB", "TB", "PB"];

export function bytes(n: number): string {
  let unit = 0;
  let value = n;
  while (Math.abs(value) >= 1024 && unit < units.length - 1) {
    value /= 1024;
    unit++;
  }
  return `${value.toFixed(unit ? 2 : 0)} ${units[unit]}`;
}

const steps = ["", "K", "M", "G", "T", "P"];

export function flops(n: number): string {
  let unit = 0;
  let value = n;
  while (Math.abs(value) >= 1000 && unit < steps.length - 1) {
    value /= 1000;
    unit++;
  }
  return `${value.toFixed(unit ? 2 : 0)} ${steps[unit]}FLOP`;
}

export const count = (n: number): string => Math.round(n).toLocaleString("en-US");

export const plural = (n: number, what: string): string => `${count(n)} ${what}${n === 1 ? "" : "s"}`;

export const percent = (part: number, whole: number): string => (whole > 0 ? `${((100 * part) / whole).toFixed(2)}%` : "–");

/** The median of sorted numbers: of an even number of them, the mean of the two in the middle; 0 of none. */
export function median(sorted: number[]): number {
  const middle = sorted.length >> 1;
  return sorted.length % 2 ? sorted[middle]! : ((sorted[middle - 1] ?? 0) + (sorted[middle] ?? 0)) / 2;
}
