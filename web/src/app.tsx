// The frame of the page: header, views as tabs, keys.
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { chooseTheme, isDark, onTheme } from "./colours";
import { block, traceCount, type Block } from "./data";
import { label, plural, spelled } from "./format";
import { Segments } from "./parts";
import { StoreContext, VIEWS, type Store, type View, type Wanted, type Which } from "./store";
import { Compare } from "./views/compare";
import { Device } from "./views/device";
import { Flame } from "./views/flame";
import { Memory } from "./views/memory";
import { Modules } from "./views/modules";
import { Operators } from "./views/operators";
import { Overview } from "./views/overview";
import { Roofline } from "./views/roofline";
import { Timeline } from "./views/timeline";

export interface ViewProps {
  trace: number;
  summary: Block;
}

const TITLES: Record<View, string> = {
  overview: "Overview",
  operators: "Operators",
  flame: "Flame graph",
  timeline: "Timeline",
  memory: "Memory",
  modules: "Modules",
  device: "Device",
  roofline: "Roofline",
  compare: "Compare",
};

const COMPONENTS = {
  overview: Overview,
  operators: Operators,
  flame: Flame,
  timeline: Timeline,
  memory: Memory,
  modules: Modules,
  device: Device,
  roofline: Roofline,
};

function viewsOf(summaries: Block[]): View[] {
  if (summaries[0]!.values.views === "memory") return ["memory"];
  const any = (what: string) => summaries.some((s) => s.values.has[what]);
  return VIEWS.filter((v) => {
    if (v === "compare") return summaries.length > 1;
    if (v === "memory") return any("memory");
    if (v === "modules") return any("modules");
    if (v === "device") return any("device");
    if (v === "roofline") return summaries.some((s) => s.values.roofline);
    return true;
  });
}

/** A key that nothing else took goes to the view's table or canvas, as if that had the focus: no click is needed first. */
function passOn(event: KeyboardEvent, main: HTMLElement | null): void {
  const target = event.target as HTMLElement;
  const taken = event.defaultPrevented || target.closest("[data-keys]") || (/^(Enter| )$/.test(event.key) && target.closest("button, a, summary"));
  const receiver = taken || event.key === "Tab" ? null : main?.querySelector<HTMLElement>("[data-keys]");
  if (!receiver) return;
  const { key, shiftKey } = event;
  if (!receiver.dispatchEvent(new KeyboardEvent("keydown", { key, shiftKey, bubbles: true, cancelable: true }))) {
    event.preventDefault();
    receiver.focus({ preventScroll: true });
  }
}

export function App(props: { summaries: Block[] }) {
  const [summaries, setSummaries] = useState(props.summaries);
  const [recorded, setRecorded] = useState(false);
  const synthetic = props.summaries.reduce((sum, s) => sum + (s.values.synthetic ?? 0), 0);
  const show = async (onlyRecorded: boolean) => {
    const blocks = await Promise.all(props.summaries.map((_, i) => block("summary", i, onlyRecorded)));
    setSummaries(blocks as Block[]);
    setRecorded(onlyRecorded);
  };
  const views = useMemo(() => viewsOf(summaries), []);
  const fromHash = () => {
    const name = location.hash.slice(1) as View;
    return views.includes(name) ? name : views[0]!;
  };
  const [view, setView] = useState<View>(fromHash);
  const [which, setWhich] = useState<Which>(traceCount() > 1 ? "both" : 0);
  const [wanted, setWanted] = useState<Wanted | null>(null);
  const [said, setSaid] = useState("");
  const [help, setHelp] = useState(false);
  const main = useRef<HTMLElement>(null);
  const toggle = useRef<HTMLInputElement>(null);

  const store: Store = {
    view,
    which,
    recorded,
    wanted,
    go(next, what = null) {
      if (!views.includes(next)) return;
      setWanted(what);
      setView(next);
      if (location.hash.slice(1) !== next) location.hash = next;
      window.scrollTo(0, 0);
    },
    say(text) {
      setSaid(text);
      window.setTimeout(() => setSaid((now) => (now === text ? "" : now)), 3000);
    },
  };

  useLayoutEffect(() => {
    const onHash = () => {
      setView((now) => {
        const next = fromHash();
        if (next !== now) setWanted(null);
        return next;
      });
    };
    const onKey = (event: KeyboardEvent) => {
      const target = event.target as HTMLElement;
      if (!event.isTrusted || event.ctrlKey || event.metaKey || event.altKey || /^(INPUT|SELECT|TEXTAREA)$/.test(target.tagName)) return;
      const number = Number(event.key);
      if (number >= 1 && number <= views.length) store.go(views[number - 1]!);
      else if (event.key === "?") setHelp((on) => !on);
      else if (event.key === "r" && synthetic) toggle.current?.click();
      else if (event.key === "Escape") setHelp(false);
      else if (event.key === "/") {
        const field = main.current?.querySelector<HTMLInputElement>("input[type=search]");
        if (field) {
          event.preventDefault();
          field.focus();
        }
      } else passOn(event, main.current);
    };
    window.addEventListener("hashchange", onHash);
    window.addEventListener("keydown", onKey);
    return () => {
      window.removeEventListener("hashchange", onHash);
      window.removeEventListener("keydown", onKey);
    };
  }, []);

  const both = summaries.length > 1;
  const shown: number[] = !both ? [0] : which === "both" ? [0, 1] : [which];
  const View = view === "compare" ? null : COMPONENTS[view];

  return (
    <StoreContext.Provider value={store}>
      <a class="skip" href="#main" onClick={(e) => (e.preventDefault(), main.current?.focus())}>
        Skip to content
      </a>
      <header>
        <div class="title">
          <h1 title={summaries.map((s) => spelled(s.values.label)).join(" · ")}>
            {both ? `${label(summaries[0]!.values.label, 60)} → ${label(summaries[1]!.values.label, 60)}` : label(summaries[0]!.values.label, 120)}
          </h1>
          <div class="tools">
            {synthetic > 0 && (
              <label class="switch" title={`Hide ${plural(synthetic, "synthetic event")}: ops that torch shows inside others and that ran as part of one kernel (r)`}>
                <input type="checkbox" ref={toggle} checked={recorded} data-testid="as-recorded" onChange={(e) => show(e.currentTarget.checked)} />
                As recorded
              </label>
            )}
            <button type="button" class="quiet" aria-label="Keyboard shortcuts" aria-expanded={help} title="Keyboard shortcuts (?)" onClick={() => setHelp(!help)}>
              ?
            </button>
            <ThemeButton />
          </div>
        </div>
        {views.length > 1 && <Tabs views={views} view={view} go={store.go} />}
      </header>
      {help && <Help views={views} synthetic={synthetic > 0} close={() => setHelp(false)} />}
      <main id="main" ref={main} tabIndex={-1}>
        {both && view !== "compare" && (
          <div class="controls">
            <Segments
              label="Trace"
              value={String(which)}
              options={[
                ["both", "Side by side"],
                ["0", `A: ${label(summaries[0]!.values.label, 28)}`],
                ["1", `B: ${label(summaries[1]!.values.label, 28)}`],
              ]}
              onChange={(v) => setWhich(v === "both" ? "both" : (Number(v) as Which))}
            />
          </div>
        )}
        <div id="view" role="tabpanel" aria-label={TITLES[view]} class={`view view-${view} ${shown.length > 1 && View ? "two" : ""}`}>
          {View ? (
            shown.map((trace) => (
              <div class="side" key={`${view}-${trace}-${recorded}`} data-trace={trace}>
                {shown.length > 1 && (
                  <p class="which">
                    <b>{"AB"[trace]}</b> {label(summaries[trace]!.values.label, 80)}
                  </p>
                )}
                <View trace={trace} summary={summaries[trace]!} />
              </div>
            ))
          ) : (
            <Compare key={String(recorded)} summaries={summaries} />
          )}
        </div>
      </main>
      <div class={`said ${said ? "on" : ""}`} role="status">
        {said}
      </div>
    </StoreContext.Provider>
  );
}

