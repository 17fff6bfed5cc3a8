// Small parts that several views use.
import type { ComponentChildren } from "preact";
import { spelled } from "./format";

export function Segments<T extends string>(props: {
  label: string;
  value: T;
  options: readonly (readonly [T, string])[];
  onChange(value: T): void;
}) {
  return (
    <div class="segments" role="group" aria-label={props.label}>
      {props.options.map(([value, text]) => (
        <button
          key={value}
          type="button"
          aria-pressed={value === props.value}
          data-value={value}
          onClick={() => props.onChange(value)}
        >
          {text}
        </button>
      ))}
    </div>
  );
}

export function Search(props: { label: string; value: string; onInput(text: string): void; note?: string; onEnter?(back: boolean): void }) {
  return (
    <label class="search">
      <span class="offscreen">{props.label}</span>
      <input
        type="search"
        placeholder={props.label}
        value={props.value}
        spellcheck={false}
        autocomplete="off"
        onInput={(e) => props.onInput(e.currentTarget.value)}
        onKeyDown={(e) => {
          if (e.key === "Enter") props.onEnter?.(e.shiftKey);
          if (e.key === "Escape") {
            props.onInput("");
            e.currentTarget.blur();
          }
        }}
      />
      {props.note && (
        <span class="note" aria-live="polite">
          {props.note}
        </span>
      )}
    </label>
  );
}

export function Panel(props: { title: string; note?: ComponentChildren; children: ComponentChildren; class?: string }) {
  return (
    <section class={`panel ${props.class ?? ""}`}>
      <h2>{props.title}</h2>
      {props.note && <p class="muted">{props.note}</p>}
      {props.children}
    </section>
  );
}

export function Facts(props: { rows: [string, ComponentChildren][] }) {
  return (
    <dl class="facts">
      {props.rows.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

export function Stack(props: { frames: string[] }) {
  return (
    <ol class="stack">
      {props.frames.map((frame, i) => (
        <li key={i}>{spelled(frame)}</li>
      ))}
    </ol>
  );
}

export function Empty(props: { children: ComponentChildren }) {
  return <p class="empty">{props.children}</p>;
}

/** Splits what is typed into words that all must occur; the test takes lower-case text. */
export function matcher(query: string): ((text: string) => boolean) | null {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  return words.length ? (text) => words.every((w) => text.includes(w)) : null;
}
