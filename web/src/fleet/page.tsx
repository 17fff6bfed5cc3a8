// The page of a job: verdict, heat map, ranks, collectives, what-if, clocks, and what is missing, one below the other.
import { useEffect, useMemo, useState } from "preact/hooks";
import { chooseTheme, isDark, onTheme } from "../colours";
import type { Block, Column } from "../data";
import { bytes, count, label, percent, plural, spelled, time } from "../format";
import { Facts, Panel, Search, Segments, matcher } from "../parts";
import { sorted, Table, type Sort, type TableColumn } from "../table";
import { HeatMap, type Metric } from "./heat";

export function Fleet(props: { data: Block }) {
  const { values } = props.data;
  const [rank, setRank] = useState<number>(values.straggler ?? 0); // place of the rank that is opened
  useEffect(() => {
    document.title = `${plural(values.ranks.length, "rank")} – fleet`;
  }, []);
  return (
    <>
      <header>
        <div class="title">
          <h1>{plural(values.ranks.length, "rank")}</h1>
          <div class="tools">
            <ThemeButton />
          </div>
        </div>
      </header>
      <main id="main" class="fleet">
        <Verdict data={props.data} />
        <Heat data={props.data} rank={rank} onRank={setRank} />
        <Ranks data={props.data} rank={rank} onRank={setRank} />
        <Collectives data={props.data} />
        <WhatIf data={props.data} />
        <Clocks data={props.data} />
        <Missing data={props.data} />
      </main>
    </>
  );
}

function ThemeButton() {
  const [dark, setDark] = useState(isDark);
  useEffect(() => onTheme(() => setDark(isDark())), []);
  const name = dark ? "Light theme" : "Dark theme";
  return (
    <button type="button" class="quiet" aria-label={name} title={name} data-testid="theme" onClick={() => chooseTheme(isDark() ? "light" : "dark")}>
      {dark ? "☀" : "☾"}
    </button>
  );
}

/** The largest value; those that are not known do not count. */
function maximum(values: Column, least = 1): number {
  let most = least;
  for (const value of values) if (value > most) most = value;
  return most;
}

const rankName = (values: any, place: number): string =>
  /^\d+$/.test(values.ranks[place]) ? `rank ${values.ranks[place]}` : label(values.ranks[place], 40);

function Verdict({ data: { values } }: { data: Block }) {
  const { verdict } = values;
  const hosts = new Set(values.hosts.filter(Boolean)).size;
  const facts: [string, string][] = [
    ["Ranks", count(values.ranks.length) + (hosts ? ` on ${plural(hosts, "host")}` : "")],
    ["Steps compared", values.steps.length ? (values.steps.length > 1 ? `${values.steps.length}: ${values.steps[0]} to ${values.steps.at(-1)}` : `1: step ${values.steps[0]}`) : "none"],
    ["Events read", count(values.events)],
    ["Skew", `${(100 * values.skew_share).toFixed(1)}% of the step`],
    ["Exposed communication", `${(100 * values.exposed_share).toFixed(1)}% of the step`],
    ["Missing", count(values.missing.length)],
  ];
  return (
    <Panel title="Verdict">
      <p class={`verdict ${values.straggler == null ? "" : "slow"}`} data-testid="verdict">
        {spelled(verdict.sentence)}
      </p>
      {values.findings.map((finding: any) => (
        <p key={finding.sentence} class="finding">
          {spelled(finding.sentence)}
        </p>
      ))}
      <Facts rows={facts} />
    </Panel>
  );
}

// ---------------------------------------------------------------------------------------------------- heat map

const METRICS: [Metric, string, string][] = [
  ["wait", "Wait", "Time until the last rank came to the step's collectives. The rank that the others wait for waits least: it has the first colour of the scale."],
  ["own", "Own host", "The host's own time: the step without waiting for collectives or the device."],
  ["step", "Step", "The length of the step."],
  ["exposed", "Exposed", "Communication during which nothing else ran on the device; without a device: waiting for collectives."],
  ["idle", "Idle", "Time in which nothing ran on the device."],
];
const FEW = 40;