function Tabs(props: { views: View[]; view: View; go(view: View): void }) {
  const list = useRef<HTMLElement>(null);
  useEffect(() => {
    // on a phone not all fit
    const tab = list.current!.querySelector<HTMLElement>("[aria-selected=true]")!;
    list.current!.scrollLeft = tab.offsetLeft - (list.current!.clientWidth - tab.offsetWidth) / 2;
  }, [props.view]);
  const onKeyDown = (event: KeyboardEvent) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const next = props.views[(props.views.indexOf(props.view) + step + props.views.length) % props.views.length]!;
    props.go(next);
    list.current!.querySelector<HTMLElement>(`[data-view=${next}]`)?.focus();
  };
  return (
    <nav role="tablist" aria-label="Views" ref={list} onKeyDown={onKeyDown}>
      {props.views.map((v) => (
        <button
          key={v}
          type="button"
          role="tab"
          data-view={v}
          aria-selected={v === props.view}
          aria-controls="view"
          tabIndex={v === props.view ? 0 : -1}
          onClick={() => props.go(v)}
        >
          {TITLES[v]}
        </button>
      ))}
    </nav>
  );
}

function ThemeButton() {
  const [dark, setDark] = useState(isDark);
  useEffect(() => onTheme(() => setDark(isDark())), []);
  return (
    <button
      type="button"
      class="quiet"
      aria-label={dark ? "Light theme" : "Dark theme"}
      title={dark ? "Light theme" : "Dark theme"}
      data-testid="theme"
      onClick={() => chooseTheme(isDark() ? "light" : "dark")}
    >
      {dark ? "☀" : "☾"}
    </button>
  );
}

function Help(props: { views: View[]; synthetic: boolean; close(): void }) {
  const keys: [string, string][] = [
    [`1 – ${props.views.length}`, props.views.map((v) => TITLES[v]).join(", ")],
    ["/", "search or filter"],
    ["↑ ↓ Page Home End", "move in a table or tree; Enter opens the flame graph, t the timeline"],
    ["Flame graph", "← → ↑ ↓ move, Enter zooms in, Escape zooms out"],
    ["Timeline", "w s zoom, a d pan, f zooms to the selected event, 0 shows all, n N next and previous match, ← → ↑ ↓ select another event"],
    ...(props.synthetic ? ([["r", "show only what was recorded, or synthetic events too"]] as [string, string][]) : []),
    ["?", "show or hide this list"],
  ];
  return (
    <div class="help" role="dialog" aria-label="Keyboard shortcuts">
      <dl>
        {keys.map(([key, text]) => (
          <div key={key}>
            <dt>{key}</dt>
            <dd>{text}</dd>
          </div>
        ))}
      </dl>
      <button type="button" onClick={props.close}>
        Close
      </button>
    </div>
  );
}
