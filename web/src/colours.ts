// Colours: categories in, the colours of the present theme out. The values stand in style.css as --c0 ... --c9.

export const KINDS = ["op", "autograd", "optimizer", "data", "user", "module", "python", "runtime", "kernel", "copy", "communication"];

/** Categories of the overview's shares by name. */
export const SHARE_KINDS: Record<string, string> = {
  Operators: "op",
  Autograd: "autograd",
  Optimizer: "optimizer",
  "Data loading": "data",
  Python: "python",
  "Runtime calls": "runtime",
  Communication: "communication",
  Computation: "kernel",
  "Exposed communication": "communication",
  "Exposed copies": "copy",
  Idle: "idle",
};

export interface Theme {
  kinds: string[];
  text: string;
  muted: string;
  line: string;
  back: string;
  panel: string;
  accent: string;
  memory: string[];
  onColour: string;
}

let current: Theme | null = null;
const listeners = new Set<() => void>();

export function theme(): Theme {
  if (current) return current;
  const style = getComputedStyle(document.documentElement);
  const get = (name: string) => style.getPropertyValue(name).trim();
  current = {
    kinds: KINDS.map((kind) => get(`--${kind}`)),
    text: get("--text"),
    muted: get("--muted"),
    line: get("--line"),
    back: get("--back"),
    panel: get("--panel"),
    accent: get("--accent"),
    onColour: get("--on-colour"),
    memory: Array.from({ length: 9 }, (_, i) => get(`--m${i}`)),
  };
  return current;
}

/** Calls back when the colours change; returns how to stop that. */
export function onTheme(call: () => void): () => void {
  listeners.add(call);
  return () => listeners.delete(call);
}

const system = matchMedia("(prefers-color-scheme: dark)");
let chosen: "light" | "dark" | null = null;

function apply(): void {
  document.documentElement.dataset.theme = chosen ?? (system.matches ? "dark" : "light");
  current = null;
  for (const call of listeners) call();
}

apply();
system.addEventListener("change", apply);

export function chooseTheme(name: "light" | "dark"): void {
  chosen = name;
  apply();
}

export const isDark = (): boolean => document.documentElement.dataset.theme === "dark";
