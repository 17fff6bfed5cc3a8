// Overview: where the time went, in one look.
import type { ViewProps } from "../app";
import { SHARE_KINDS } from "../colours";
import { bytes, count, label, percent, plural, spelled, time } from "../format";
import { Facts, Panel } from "../parts";
import { onDevice, Rows } from "../rows";
import { useStore } from "../store";

type Share = { label: string; parts: [string, number][] };
type Step = [string, number, number];

export function Overview({ summary }: ViewProps) {
  const { values } = summary;
  const rows = new Rows(summary, "name");
  const steps: Step[] = values.steps;
  return (
    <>
      <Tiles values={values} rows={rows} steps={steps} />
      <p class={`health ${values.complete ? "fine" : "poor"}`} role="note">
        {values.complete ? "The recording is complete: no events were dropped, truncated or repaired." : `Incomplete: ${label(values.health, 600)}`}
      </p>
      <div class="grid">
        <Panel title="Share of wall time">
          {(values.shares as Share[]).map((s) => (
            <ShareBar key={s.label} share={s} />
          ))}
        </Panel>
        {rows.has("self_device_ns") && <TopOps rows={rows} field="self_device_ns" title="Kernels by device time" />}
        <TopOps rows={rows} field="self_ns" title="Operators by self CPU time" />
        {steps.length > 0 && <Steps steps={steps} wide={rows.has("self_device_ns") || steps.length > 30} />}
        <Panel title="Recording" class="wide">
          <Facts rows={(values.facts as [string, string][]).map(([k, v]) => [k, label(v)])} />
        </Panel>
      </div>
    </>
  );
}

function Tiles(props: { values: any; rows: Rows; steps: Step[] }) {
  const { values, rows, steps } = props;
  const tiles: [string, string, string][] = [
    ["Wall time", time(values.wall_ns), ""],
    ["Self CPU time", time(rows.sum("self_ns")), "sum over threads"],
    ["Calls", count(rows.sum("count")), plural(rows.length, "name") + (rows.has("synthetic") ? `, ${count(rows.sum("synthetic"))} calls synthetic` : "")],
  ];
  if (steps.length) {
    const times = steps.map((s) => s[2]).sort((a, b) => a - b);
    const middle = times[Math.floor(times.length / 2)]!;
    tiles.push(["Median step", time(middle), plural(steps.length, "step")]);
  }
  if (values.peaks) {
    for (const [where, peak] of values.peaks as [string, number][]) tiles.push([`Peak memory, ${where}`, bytes(peak), ""]);
  }
  if (rows.has("self_device_ns")) {
    const device = (values.shares as Share[])[1];
    tiles.push([
      `${values.device.toUpperCase()} busy`,
      device ? percent(device.parts.reduce((sum, [n, t]) => sum + (n === "Idle" ? 0 : t), 0), values.wall_ns) : "–",
      device?.label ?? "",
    ]);
  }
  return (
    <div class="tiles">
      {tiles.map(([title, value, note]) => (
        <div class="tile" key={title}>
          <span class="tile-title">{title}</span>
          <span class="tile-value">{value}</span>
          <span class="tile-note">{note}</span>
        </div>
      ))}
    </div>
  );
}

function ShareBar({ share }: { share: Share }) {
  const whole = share.parts.reduce((sum, [, t]) => sum + t, 0);
  const parts = share.parts.filter(([, t]) => t > 0);
  return (
    <div class="share">
      <h3>{label(share.label)}</h3>
      <div class="share-bar" role="img" aria-label={parts.map(([n, t]) => `${n} ${percent(t, whole)}`).join(", ")}>
        {parts.map(([name, t]) => (
          <span key={name} class={`fill-${SHARE_KINDS[name]}`} style={{ width: `${(100 * t) / whole}%` }} title={`${name}: ${time(t)}`} />
        ))}
      </div>
      <table class="plain">
        <tbody>
          {parts.map(([name, t]) => (
            <tr key={name} data-share={name}>
              <th scope="row">
                <span class={`dot fill-${SHARE_KINDS[name]}`} aria-hidden="true" />
                {name}
              </th>
              <td class="number">{time(t)}</td>
              <td class="number">{percent(t, whole)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function TopOps(props: { rows: Rows; field: string; title: string }) {
  const { rows, field } = props;
  const store = useStore();
  const device = field === "self_device_ns";
  const whole = device ? rows.deviceTime : rows.sum(field);
  const all = Array.from({ length: rows.length }, (_, i) => i);
  const kernels = device ? all.filter((r) => onDevice(rows.get("category", r))) : [];
  const top = (kernels.length ? kernels : all)
    .sort((a, b) => rows.get(field, b) - rows.get(field, a))
    .slice(0, 10)
    .filter((r) => rows.get(field, r) > 0);
  const most = top.length ? rows.get(field, top[0]!) : 1;
  return (
    <Panel title={props.title}>
      <table class="plain top">
        <tbody>
          {top.map((r) => (
            <tr key={r}>
              <th scope="row">
                <span class="bar" aria-hidden="true" style={{ width: `${(100 * rows.get(field, r)) / most}%` }} />
                <button type="button" class="link cell" title={spelled(rows.name(r))} onClick={() => store.go("operators", { name: rows.name(r) })}>
                  {label(rows.name(r))}
                </button>
              </th>
              <td class="number">{time(rows.get(field, r))}</td>
              <td class="number">{percent(rows.get(field, r), whole)}</td>
              <td class="number">{count(rows.get("count", r))}×</td>
            </tr>
          ))}
        </tbody>
      </table>
    </Panel>
  );
}

function Steps({ steps, wide }: { steps: Step[]; wide: boolean }) {
  const store = useStore();
  const most = Math.max(...steps.map((s) => s[2]), 1);
  const shown = steps.slice(0, 400);
  return (
    <Panel title="Steps" class={wide ? "wide" : ""} note={steps.length > shown.length ? `Showing the first 400 of ${count(steps.length)} steps.` : undefined}>
      <div class="steps" tabIndex={0} role="group" aria-label="Steps">
        {shown.map(([name, start, duration], i) => (
          <button
            key={i}
            type="button"
            class="step"
            title={`${label(name)}: ${time(duration)}; click to show it on the timeline`}
            onClick={() => store.go("timeline", { name, time: [start, start + duration] })}
          >
            <span class="step-time">{shown.length <= 12 ? time(duration, 1) : ""}</span>
            <span class="step-bar" style={{ height: `${Math.max(1, (100 * duration) / most)}px` }} />
            <span class="step-name">{shown.length <= 24 ? label(name).replace("ProfilerStep#", "#") : ""}</span>
          </button>
        ))}
      </div>
    </Panel>
  );
}
