// Drawing of the timeline: spans and a window of time in, pixels out. What is thinner than a pixel is drawn as one, as dark as it is busy:
// the cost depends on the pixels of a lane, not on its spans.
import { FONT, fitted, type Surface } from "./canvas";
import { theme } from "./colours";
import { label, time as timeText } from "./format";
import { ALONG_PATH, type Matches, type OnPath, type Spans, type Track } from "./spans";

export const LANE = 18;
export const HEAD = 22;
export const RULER = 26;

export interface Look {
  from: number; // ns since the beginning
  to: number;
  scroll: number;
}

export interface Placed {
  track: Track;
  y: number; // of its head, without scrolling
  open: boolean;
}

/** Where each track begins, and the height of all. */
export function places(spans: Spans, closed: Set<Track>): { placed: Placed[]; height: number; laneY: Float64Array } {
  const laneY = new Float64Array(spans.laneFirst.length).fill(-1);
  const placed: Placed[] = [];
  let y = RULER;
  for (const track of spans.tracks) {
    const open = !closed.has(track);
    placed.push({ track, y, open });
    y += HEAD;
    if (open) {
      for (const lane of track.lanes) {
        laneY[lane] = y;
        y += LANE;
      }
      y += 4;
    }
  }
  return { placed, height: y + 8, laneY };
}

interface Marks {
  chosen: number | null;
  hover: number | null;
  matches: Matches | null;
  arrows: Arrows;
  path: OnPath | null; // the critical path, if it is shown
}

export type Arrows = "own" | "inside" | "all"; // of the chosen event, of what it contains too, of everything in sight

export function drawTimeline(surface: Surface, spans: Spans, look: Look, where: ReturnType<typeof places>, marks: Marks): void {
  const { context: c, width, height } = surface;
  const colours = theme();
  c.fillStyle = colours.panel;
  c.fillRect(0, 0, width, height);
  c.font = FONT;
  c.textBaseline = "middle";
  const scale = width / (look.to - look.from);
  drawGrid(surface, look);
  for (const { track, y, open } of where.placed) {
    const top = y - look.scroll;
    const bottom = top + HEAD + (open ? track.lanes.length * LANE : 0);
    if (bottom < RULER || top > height) continue;
    drawHead(surface, track, top, open);
    if (!open) continue;
    track.lanes.forEach((lane, i) => {
      const at = top + HEAD + i * LANE;
      if (at + LANE > RULER && at < height) drawLane(surface, spans, look, lane, at, scale, marks);
    });
  }
  surface.canvas.dataset.arrows = String(drawArrows(surface, spans, look, where.laneY, scale, marks));
  drawRuler(surface, look);
}

function drawHead({ context: c, width }: Surface, track: Track, y: number, open: boolean): void {
  const colours = theme();
  c.fillStyle = colours.back;
  c.fillRect(0, y, width, HEAD - 2);
  c.fillStyle = colours.muted;
  c.fillText(open ? "▾" : "▸", 6, y + HEAD / 2);
  c.fillStyle = colours.text;
  const kind = { events: "operators", python: "Python", modules: "modules", stream: "" }[track.kind] ?? "";
  c.fillText(fitted(c, label(track.label) + (kind ? ` · ${kind}` : ""), width - 24), 20, y + HEAD / 2);
}

const SHADES = 4;

function drawLane(
  { context: c, width }: Surface,
  spans: Spans,
  look: Look,
  lane: number,
  y: number,
  scale: number,
  marks: Marks,
): void {
  const colours = theme();
  const { start, duration, name, category, busy } = spans;
  const last = spans.laneFirst[lane + 1]!;
  const h = LANE - 2;
  const { matches, path } = marks;
  const pixel = 1 / scale;
  let i = spans.firstAfter(look.from, lane);
  // a run of equal thin pixels
  let runFrom = -1;
  let runTo = -1;
  let runKind = -1;
  let runShade = 0;
  const flush = () => {
    if (runFrom < 0) return;
    c.globalAlpha = runShade / SHADES;
    c.fillStyle = colours.kinds[runKind]!;
    c.fillRect(runFrom, y, runTo - runFrom, h);
    c.globalAlpha = 1;
    runFrom = -1;
  };
  while (i < last && start[i]! < look.to) {
    const x = (start[i]! - look.from) * scale;
    const w = duration[i]! * scale;
    if (w >= 1.5) {
      flush();
      const left = Math.max(x, -2);
      const right = Math.min(x + w, width + 2);
      const dim = (matches !== null && !matches.names[name[i]!]) || (path !== null && !path.has(i));
      c.globalAlpha = dim ? 0.25 : 1;
      c.fillStyle = colours.kinds[category[name[i]!]!]!;
      c.fillRect(left, y, Math.max(right - left - (w > 3 ? 1 : 0), 0.5), h);
      if (right - left > 26) {
        c.globalAlpha = 1;
        c.fillStyle = dim ? colours.muted : colours.onColour;
        c.fillText(fitted(c, label(spans.names[name[i]!]!), right - Math.max(left, 0) - 6), Math.max(left, 0) + 3, y + h / 2 + 0.5);
      }
      c.globalAlpha = 1;
      i++;
      continue;
    }
    const column = Math.max(0, Math.floor(x));
    const until = look.from + (column + 1) * pixel;
    let next = spans.from(until, i + 1, Math.min(last, i + 64));
    if (next === i + 64 && next < last) next = spans.from(until, next, last);
    // the last of them may reach beyond the pixel: it is drawn for itself
    if (next - 1 > i && duration[next - 1]! * scale >= 1.5) next--;
    const filled = Math.min(1, (busy[next]! - busy[i]!) * scale);
    let shade = Math.max(1, Math.ceil(filled * SHADES));
    let kind = category[name[i]!]!;
    if (matches !== null) {
      if (matches.between(i, next)) shade = SHADES;
      else shade = 1;
    } else if (path !== null) shade = path.between(i, next) ? SHADES : 1;
    if (runFrom >= 0 && column <= runTo && kind === runKind && shade === runShade) runTo = column + 1;
    else {
      flush();
      runFrom = column;
      runTo = column + 1;
      runKind = kind;
      runShade = shade;
    }
    i = next;
  }
  flush();
  for (const mark of [marks.hover, marks.chosen]) {
    if (mark === null || mark < spans.laneFirst[lane]! || mark >= last) continue;
    const x = (start[mark]! - look.from) * scale;
    const w = Math.max(duration[mark]! * scale, 3);
    if (x > width || x + w < 0) continue;
    c.strokeStyle = colours.text;
    c.lineWidth = mark === marks.chosen ? 2 : 1;
    const left = Math.max(x, -4);
    c.strokeRect(left, y + 0.5, Math.min(x + w, width + 4) - left, h - 1);
  }
}

