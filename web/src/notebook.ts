// The small table of notebooks: rows in; sorting by a click on a title and filtering while typing out. Runs alone in a frame.
import { block, type Block } from "./data";
import { bytes, count, flops, label, rememberShortNames, spelled, time } from "./format";
import { Rows } from "./rows";

const COLUMNS: [string, string, (n: number) => string][] = [
  ["self_device_ns", "Self device", time],
  ["device_ns", "Device total", time],
  ["self_ns", "Self CPU", time],
  ["total_ns", "CPU total", time],
  ["count", "Calls", count],
  ["self_memory", "Self CPU mem", bytes],
  ["flops", "FLOPs", flops],
];

function make<K extends keyof HTMLElementTagNameMap>(tag: K, text = "", into?: Element): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  element.textContent = text;
  into?.append(element);
  return element;
}

function show(summary: Block): void {
  const root = document.getElementById("app")!;
  root.textContent = "";
  rememberShortNames(summary.values.short_names);
  const rows = new Rows(summary, "name");
  const columns = COLUMNS.filter(([field]) => rows.has(field));
  const bar = make("div", "", root);
  bar.className = "bar-top";
  const field = make("input", "", bar);
  field.type = "search";
  field.placeholder = "Filter operators";
  field.setAttribute("aria-label", "Filter operators");
  const note = make("span", "", bar);
  const table = make("table", "", root);
  const head = make("tr", "", make("thead", "", table));
  const body = make("tbody", "", table);
  let sort = { field: rows.has("self_device_ns") ? "self_device_ns" : "self_ns", down: true };

  const draw = () => {
    const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
    const sign = sort.down ? -1 : 1;
    const found = Array.from({ length: rows.length }, (_, i) => i).filter((r) => words.every((w) => `${rows.name(r)} ${label(rows.name(r))}`.toLowerCase().includes(w)));
    found.sort((a, b) =>
      sort.field === "name" ? sign * (rows.name(a) < rows.name(b) ? -1 : 1) : sign * (rows.get(sort.field, a) - rows.get(sort.field, b)) || a - b,
    );
    const shown = found.slice(0, 500);
    note.textContent = `${count(found.length)} of ${count(rows.length)}${summary.values.health ? ` · Incomplete: ${spelled(summary.values.health)}` : ""}`;
    body.replaceChildren(
      ...shown.map((r) => {
        const line = document.createElement("tr");
        const name = make("th", label(rows.name(r), 120), line);
        name.title = spelled(rows.name(r));
        for (const [column, , text] of columns) make("td", text(rows.get(column, r)), line);
        return line;
      }),
    );
    for (const cell of head.children) {
      const on = (cell as HTMLElement).dataset.field === sort.field;
      if (on) cell.setAttribute("aria-sort", sort.down ? "descending" : "ascending");
      else cell.removeAttribute("aria-sort");
    }
  };
  for (const [column, title] of [["name", "Name"], ...columns] as [string, string][]) {
    const cell = make("th", "", head);
    cell.dataset.field = column;
    make("button", title, cell).addEventListener("click", () => {
      sort = { field: column, down: sort.field === column ? !sort.down : column !== "name" };
      draw();
    });
  }
  field.addEventListener("input", draw);
  draw();
}

block("summary", 0).then((summary) => show(summary!));
