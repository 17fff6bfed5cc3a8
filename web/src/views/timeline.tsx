// Timeline: threads and streams as tracks; wheel, drag, pinch and keys move and zoom; details of the chosen event.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { ViewProps } from "../app";
import { useCanvas } from "../canvas";
import { bytes, count, flops, label, spelled, time } from "../format";
import { Empty, Facts, matcher, Search, Segments, Stack } from "../parts";
import { ALONG_PATH, Matches, OnPath, recordedOnly, Spans, type Track } from "../spans";
import { useBlock, useStore } from "../store";
import { drawTimeline, HEAD, LANE, places, RULER, type Arrows, type Look } from "../timeline";

const NARROWEST = 20; // ns

export function Timeline({ trace }: ViewProps) {
  const block = useBlock("timeline", trace);
  const { recorded } = useStore();
  const spans = useMemo(() => (block ? new Spans(recorded ? recordedOnly(block) : block) : null), [block, recorded]);
  if (block === undefined) return <Empty>Loading …</Empty>;
  if (!spans || !spans.count) return <Empty>No events were recorded.</Empty>;
  return <Tracks spans={spans} />;
}

function Tracks({ spans }: { spans: Spans }) {
  const store = useStore();
  const look = useRef<Look>({ from: 0, to: spans.length, scroll: 0 });
  const [closed, setClosed] = useState(() => new Set(spans.tracks.filter((t) => t.kind === "python" && spans.tracks.length > 1)));
  const [query, setQuery] = useState("");
  const [chosen, setChosen] = useState<number | null>(null);
  const [hover, setHover] = useState<{ span: number; x: number; y: number } | null>(null);
  const [arrows, setArrows] = useState<Arrows>("own");
  const [showPath, setShowPath] = useState(false);
  const path = useMemo(() => (showPath ? new OnPath(spans.block.columns["critical_ns"]!) : null), [spans, showPath]);
  const where = useMemo(() => places(spans, closed), [spans, closed]);
  const matches = useMemo(() => {
    const test = matcher(query);
    return test ? new Matches(spans, test, query) : null;
  }, [spans, query]);

  const [ref, ask] = useCanvas((surface) => {
    look.current.scroll = surface.canvas.parentElement!.parentElement!.scrollTop;
    const began = performance.now();
    drawTimeline(surface, spans, look.current, where, { chosen, hover: hover?.span ?? null, matches, arrows, path });
    surface.canvas.dataset.from = String(look.current.from);
    surface.canvas.dataset.to = String(look.current.to);
    surface.canvas.dataset.drawn = (performance.now() - began).toFixed(2);
  });

  const box = useRef<HTMLDivElement>(null);
  const scrollTo = (y: number) => {
    // tracks that were just opened make the box higher after the next drawing only
    box.current!.scrollTop = y;
    requestAnimationFrame(() => box.current && (box.current.scrollTop = y));
  };
  const show = (from: number, to: number) => {
    const length = Math.min(Math.max(to - from, NARROWEST), spans.length * 1.02);
    const middle = (from + to) / 2;
    const low = Math.min(Math.max(middle - length / 2, -0.01 * spans.length), spans.length * 1.01 - length);
    look.current.from = low;
    look.current.to = low + length;
    ask();
  };
  const zoom = (factor: number, at = 0.5) => {
    const { from, to } = look.current;
    const fixed = from + (to - from) * at;
    show(fixed - (fixed - from) * factor, fixed + (to - fixed) * factor);
  };
  const pan = (share: number) => {
    const { from, to } = look.current;
    const step = (to - from) * share;
    show(from + step, to + step);
  };
  const reveal = (span: number, fit: boolean) => {
    const lane = spans.lane(span);
    const track = spans.track(span);
    let now = where;
    if (closed.has(track)) {
      const next = new Set(closed);
      next.delete(track);
      setClosed(next);
      now = places(spans, next);
    }
    const y = now.laneY[lane]!;
    const height = ref.current!.clientHeight;
    const seen = y - look.current.scroll;
    if (seen < RULER + HEAD || seen > height - 2 * LANE) scrollTo(y - height / 3);
    const { from, to } = look.current;
    const begin = spans.start[span]!;
    const length = Math.max(spans.duration[span]!, 1);
    if (fit) show(begin - length, begin + 2 * length);
    else if (begin > to || begin + length < from || length * (ref.current!.clientWidth / (to - from)) < 3) {
      const wide = Math.max(length * 20, 1);
      show(begin + length / 2 - wide / 2, begin + length / 2 + wide / 2);
    }
  };
  const choose = (span: number | null, fit = false) => {
    setChosen(span);
    if (span !== null) reveal(span, fit);
    ask();
  };

  // what another view asked for
  useEffect(() => {
    const wanted = store.wanted;
    if (!wanted) return;
    if (wanted.time) {
      const shift = wanted.time[1] - wanted.time[0];
      show(wanted.time[0] - shift * 0.05, wanted.time[1] + shift * 0.05);
      return;
    }
    setQuery(wanted.name);
    const found = new Matches(spans, matcher(wanted.name) ?? (() => false), wanted.name).next(-1, false);
    if (found !== null) choose(found);
    else store.say("There is no such event on this timeline");
  }, [store.wanted]);

  const seek = (back: boolean) => {
    if (!matches?.count) return;
    const now = chosen === null ? look.current.from : spans.start[chosen]!;
    const next = matches.next(now, back) ?? matches.next(back ? Infinity : -1, back);
    if (next !== null) choose(next);
  };

  const hit = (event: { clientX: number; clientY: number }): { span: number | null; track: Track | null } => {
    const canvas = ref.current!;
    const rect = canvas.getBoundingClientRect();
    const x = event.clientX - rect.left;
    const y = event.clientY - rect.top + look.current.scroll;
    if (event.clientY - rect.top < RULER) return { span: null, track: null };
    for (const { track, y: top, open } of where.placed) {
      if (y >= top && y < top + HEAD) return { span: null, track };
      const lane = track.lanes[Math.floor((y - top - HEAD) / LANE)];
      if (!open || lane === undefined || y < top + HEAD) continue;
      const { from, to } = look.current;
      const perPixel = (to - from) / rect.width;
      const at = from + x * perPixel;
      const span = spans.firstAfter(at - perPixel, lane);
      const inside = span < spans.laneFirst[lane + 1]! && spans.start[span]! <= at + perPixel;
      return { span: inside ? span : null, track: null };
    }
    return { span: null, track: null };
  };

  // wheel and touch move the page unless the listener says beforehand that it will stop them
  useEffect(() => {
    const canvas = ref.current!;
    const onWheel = (event: WheelEvent) => {
      event.preventDefault();
      const rect = canvas.getBoundingClientRect();
      const line = event.deltaMode === 1 ? 16 : 1;
      if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
        pan(((event.deltaX || event.deltaY) * line) / rect.width);
      } else {
        zoom(Math.exp(Math.max(-120, Math.min(120, event.deltaY * line)) * 0.0025), (event.clientX - rect.left) / rect.width);
      }
    };
    canvas.addEventListener("wheel", onWheel, { passive: false });
    return () => canvas.removeEventListener("wheel", onWheel);
  }, [spans, where]);

  const pointers = useRef(new Map<number, { x: number; y: number }>());
  const moved = useRef(0);
  const onPointerDown = (event: PointerEvent) => {
    pointers.current.set(event.pointerId, { x: event.clientX, y: event.clientY });
    if (pointers.current.size === 1) moved.current = 0;
    ref.current!.setPointerCapture(event.pointerId);
  };
  const onPointerMove = (event: PointerEvent) => {
    const before = pointers.current.get(event.pointerId);
    if (!before) {
      const { span } = hit(event);
      if (span !== (hover?.span ?? null) || span !== null) setHover(span === null ? null : { span, x: event.clientX, y: event.clientY });
      return;
    }
    const width = ref.current!.clientWidth;
    const others = [...pointers.current].filter(([id]) => id !== event.pointerId);
    moved.current += Math.abs(event.clientX - before.x) + Math.abs(event.clientY - before.y);
    if (others.length) {
      const other = others[0]![1];
      const apart = (p: { x: number; y: number }) => Math.max(20, Math.hypot(p.x - other.x, p.y - other.y));
      const left = ref.current!.getBoundingClientRect().left;
      zoom(apart(before) / apart({ x: event.clientX, y: event.clientY }), ((before.x + other.x) / 2 - left) / width);
    } else if (moved.current > 3) {
      box.current!.scrollTop -= event.clientY - before.y;
      pan((before.x - event.clientX) / width);
      setHover(null);
    }
    pointers.current.set(event.pointerId, { x: event.clientX, y: event.clientY });
  };
  const onPointerUp = (event: PointerEvent) => {
    const alone = pointers.current.size === 1;
    pointers.current.delete(event.pointerId);
    if (!alone || moved.current > 3 || event.type === "pointercancel") return;
    const { span, track } = hit(event);
    if (track) {
      const next = new Set(closed);
      if (!next.delete(track)) next.add(track);
      setClosed(next);
    } else {
      setChosen(span);
      ask();
    }
  };

  const step = (key: string) => {
    if (chosen === null) {
      const lane = where.placed.find((p) => p.open)?.track.lanes[0] ?? 0;
      const at = spans.firstAfter(look.current.from, lane);
      return choose(Math.min(at, spans.laneFirst[lane + 1]! - 1));
    }
    const lane = spans.lane(chosen);
    const track = spans.track(chosen);
    const place = track.lanes.indexOf(lane);
    if (key === "ArrowRight" && chosen + 1 < spans.laneFirst[lane + 1]!) choose(chosen + 1);
    if (key === "ArrowLeft" && chosen > spans.laneFirst[lane]!) choose(chosen - 1);
    const other = track.lanes[place + (key === "ArrowDown" ? 1 : -1)];
    if ((key === "ArrowDown" || key === "ArrowUp") && other !== undefined) {
      const at = spans.firstAfter(key === "ArrowDown" ? spans.start[chosen]! - 0.5 : spans.start[chosen]!, other);
      if (at < spans.laneFirst[other + 1]! && (key === "ArrowUp" || spans.start[at]! < spans.end(chosen))) choose(at);
    }
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const actions: Record<string, () => void> = {
      w: () => zoom(0.7),
      "+": () => zoom(0.7),
      s: () => zoom(1 / 0.7),
      "-": () => zoom(1 / 0.7),
      a: () => pan(-0.15),
      d: () => pan(0.15),
      f: () => chosen !== null && reveal(chosen, true),
      "0": () => show(0, spans.length),
      n: () => seek(false),
      N: () => seek(true),
      Escape: () => choose(null),
      ArrowRight: () => step("ArrowRight"),
      ArrowLeft: () => step("ArrowLeft"),
      ArrowUp: () => step("ArrowUp"),
      ArrowDown: () => step("ArrowDown"),
      PageDown: () => box.current!.scrollBy(0, 200),
      PageUp: () => box.current!.scrollBy(0, -200),
    };
    const action = event.ctrlKey || event.metaKey || event.altKey ? undefined : actions[event.key];
    if (!action) return;
    event.preventDefault();
    event.stopPropagation();
    action();
  };

  const { values } = spans.block;
  const critical = values.critical;
  const height = `min(${where.height}px, max(260px, calc(100vh - ${chosen === null ? 200 : 380}px)))`;
  return (
    <>
      <div class="controls">
        <Search
          label="Find events"
          value={query}
          onInput={setQuery}
          onEnter={seek}
          note={matches ? `${count(matches.count)} found` : undefined}
        />
        <div class="segments" role="group" aria-label="Matches">
          <button type="button" aria-label="Previous match" disabled={!matches?.count} onClick={() => seek(true)}>
            ‹
          </button>
          <button type="button" aria-label="Next match" disabled={!matches?.count} onClick={() => seek(false)}>
            ›
          </button>
        </div>
        <div class="segments" role="group" aria-label="Zoom">
          <button type="button" aria-label="Zoom out" onClick={() => zoom(1 / 0.6)}>
            −
          </button>
          <button type="button" aria-label="Zoom in" data-testid="zoom-in" onClick={() => zoom(0.6)}>
            +
          </button>
          <button type="button" data-testid="zoom-all" onClick={() => show(0, spans.length)}>
            All
          </button>
        </div>
        {spans.arrowCount > 0 && (
          <Segments
            label="Arrows"
            value={arrows}
            options={[
              ["own", "Own arrows"],
              ["inside", "And inside"],
              ["all", "All in sight"],
            ]}
            onChange={(v) => setArrows(v as Arrows)}
          />
        )}
        {critical && (
          <label class="check">
            <input
              type="checkbox"
              data-testid="critical-path"
              checked={showPath}
              onChange={(e) => {
                setShowPath(e.currentTarget.checked);
                const margin = critical.length_ns * 0.02;
                if (e.currentTarget.checked) show(critical.from_ns - margin, critical.from_ns + critical.length_ns + margin);
              }}
            />
            Critical path
          </label>
        )}
      </div>
      {values.of > values.spans && (
        <p class="muted" data-testid="thinned">
          {`Showing the ${count(values.spans)} longest of ${count(values.of)} events; events of ${time(values.least_ns)} and less are left out here. The tables count all events.`}
        </p>
      )}
      {showPath && <PathWords path={critical} />}
      <div class="canvas-box timeline" ref={box} style={{ height }} onScroll={ask}>
        <div style={{ height: `${where.height}px` }}>
        <canvas
          ref={ref}
          tabIndex={0}
          data-keys
          role="application"
          aria-label={chosen === null ? "Timeline. Keys: w s zoom, a d pan, arrows select events" : `Timeline. Selected: ${label(spans.names[spans.name[chosen]!]!)}, ${time(spans.duration[chosen]!)}`}
          data-chosen={chosen === null ? "" : label(spans.names[spans.name[chosen]!]!)}
          style={{ height }}
          onPointerDown={onPointerDown}
          onPointerMove={onPointerMove}
          onPointerUp={onPointerUp}
          onPointerCancel={onPointerUp}
          onPointerLeave={() => setHover(null)}
          onDblClick={(e) => {
            const { span } = hit(e);
            if (span !== null) choose(span, true);
          }}
          onKeyDown={onKeyDown}
        />
        </div>
      </div>
      {hover && <Tip spans={spans} {...hover} />}
      {chosen !== null ? (
        <Details spans={spans} span={chosen} choose={choose} showPath={showPath} />
      ) : (
        <p class="muted hint">Scroll to zoom, drag to pan, click to select an event, double-click to zoom to it; keys: w s a d, arrows, f, 0, n. Click a track's name to expand or collapse it.</p>
      )}
    </>
  );
}