function drawArrows(surface: Surface, spans: Spans, look: Look, laneY: Float64Array, scale: number, marks: Marks): number {
  const { context: c, width, height } = surface;
  const colours = theme();
  const along = (kind: number) => kind >= ALONG_PATH;
  let arrows: [number, number, number][] = [];
  if (marks.chosen !== null) {
    arrows = marks.arrows === "inside" ? spans.arrowsInside(marks.chosen) : spans.arrows(marks.chosen);
    arrows = arrows.filter(([, , kind]) => marks.path || !along(kind));
  }
  if (marks.arrows === "all" || marks.path) {
    for (let i = 0; i < spans.arrowCount && arrows.length < 400; i++) {
      const [from, to, kind] = spans.arrow(i);
      if (along(kind) ? !marks.path : marks.arrows !== "all") continue;
      if (spans.start[from]! <= look.to && spans.end(to) >= look.from && (spans.start[from]! >= look.from || spans.start[to]! <= look.to)) {
        arrows = [...arrows, [from, to, kind]];
      }
    }
  }
  for (const [from, to, kind] of arrows) {
    const y0 = laneY[spans.lane(from)]!;
    const y1 = laneY[spans.lane(to)]!;
    if (y0 < 0 || y1 < 0) continue;
    const x0 = ((kind === 2 ? spans.start[from]! : spans.end(from)) - look.from) * scale;
    const x1 = ((kind === 3 ? spans.end(to) : spans.start[to]!) - look.from) * scale;
    if (Math.max(x0, x1) < -2000 || Math.min(x0, x1) > width + 2000) continue;
    const [a, b] = [y0 + LANE / 2 - look.scroll, y1 + LANE / 2 - look.scroll];
    if (Math.max(a, b) < RULER || Math.min(a, b) > height) continue;
    const bend = Math.max(20, Math.min(120, Math.abs(x1 - x0) / 2));
    c.strokeStyle = c.fillStyle = along(kind) ? colours.text : kind === 1 ? colours.kinds[8]! : colours.accent;
    c.globalAlpha = from === marks.chosen || to === marks.chosen || marks.arrows !== "all" || along(kind) ? 1 : 0.5;
    c.lineWidth = 1.5;
    c.beginPath();
    c.moveTo(x0, a);
    c.bezierCurveTo(x0 + bend, a, x1 - bend, b, x1, b);
    c.stroke();
    c.beginPath();
    c.moveTo(x1, b);
    c.lineTo(x1 - 6, b - 3.5);
    c.lineTo(x1 - 6, b + 3.5);
    c.fill();
    c.globalAlpha = 1;
  }
  return arrows.length;
}

/** A distance between lines of 1, 2 or 5 times a power of ten, about 110 pixels wide. */
function spacing(look: Look, width: number): number {
  const rough = ((look.to - look.from) / Math.max(width, 1)) * 110;
  const power = 10 ** Math.floor(Math.log10(rough));
  return power * ([1, 2, 5, 10].find((f) => f * power >= rough) ?? 10);
}

function lines(look: Look, width: number): [number, number][] {
  const step = spacing(look, width);
  const made: [number, number][] = [];
  for (let t = Math.ceil(look.from / step) * step; t <= look.to; t += step) {
    made.push([t, ((t - look.from) / (look.to - look.from)) * width]);
  }
  return made;
}

function drawGrid({ context: c, width, height }: Surface, look: Look): void {
  c.fillStyle = theme().line;
  for (const [, x] of lines(look, width)) c.fillRect(Math.round(x), RULER, 1, height);
}

function drawRuler({ context: c, width }: Surface, look: Look): void {
  const colours = theme();
  c.fillStyle = colours.panel;
  c.fillRect(0, 0, width, RULER);
  c.fillStyle = colours.line;
  c.fillRect(0, RULER - 1, width, 1);
  const step = spacing(look, width);
  const digits = step >= 1e9 ? 0 : Math.max(0, Math.min(3, unitDigits(look.to, step)));
  for (const [t, x] of lines(look, width)) {
    c.fillStyle = colours.line;
    c.fillRect(Math.round(x), RULER - 6, 1, 6);
    c.fillStyle = colours.muted;
    c.fillText(timeText(t, digits), x + 3, RULER / 2);
  }
}

/** Digits behind the point that tell lines a step apart, in the unit of the largest time. */
function unitDigits(most: number, step: number): number {
  const unit = most >= 1e9 ? 1e9 : most >= 1e6 ? 1e6 : most >= 1e3 ? 1e3 : 1;
  return Math.ceil(-Math.log10(step / unit) - 1e-9);
}
