// Spans of the timeline: a block in; lanes, bisection, sums and arrows out. Spans of one lane do not overlap and are in the order of time.
import type { Block, Column } from "./data";

const MOST_ARROWS = 200; // that can still be told apart
const ANNOTATION = 4; // a category, see export/html/calls.py
const LAUNCH = 1; // a kind of arrow, see export/html/timeline.py

export interface Track {
  label: string;
  kind: string;
  lanes: number[]; // numbers of lanes, the outermost first
}

/** A block of spans without synthetic events; lanes that have no other go too. */
export function recordedOnly(block: Block): Block {
  const synthetic = block.columns["synthetic"];
  if (!synthetic) return block;
  const count = synthetic.length;
  const place = new Int32Array(count + 1); // by span: how many stay before it
  for (let i = 0; i < count; i++) place[i + 1] = place[i]! + (synthetic[i] ? 0 : 1);
  const stays = (_: number, i: number) => !synthetic[i];
  const columns: Record<string, Column> = { ...block.columns };
  for (const [name, column] of Object.entries(columns)) {
    if (!name.includes(".") && column.length === count) columns[name] = (column as Float64Array).filter(stays);
  }
  const first = Array.from(block.columns["lane.first"]!, (span) => place[span]!);
  const filled = (_: number, lane: number) => first[lane]! < first[lane + 1]!;
  for (const name of ["lane.track", "lane.depth"]) columns[name] = (columns[name] as Float64Array).filter(filled);
  columns["lane.first"] = Uint32Array.from([...first.slice(0, -1).filter(filled), first[first.length - 1]!]);
  const [from, to] = [block.columns["arrow.from"]!, block.columns["arrow.to"]!];
  const both = (_: number, arrow: number) => !synthetic[from[arrow]!] && !synthetic[to[arrow]!];
  const moved = (column: Column) => Float64Array.from((column as Float64Array).filter(both), (span) => place[span]!);
  columns["arrow.from"] = moved(from);
  columns["arrow.to"] = moved(to);
  columns["arrow.kind"] = (block.columns["arrow.kind"] as Float64Array).filter(both);
  return { columns, values: block.values };
}

export class Spans {
  readonly start: Float64Array;
  readonly duration: Column;
  readonly name: Column;
  readonly names: string[];
  readonly category: Column; // by name
  readonly laneFirst: Column;
  readonly laneOf: Column; // track of each lane
  readonly tracks: Track[];
  readonly busy: Float64Array; // durations before each span, summed up
  readonly begin: number;
  readonly length: number; // of the whole recording, in ns
  private readonly arrowsFrom: Float64Array;
  private readonly arrowsTo: Column;
  readonly arrowKind: Column;
  private incoming: Map<number, number[]> | null = null;

  constructor(readonly block: Block) {
    const { columns, values } = block;
    this.start = columns["start_ns"] as Float64Array;
    this.duration = columns["duration_ns"]!;
    this.name = columns["name"]!;
    this.names = values.names;
    this.category = columns["name.category"]!;
    this.laneFirst = columns["lane.first"]!;
    this.laneOf = columns["lane.track"]!;
    this.begin = values.begin_ns;
    this.length = Math.max(1, values.end_ns - values.begin_ns);
    this.tracks = values.tracks.map((t: any) => ({ label: t.label, kind: t.kind, lanes: [] }));
    this.laneOf.forEach((track: number, lane: number) => this.tracks[track]!.lanes.push(lane));
    this.tracks = this.tracks.filter((t) => t.lanes.length);
    this.busy = new Float64Array(this.start.length + 1);
    for (let i = 0, sum = 0; i < this.start.length; i++) this.busy[i + 1] = sum += this.duration[i]!;
    this.arrowsFrom = columns["arrow.from"] as Float64Array;
    this.arrowsTo = columns["arrow.to"]!;
    this.arrowKind = columns["arrow.kind"]!;
  }

  get count(): number {
    return this.start.length;
  }

  end(span: number): number {
    return this.start[span]! + this.duration[span]!;
  }

  column(field: string, span: number): number {
    return this.block.columns[field]?.[span] ?? 0;
  }

