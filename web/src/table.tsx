// A table of any length: columns and row numbers in; sorting, bars in cells, and only the rows that are seen drawn.
import { elementScroll, observeElementOffset, observeElementRect, Virtualizer } from "@tanstack/virtual-core";
import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";

export interface TableColumn {
  key: string;
  title: string;
  help?: string;
  width: number;
  text(row: number): string;
  number?(row: number): number; // sorts, and makes the column one of numbers
  exact?(row: number): string; // for CSV
  share?(row: number): number; // length of the cell's bar, 0 ... 1
  tone?(row: number): string; // class of the cell
  content?(row: number): ComponentChildren;
}

export interface Sort {
  key: string;
  down: boolean;
}

interface Props {
  label: string;
  columns: TableColumn[];
  rows: number[];
  sort?: Sort | null;
  onSort?(sort: Sort): void;
  active?: number | null; // a row's number
  onActive?(row: number): void;
  onEnter?(row: number): void;
  onKey?(event: KeyboardEvent, row: number): void;
  height?: string;
  empty?: string;
}

const ROW = 29;
const narrow = () => window.innerWidth < 600;

export function sorted(rows: number[], columns: TableColumn[], sort: Sort | null | undefined): number[] {
  const column = sort && columns.find((c) => c.key === sort.key);
  if (!column) return rows;
  const sign = sort.down ? -1 : 1;
  const { number, text } = column;
  if (number) return [...rows].sort((a, b) => sign * (number(a) - number(b)) || a - b);
  const texts = new Map(rows.map((r) => [r, text(r)]));
  return [...rows].sort((a, b) => sign * compare(texts.get(a)!, texts.get(b)!) || a - b);
}

const compare = (a: string, b: string) => (a < b ? -1 : a > b ? 1 : 0);

export function Table(props: Props) {
  const { columns, rows, sort, active } = props;
  const box = useRef<HTMLDivElement>(null);
  const [, redraw] = useState(0);
  const virtual = useMemo(
    () =>
      new Virtualizer<HTMLDivElement, Element>({
        count: 0,
        getScrollElement: () => box.current,
        estimateSize: () => ROW,
        overscan: 8,
        scrollToFn: elementScroll,
        observeElementRect,
        observeElementOffset,
        onChange: () => redraw((n) => n + 1),
      }),
    [],
  );
  virtual.setOptions({ ...virtual.options, count: rows.length });
  useEffect(() => virtual._didMount(), []);
  useLayoutEffect(() => virtual._willUpdate());

  const items = virtual.getVirtualItems();
  const before = items[0]?.start ?? 0;
  const after = Math.max(0, virtual.getTotalSize() - (items.at(-1)?.end ?? 0));
  // on a phone the names, which stay in sight, must leave room for a number beside them
  const widths = columns.map((c, i) => (i === 0 && narrow() ? Math.min(c.width, 170) : c.width));
  const width = widths.reduce((sum, w) => sum + w, 0);

  const onKeyDown = (event: KeyboardEvent) => {
    if (!box.current || event.target !== box.current) return;
    const at = active == null ? -1 : rows.indexOf(active);
    const page = Math.max(1, Math.floor((box.current.clientHeight - ROW) / ROW) - 1);
    const moves: Record<string, number> = {
      ArrowDown: at + 1,
      ArrowUp: at - 1,
      PageDown: at + page,
      PageUp: at - page,
      Home: 0,
      End: rows.length - 1,
    };
    const to = moves[event.key];
    if (to !== undefined && rows.length) {
      event.preventDefault();
      const next = Math.min(rows.length - 1, Math.max(0, to));
      props.onActive?.(rows[next]!);
      virtual.scrollToIndex(next, { align: "auto" });
    } else if (event.key === "Enter" && at >= 0) {
      event.preventDefault();
      props.onEnter?.(active!);
    } else if (at >= 0) {
      props.onKey?.(event, active!);
    }
  };

  return (
    <div
      class="table-box"
      ref={box}
      tabIndex={0}
      data-keys
      role="region"
      aria-label={`${props.label}: ${rows.length} rows`}
      onKeyDown={onKeyDown}
      style={{ maxHeight: props.height ?? "none" }}
    >
      <table style={{ minWidth: `${width}px` }} aria-rowcount={rows.length + 1}>
        <colgroup>
          {columns.map((c, i) => (
            <col key={c.key} style={{ width: `${(100 * widths[i]!) / width}%` }} />
          ))}
        </colgroup>
        <thead>
          <tr>
            {columns.map((c) => {
              const on = sort?.key === c.key;
              return (
                <th
                  key={c.key}
                  scope="col"
                  class={c.number ? "number" : ""}
                  aria-sort={on ? (sort.down ? "descending" : "ascending") : undefined}
                  title={c.help}
                >
                  {props.onSort ? (
                    <button
                      type="button"
                      data-key={c.key}
                      onClick={() => props.onSort!({ key: c.key, down: on ? !sort.down : !!c.number })}
                    >
                      {c.title}
                      <span class="arrow" aria-hidden="true">
                        {on ? (sort.down ? "▼" : "▲") : ""}
                      </span>
                    </button>
                  ) : (
                    <span>{c.title}</span>
                  )}
                </th>
              );
            })}
          </tr>
        </thead>
        <tbody>
          {before > 0 && (
            <tr class="space" aria-hidden="true">
              <td colSpan={columns.length} style={{ height: `${before}px` }} />
            </tr>
          )}
          {items.map((item) => {
            const row = rows[item.index]!;
            return (
              <tr
                key={row}
                aria-rowindex={item.index + 2}
                aria-selected={row === active ? "true" : undefined}
                class={row === active ? "active" : ""}
                onClick={() => props.onActive?.(row)}
                onDblClick={() => props.onEnter?.(row)}
              >
                {columns.map((c, i) => cell(c, row, i))}
              </tr>
            );
          })}
          {after > 0 && (
            <tr class="space" aria-hidden="true">
              <td colSpan={columns.length} style={{ height: `${after}px` }} />
            </tr>
          )}
        </tbody>
      </table>
      {rows.length === 0 && <p class="empty">{props.empty ?? "No rows."}</p>}
    </div>
  );
}

function cell(c: TableColumn, row: number, place: number) {
  const text = c.text(row);
  const share = c.share?.(row);
  const zero = c.number && c.number(row) === 0 ? "zero" : "";
  const classes = [c.number ? "number" : "name", zero, c.tone?.(row) ?? ""].join(" ").trim();
  const content = c.content ? c.content(row) : text;
  const Cell = place === 0 ? "th" : "td";
  return (
    <Cell key={c.key} class={classes} scope={place === 0 ? "row" : undefined} title={c.number ? undefined : (c.exact ?? c.text)(row)}>
      {share !== undefined && share > 0.002 && (
        <span class="bar" aria-hidden="true" style={{ width: `calc(${Math.min(100, 100 * share).toFixed(2)}% - 6px)` }} />
      )}
      <span class="cell">{content}</span>
    </Cell>
  );
}