function Tip(props: { spans: Spans; span: number; x: number; y: number }) {
  const { spans, span } = props;
  const left = Math.min(props.x + 12, window.innerWidth - 330);
  const top = props.y + 90 > window.innerHeight ? props.y - 70 : props.y + 16;
  return (
    <div class="tip" style={{ left: `${Math.max(4, left)}px`, top: `${top}px` }} aria-hidden="true">
      <b>{spelled(spans.names[spans.name[span]!]!.slice(0, 400))}</b>
      <div>{time(spans.duration[span]!)}</div>
    </div>
  );
}

/** What the critical path consists of. */
function PathWords({ path }: { path: any }) {
  const share = (ns: number) => `${((100 * ns) / path.length_ns).toFixed(1)}%`;
  const kinds = (Object.entries(path.kinds) as [string, number][]).sort((a, b) => b[1] - a[1]);
  const ops = (path.ops as [string, number, number][]).slice(0, 5);
  return (
    <p class="muted" data-testid="path-words">
      {`Critical path of ${label(path.window)}: ${time(path.length_ns)}. `}
      {kinds.map(([kind, ns]) => `${kind} ${share(ns)}`).join(", ")}
      {path.earlier_ns > 0 && `; ${time(path.earlier_ns)} in work that was launched before`}
      {`. Most of it: ${ops.map(([name, ns]) => `${label(name, 48)} ${share(ns)}`).join(", ")}.`}
      {(path.notes as string[]).map((note) => ` Note: ${label(note)}.`)}
    </p>
  );
}