function Heat(props: { data: Block; rank: number; onRank(place: number): void }) {
  const { values, columns } = props.data;
  const present = METRICS.filter(([key]) => columns[`heat_${key}`]);
  const [metric, setMetric] = useState<Metric>("wait");
  const [few, setFew] = useState(false);
  const places: number[] = values.places;
  const rows = useMemo(() => {
    const all = places.map((_, i) => i);
    if (!few) return all;
    const wait = columns.rank_wait_us!;
    return all.sort((a, b) => wait[places[a]!]! - wait[places[b]!]!).slice(0, FEW).sort((a, b) => a - b);
  }, [few]);
  if (!present.length) return null;
  const help = METRICS.find(([key]) => key === metric)![2];
  return (
    <Panel title="Ranks and steps" note={help}>
      <div class="controls">
        <Segments<Metric> label="What the colour shows" value={metric} options={present.map(([key, title]) => [key, title] as const)} onChange={(key) => setMetric(key)} />
        {places.length > FEW && (
          <Segments
            label="Which ranks"
            value={few ? "few" : "all"}
            options={[
              ["all", `All ${count(places.length)}`],
              ["few", `The ${FEW} that wait least`],
            ]}
            onChange={(v) => setFew(v === "few")}
          />
        )}
      </div>
      <HeatMap
        values={columns[`heat_${metric}`]!}
        telling={metric === "wait" ? Math.min : Math.max}
        steps={values.steps}
        rows={rows}
        name={(row) => rankName(values, places[row]!)}
        marked={places.indexOf(values.straggler ?? -1)}
        active={places.indexOf(props.rank)}
        onRow={(row) => props.onRank(places[row]!)}
      />
    </Panel>
  );
}

// ---------------------------------------------------------------------------------------------------- ranks

/** The column of hosts; none if no file names its host. */
function hostColumn(values: Block["values"], width: number): TableColumn[] {
  if (!values.hosts.some(Boolean)) return [];
  return [{ key: "host", title: "Host", width, text: (r) => label(values.hosts[r], 40) }];
}

function Ranks(props: { data: Block; rank: number; onRank(place: number): void }) {
  const { values, columns } = props.data;
  const [sort, setSort] = useState<Sort>({ key: "wait", down: false });
  const [query, setQuery] = useState("");
  const of = (key: string) => columns[`rank_${key}`]!;
  const largest = (key: string) => maximum(of(key));
  const timed = (key: string, column: string, title: string, help: string): TableColumn => {
    const most = largest(column);
    return { key, title, help, width: 100, text: (r) => time(of(column)[r]!), number: (r) => of(column)[r]!, share: (r) => of(column)[r]! / most };
  };
  const table: TableColumn[] = [
    {
      key: "rank",
      title: "Rank",
      width: 170,
      text: (r) => rankName(values, r),
      content: (r) => (
        <>
          {rankName(values, r)}
          {r === values.straggler && <b class="badge">straggler</b>}
          {values.also.includes(r) && <b class="badge">also late</b>}
        </>
      ),
    },
    ...hostColumn(values, 110),
    timed("step", "step_us", "Step", "The length of a step, median"),
    timed("own", "own_us", "Own host", "The host's own time in a step, without waiting, median"),
    ...(values.has_device
      ? [
          timed("computation", "computation_us", "Computation", "Time in which kernels computed, median of the steps"),
          timed("idle", "idle_us", "Idle", "Time in which nothing ran on the device, median of the steps"),
        ]
      : []),
    timed("exposed", "exposed_us", "Exposed", "Communication during which nothing else ran, median of the steps"),
    timed("wait", "wait_us", "Wait in all", "Time until the last rank came to collectives, in all steps together"),
    {
      key: "last",
      title: "Last in",
      help: "How many collectives it came to last",
      width: 90,
      text: (r) => `${of("last_in")[r]} of ${of("collectives")[r]}`,
      number: (r) => of("last_in")[r]!,
    },
  ];
  const rows = useMemo(() => {
    const fits = matcher(query);
    const all: number[] = values.ranks.map((_: string, i: number) => i);
    const shown = fits ? all.filter((r) => fits(`${rankName(values, r)} ${values.hosts[r]} ${values.files[r]}`.toLowerCase())) : all;
    return sorted(shown, table, sort);
  }, [query, sort]);
  return (
    <Panel title="Ranks side by side" note="The rank that waits least comes first: it is the one that the others wait for, if one is. Select a rank to open it.">
      {values.ranks.length > 12 && (
        <div class="controls">
          <Search label="Rank, host or file" value={query} onInput={setQuery} note={query ? plural(rows.length, "rank") : undefined} />
        </div>
      )}
      <div class="split">
        <Table label="Ranks" columns={table} rows={rows} sort={sort} onSort={setSort} active={props.rank} onActive={props.onRank} height="420px" />
        <Opened data={props.data} rank={props.rank} />
      </div>
    </Panel>
  );
}