  /** The first span in [low, high) that begins at or after a time. */
  from(time: number, low: number, high: number): number {
    const { start } = this;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (start[middle]! < time) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** The first span of a lane that ends after a time. */
  firstAfter(time: number, lane: number): number {
    const low = this.laneFirst[lane]!;
    const at = this.from(time, low, this.laneFirst[lane + 1]!);
    return at > low && this.end(at - 1) > time ? at - 1 : at;
  }

  lane(span: number): number {
    let low = 0;
    let high = this.laneFirst.length - 1;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.laneFirst[middle + 1]! <= span) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  track(span: number): Track {
    const lane = this.lane(span);
    return this.tracks.find((t) => t.lanes.includes(lane))!;
  }

  /** A span's own arrows: those that begin or end at it, and those from launches directly inside it to kernels; [from, to, kind]. */
  arrows(span: number): [number, number, number][] {
    const made: [number, number, number][] = [];
    this.addArrows(span, span + 1, made);
    for (const i of this.arriving().get(span) ?? []) made.push([this.arrowsFrom[i]!, span, this.arrowKind[i]!]);
    if (this.category[this.name[span]!] === ANNOTATION) return made;
    const [below] = this.lanesBelow(span);
    if (below === undefined) return made;
    const nested: [number, number, number][] = [];
    this.addArrows(...this.inside(span, below), nested);
    return [...made, ...nested.filter(([, , kind]) => kind === LAUNCH)];
  }

  /** The arrows that begin in what a span contains, and its own. */
  arrowsInside(span: number): [number, number, number][] {
    const made: [number, number, number][] = [];
    this.addArrows(span, span + 1, made);
    for (const i of this.arriving().get(span) ?? []) made.push([this.arrowsFrom[i]!, span, this.arrowKind[i]!]);
    for (const lane of this.lanesBelow(span)) this.addArrows(...this.inside(span, lane), made);
    return made;
  }

  private lanesBelow(span: number): number[] {
    const lanes = this.track(span).lanes;
    return lanes.slice(lanes.indexOf(this.lane(span)) + 1);
  }

  /** The spans of a lane that begin while a span runs: the first, and the first after them. */
  private inside(span: number, lane: number): [number, number] {
    const last = this.laneFirst[lane + 1]!;
    const first = this.from(this.start[span]!, this.laneFirst[lane]!, last);
    return [first, this.from(this.end(span), first, last)];
  }

  /** Arrows that begin at spans in [first, last), up to a number that can still be told apart. */
  private addArrows(first: number, last: number, made: [number, number, number][]): void {
    const all = this.arrowsFrom;
    let low = 0;
    let high = all.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (all[middle]! < first) low = middle + 1;
      else high = middle;
    }
    for (; low < all.length && all[low]! < last && made.length < MOST_ARROWS; low++) made.push([all[low]!, this.arrowsTo[low]!, this.arrowKind[low]!]);
  }

  /** By span, the arrows that end there. */
  private arriving(): Map<number, number[]> {
    if (!this.incoming) {
      this.incoming = new Map();
      for (let i = 0; i < this.arrowsTo.length; i++) {
        const to = this.arrowsTo[i]!;
        const list = this.incoming.get(to);
        if (list) list.push(i);
        else this.incoming.set(to, [i]);
      }
    }
    return this.incoming;
  }

  get arrowCount(): number {
    return this.arrowsFrom.length;
  }

  arrow(i: number): [number, number, number] {
    return [this.arrowsFrom[i]!, this.arrowsTo[i]!, this.arrowKind[i]!];
  }
}

/** Kinds of arrows from here on lead along the critical path: 2 from start to start, 3 from end to end, 4 from end to start. */
export const ALONG_PATH = 2;

/** The spans on the critical path, with their number before each span. */
export class OnPath {
  readonly before: Uint32Array;

  constructor(readonly time: Column) {
    this.before = new Uint32Array(time.length + 1);
    for (let i = 0, sum = 0; i < time.length; i++) this.before[i + 1] = sum += time[i]! > 0 ? 1 : 0;
  }

  has(span: number): boolean {
    return this.time[span]! > 0;
  }

  between(first: number, last: number): number {
    return this.before[last]! - this.before[first]!;
  }
}

/** Which spans have a name that matches, with their number before each span: pixels ask how many lie between two. */
export class Matches {
  readonly before: Uint32Array;
  readonly names: Uint8Array;
  readonly count: number;

  constructor(
    private readonly spans: Spans,
    test: (text: string) => boolean,
    whole: string,
  ) {
    const exact = spans.names.includes(whole);
    this.names = Uint8Array.from(spans.names, (n) => ((exact ? n === whole : test(n.toLowerCase())) ? 1 : 0));
    this.before = new Uint32Array(spans.count + 1);
    for (let i = 0, sum = 0; i < spans.count; i++) this.before[i + 1] = sum += this.names[spans.name[i]!]!;
    this.count = this.before[spans.count]!;
  }

  between(first: number, last: number): number {
    return this.before[last]! - this.before[first]!;
  }

  /** The match that follows (or precedes) a time over all lanes. */
  next(time: number, back: boolean): number | null {
    const { spans } = this;
    let best: number | null = null;
    for (let lane = 0; lane + 1 < spans.laneFirst.length; lane++) {
      const first = spans.laneFirst[lane]!;
      const last = spans.laneFirst[lane + 1]!;
      const at = spans.from(back ? time : time + 0.5, first, last);
      const found = back ? this.at(this.before[at]!, first) : this.at(this.before[at]! + 1, at);
      if (found === null || found < first || found >= last) continue;
      if (best === null || (back ? spans.start[found]! > spans.start[best]! : spans.start[found]! < spans.start[best]!)) best = found;
    }
    return best;
  }

  /** The span that is the n-th match; null if there is none. */
  private at(n: number, _from: number): number | null {
    if (n < 1 || n > this.count) return null;
    let low = 0;
    let high = this.spans.count;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.before[middle + 1]! < n) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