function Details(props: { spans: Spans; span: number; choose(span: number, fit?: boolean): void; showPath: boolean }) {
  const { spans, span } = props;
  const store = useStore();
  const { values, columns } = spans.block;
  const name = spans.names[spans.name[span]!]!;
  const get = (field: string) => spans.column(field, span);
  const rows: [string, any][] = [
    ["Duration", time(spans.duration[span]!)],
    ["Start", time(spans.start[span]!)],
    ["Track", label(spans.track(span).label)],
  ];
  if (get("self_ns")) rows.splice(1, 0, ["Self time", time(get("self_ns"))]);
  if (get("critical_ns")) rows.push(["On the critical path", time(get("critical_ns"))]);
  if (get("synthetic")) rows.push(["Synthetic", "torch shows this op here; it ran as part of the one around it and has no time of its own"]);
  if (get("memory")) rows.push(["Memory", bytes(get("memory"))]);
  if (get("flops")) rows.push(["FLOPs", flops(get("flops"))]);
  if (get("sequence")) rows.push(["Sequence number", String(get("sequence") - 1)]);
  const inputs: string[] = get("inputs") ? values.inputs[get("inputs") - 1] : [];
  const stackId = get("stack");
  const first = columns["stack.first"];
  const frames: string[] = [];
  if (stackId && first) {
    for (let i = first[stackId - 1]!; i < first[stackId]!; i++) frames.push(values.frames[columns["stack.frame"]![i]!]);
  }
  const extra: Record<string, string> = {
    ...(get("extra") ? values.extra[get("extra") - 1] : {}),
    ...(get("device_extra") ? values.device_extra[get("device_extra") - 1] : {}),
  };
  const arrows = spans.arrows(span).filter(([, , kind]) => props.showPath || kind < ALONG_PATH);
  return (
    <aside class="details" aria-label="Details of the event">
      <div class="details-head">
        <h2 class="whole">{spelled(name)}</h2>
      </div>
      <div class="controls">
        <button type="button" onClick={() => props.choose(span, true)}>
          Zoom to fit
        </button>
        <button type="button" onClick={() => store.go("operators", { name })}>
          Operators
        </button>
        <button type="button" onClick={() => store.go("flame", { name })}>
          Flame graph
        </button>
        {arrows.slice(0, 6).map(([from, to, kind]) => {
          const other = to === span ? from : to;
          const words = kind >= ALONG_PATH ? (to === span ? "Waited for" : "Then") : kind === 1 ? (to === span ? "Launched by" : "Kernel") : to === span ? "Forward" : "Backward";
          return (
            <button key={`${from}-${to}`} type="button" onClick={() => props.choose(other)} data-testid="arrow">
              {`${words}: ${label(spans.names[spans.name[other]!]!, 40)}`}
            </button>
          );
        })}
      </div>
      <Facts rows={[...rows, ...Object.entries(extra).map(([k, v]): [string, string] => [label(k, 40), label(v)])]} />
      {inputs.length > 0 && (
        <>
          <h3>Inputs</h3>
          <ol class="inputs">
            {inputs.map((text, i) => (
              <li key={i}>{label(text)}</li>
            ))}
          </ol>
        </>
      )}
      {frames.length > 0 && (
        <>
          <h3>Stack</h3>
          <Stack frames={frames} />
        </>
      )}
    </aside>
  );
}