/** One rank beside the median rank: its phases, and the ops that take longer on it. */
function Opened(props: { data: Block; rank: number }) {
  const { values, columns } = props.data;
  const place = values.places.indexOf(props.rank);
  const n = values.places.length;
  const medians = (column: ArrayLike<number>, phases: string[]) =>
    phases.map((_, p) => {
      const all = Array.from({ length: n }, (_, r) => column[r * phases.length + p]!).sort((a, b) => a - b);
      return n ? (all[(n - 1) >> 1]! + all[n >> 1]!) / 2 : 0;
    });
  const parts = [
    { title: "Own time on the host, per step", phases: values.host_phases as string[], column: columns.phases_host! },
    { title: "Computation on the device, per step", phases: values.device_phases as string[], column: columns.phases_device! },
  ].filter((part) => part.phases.length && place >= 0);
  const per = values.ops_per_rank;
  const ops = place < 0 ? [] : Array.from({ length: per }, (_, i) => [columns.op_place![place * per + i]!, columns.op_excess![place * per + i]!] as const).filter(([, excess]) => excess > 0);
  return (
    <aside class="opened" aria-label="The selected rank" data-testid="opened">
      <h3>{rankName(values, props.rank)}</h3>
      <p class="muted file" title={values.files[props.rank]}>
        {label(values.files[props.rank], 200)}
      </p>
      {values.health[props.rank] && <p class="muted">File: {spelled(values.health[props.rank])}</p>}
      {parts.map((part) => {
        const typical = medians(part.column, part.phases);
        const own = part.phases.map((_, p) => part.column[place * part.phases.length + p]!);
        const most = Math.max(...own, ...typical, 1);
        return (
          <table class="phases" key={part.title}>
            <caption>{part.title}</caption>
            <thead>
              <tr>
                <th scope="col">Phase</th>
                <th scope="col" class="number">This rank</th>
                <th scope="col" class="number">Median rank</th>
                <th scope="col">&nbsp;</th>
              </tr>
            </thead>
            <tbody>
              {part.phases.map((phase, p) => (
                <tr key={phase}>
                  <th scope="row">{label(phase, 40)}</th>
                  <td class="number">{time(own[p]!)}</td>
                  <td class="number muted">{time(typical[p]!)}</td>
                  <td class="pair">
                    <span class="own" style={{ width: `${(100 * own[p]!) / most}%` }} />
                    <span class="typical" style={{ width: `${(100 * typical[p]!) / most}%` }} />
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        );
      })}
      {ops.length > 0 && (
        <>
          <h3>Takes longer than on the median rank, per step</h3>
          <ol class="ops">
            {ops.map(([op, excess]) => (
              <li key={op}>
                <b>+{time(excess)}</b> {label(values.ops[op][1], 120)} <span class="muted">{label(values.ops[op][0], 40)}</span>
              </li>
            ))}
          </ol>
        </>
      )}
    </aside>
  );
}

// ---------------------------------------------------------------------------------------------------- collectives

function Collectives({ data: { values, columns } }: { data: Block }) {
  const [sort, setSort] = useState<Sort>({ key: "skew", down: true });
  const [query, setQuery] = useState("");
  const of = (key: string) => columns[`collective_${key}`]!;
  const text = (key: string, row: number): string => values.texts[of(key)[row]!];
  const skews = of("skew_us");
  const most = useMemo(() => maximum(skews), []);
  const known = (value: number, shown: (value: number) => string) => (value < 0 ? "" : shown(value));
  const table: TableColumn[] = [
    { key: "name", title: "Collective", width: 130, text: (r) => label(text("name", r), 60) },
    { key: "group", title: "Group", width: 100, text: (r) => label(text("group", r), 40) },
    { key: "seq", title: "Number", help: "The sequence number in its group", width: 80, text: (r) => count(of("seq")[r]!), number: (r) => of("seq")[r]! },
    { key: "step", title: "Step", width: 70, text: (r) => known(of("step")[r]!, String), number: (r) => of("step")[r]! },
    { key: "bytes", title: "Message", width: 100, text: (r) => known(of("bytes")[r]!, bytes), number: (r) => of("bytes")[r]! },
    { key: "ranks", title: "Ranks", width: 70, text: (r) => count(of("ranks")[r]!), number: (r) => of("ranks")[r]! },
    { key: "skew", title: "Skew", help: "From the first rank's arrival to the last one's", width: 110, text: (r) => time(skews[r]!), number: (r) => skews[r]!, share: (r) => skews[r]! / most },
    { key: "wait", title: "Mean wait", width: 100, text: (r) => time(of("mean_wait_us")[r]!), number: (r) => of("mean_wait_us")[r]! },
    { key: "transfer", title: "Transfer", help: "The shortest duration over its ranks", width: 100, text: (r) => time(of("transfer_us")[r]!), number: (r) => of("transfer_us")[r]! },
    { key: "bus", title: "Bus GB/s", help: "Bus bandwidth", width: 90, text: (r) => known(of("bus_gb_s")[r]!, (v) => v.toFixed(2)), number: (r) => of("bus_gb_s")[r]! },
    { key: "last", title: "Last rank", width: 90, text: (r) => label(text("last_rank", r), 40) },
  ];
  const rows = useMemo(() => {
    const fits = matcher(query);
    const all = Array.from(skews, (_, i) => i);
    const shown = fits ? all.filter((r) => fits(`${text("name", r)} ${text("group", r)} rank ${text("last_rank", r)}`.toLowerCase())) : all;
    return sorted(shown, table, sort);
  }, [query, sort]);
  if (!skews.length) {
    return (
      <Panel title="Collectives">
        <p class="empty">No collectives that at least two ranks have.</p>
      </Panel>
    );
  }
  const types: TableColumn[] = [
    { key: "name", title: "Type", width: 130, text: (r) => label(values.collective_types[r].name, 60) },
    ...(
      [
        ["count", "Count", count, 1],
        ["bytes", "Bytes in all", bytes, 1],
        ["skew_us", "Median skew", time, 1e3],
        ["mean_wait_us", "Median wait", time, 1e3],
        ["transfer_us", "Median transfer", time, 1e3],
        ["total_transfer_us", "Transfer in all", time, 1e3],
        ["bus_gb_s", "Bus GB/s", (v: number) => v.toFixed(2), 1],
      ] as [string, string, (v: number) => string, number][]
    ).map(([key, title, shown, scale]) => ({
      key,
      title,
      width: 110,
      text: (r: number) => (values.collective_types[r][key] == null ? "" : shown(values.collective_types[r][key] * scale)),
      number: (r: number) => values.collective_types[r][key] ?? 0,
    })),
  ];
  const left = values.collectives_left_out ? ` Of ${count(skews.length + values.collectives_left_out)}, those with the largest skew.` : "";
  const unmatched = values.unmatched ? ` ${plural(values.unmatched, "collective")} of single ranks had no counterpart.` : "";
  return (
    <Panel title="Collectives" note={`Matched by ${values.matched_by.join(" and ")}.${unmatched}${left}`}>
      <Table label="Types of collectives" columns={types} rows={values.collective_types.map((_: unknown, i: number) => i)} />
      <div class="controls below">
        <Search label="Type, group or last rank" value={query} onInput={setQuery} note={query ? plural(rows.length, "collective") : undefined} />
      </div>
      <Table label="Collectives" columns={table} rows={rows} sort={sort} onSort={setSort} height="360px" />
    </Panel>
  );
}

// ---------------------------------------------------------------------------------------------------- what if, clocks, missing

function WhatIf({ data: { values } }: { data: Block }) {
  const whatIf = values.what_if;
  if (!whatIf) return null;
  const groups: [string, [string, number][]][] = [
    ["Rank", whatIf.by_rank.map((row: any) => [/^\d+$/.test(row.rank) ? `rank ${row.rank}` : String(row.rank), row.us])],
    ["Phase", whatIf.by_stage.map((row: any) => [row.stage, row.us])],
    ["Op", whatIf.by_op.map((row: any) => [row.op, row.us])],
  ];
  const most = Math.max(1e-9, ...groups.flatMap(([, rows]) => rows.map(([, us]) => us)));
  return (
    <Panel
      title="What if"
      note={`If every op took its median over the ranks, a step would take ${time(whatIf.ideal_step_us * 1e3)} instead of ${time(whatIf.step_us * 1e3)} (${percent(whatIf.step_us - whatIf.ideal_step_us, whatIf.step_us)} less). By how much a step is shorter if only this had its median:`}
    >
      <div class="thirds">
        {groups.map(([title, rows]) => (
          <table class="phases" key={title}>
            <caption>{title}</caption>
            <tbody>
              {rows.slice(0, 8).map(([name, us]) => (
                <tr key={name}>
                  <th scope="row" title={name}>
                    {label(name, 60)}
                  </th>
                  <td class="number">{time(us * 1e3)}</td>
                  <td class="pair">
                    <span class="own" style={{ width: `${(100 * us) / most}%` }} />
                  </td>
                </tr>
              ))}
              {rows.length === 0 && (
                <tr>
                  <td class="muted">nothing</td>
                </tr>
              )}
            </tbody>
          </table>
        ))}
      </div>
    </Panel>
  );
}

function Clocks({ data: { values, columns } }: { data: Block }) {
  const [sort, setSort] = useState<Sort>({ key: "residual", down: true });
  const offset = columns.clock_offset_us!;
  const drift = columns.clock_drift_ppm!;
  const residual = columns.clock_residual_us!;
  const known = (value: number, text: (value: number) => string) => (Number.isNaN(value) ? "not known" : text(value));
  const size = (value: number) => (Number.isNaN(value) ? -1 : Math.abs(value));
  const most = maximum(residual, 1e-9);
  const table: TableColumn[] = [
    { key: "rank", title: "Rank", width: 120, text: (r) => rankName(values, r) },
    ...hostColumn(values, 120),
    { key: "offset", title: "Ahead by", width: 120, text: (r) => known(offset[r]!, (v) => time(v * 1e3)), number: (r) => size(offset[r]!) },
    { key: "drift", title: "Drift, ppm", width: 100, text: (r) => known(drift[r]!, (v) => v.toFixed(2)), number: (r) => size(drift[r]!) },
    { key: "residual", title: "Residual", help: "How far its ends of collectives are from the common ones after correction, median", width: 120, text: (r) => known(residual[r]!, (v) => time(v * 1e3)), number: (r) => size(residual[r]!), share: (r) => (Number.isNaN(residual[r]!) ? 0 : residual[r]! / most) },
  ];
  const rows = useMemo(() => sorted(Array.from(offset, (_, i) => i), table, sort), [sort]);
  return (
    <Panel
      title="Clocks"
      note="How far each rank's clock is ahead of the first rank's, from the ends of collectives that synchronise. Skew and waits are corrected by it, and nothing else is. They are no better than the residual."
    >
      <Table label="Clocks" columns={table} rows={rows} sort={sort} onSort={setSort} height="300px" />
    </Panel>
  );
}

function Missing({ data: { values } }: { data: Block }) {
  if (!values.missing.length && !values.notes.length) return null;
  const table: TableColumn[] = [
    { key: "what", title: "File or rank", width: 320, text: (r) => spelled(values.missing[r].file ?? (values.missing[r].rank == null ? "ranks" : `rank ${values.missing[r].rank}`)) },
    { key: "reason", title: "Reason", width: 480, text: (r) => spelled(values.missing[r].reason) },
  ];
  return (
    <Panel title="Missing, and what to know">
      {values.missing.length > 0 && <Table label="Missing files and ranks" columns={table} rows={values.missing.map((_: unknown, i: number) => i)} height="300px" />}
      {values.notes.map((note: string) => (
        <p key={note}>{spelled(note)}</p>
      ))}
    </Panel>
  );
}
