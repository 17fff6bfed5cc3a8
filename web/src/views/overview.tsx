// Overview: where the time went, in one look.
import type { ViewProps } from "../app";
import { SHARE_KINDS } from "../colours";
import { STEP_PARTS, type Step as DeviceStep } from "../device_parts";
import { bytes, count, label, median, percent, plural, spelled, time } from "../format";
import { Facts, Panel } from "../parts";
import { onDevice, Rows } from "../rows";
import { useBlock, useStore } from "../store";

type Share = { label: string; parts: [string, number][] };
type Step = [string, number, number];
type StepsOfDevice = { device: number; steps: DeviceStep[]; n_steps: number };

type Evidence = { name: string; where: string; count: number; total_us: number };
type Finding = { code: string; message: string; advice: string; at_stake_us: number; share: number; evidence: Evidence[] };
type Device = { label: string; events: number; span_us: number; busy_us: number; busy_share: number };

export function Overview({ summary, trace }: ViewProps) {
  const { values } = summary;
  const rows = new Rows(summary, "name");
  const steps: Step[] = values.steps;
  const devices = ((useBlock("device", trace)?.values.devices ?? []) as StepsOfDevice[]).filter((device) => device.steps.length > 0);
  return (
    <>
      <Tiles values={values} rows={rows} steps={steps} />
      <Health values={values} />
      <Findings findings={values.findings} wrong={values.looks_wrong} />
      <div class="grid">
        <Panel
          title="Share of time"
          note={`From the first event to the last${values.shares.length > 1 ? "; of a device, from its own first event to its last" : ""}.`}
        >
          {(values.shares as Share[]).map((s) => (
            <ShareBar key={s.label} share={s} />
          ))}
        </Panel>
        {rows.has("self_device_ns") && <TopOps rows={rows} field="self_device_ns" title="Kernels by device time" />}
        <TopOps rows={rows} field="self_ns" title="Operators by self CPU time" />
        {steps.length > 0 && <Steps steps={steps} wide={rows.has("self_device_ns") || steps.length > 30} />}
        {devices.map((device) => (
          <DeviceSteps key={device.device} of={device} label={devices.length > 1 ? `Steps on device ${device.device}` : "Steps on the device"} />
        ))}
        <Panel title="Recording" class="wide">
          <Facts rows={(values.facts as [string, string][]).map(([k, v]) => [k, label(v)])} />
        </Panel>
      </div>
    </>
  );
}

function Health({ values }: { values: any }) {
  const health: { severity: string; message: string }[] = values.health;
  if (!health.length) {
    return (
      <p class="health fine" role="note">
        The recording is complete and consistent: no events were dropped, truncated or repaired.
      </p>
    );
  }
  return (
    <div class="health poor" role="note">
      {health.length === 1 ? label(health[0]!.message, 600) : `${count(health.length)} problems of the recording:`}
      {health.length > 1 && (
        <ul>
          {health.map((finding, i) => (
            <li key={i}>{label(finding.message, 600)}</li>
          ))}
        </ul>
      )}
    </div>
  );
}

/** What advise suggests, the largest first, and what looks wrong. */
function Findings({ findings, wrong }: { findings: Finding[]; wrong: string[] }) {
  if (!findings.length && !wrong.length) return null;
  return (
    <Panel title="Findings" class="first" note={findings.length ? "Each with the time at stake: the most that the change can save, as a share of the recording." : undefined}>
      {findings.length > 0 && (
        <ol class="findings">
          {findings.map((finding) => (
            <li class="finding" key={finding.code} data-finding={finding.code}>
              <p>
                <span class="stake">{`${(100 * finding.share).toFixed(0)}% · ${time(finding.at_stake_us * 1000)}`}</span> {label(finding.message)}
              </p>
              <p class="muted">{`Next step: ${finding.advice}`}</p>
              {finding.evidence.length > 0 && <EvidenceTable evidence={finding.evidence} />}
            </li>
          ))}
        </ol>
      )}
      {wrong.length > 0 && (
        <>
          <h3>What looks wrong</h3>
          <ul class="wrong">
            {wrong.map((text) => (
              <li key={text}>{label(text, 600)}</li>
            ))}
          </ul>
        </>
      )}
    </Panel>
  );
}

function EvidenceTable({ evidence }: { evidence: Evidence[] }) {
  const store = useStore();
  return (
    <details>
      <summary>Evidence</summary>
      <table class="plain top">
        <tbody>
          {evidence.map((row, i) => (
            <tr key={i}>
              <th scope="row">
                <button type="button" class="link cell" title={label(row.name)} onClick={() => store.go("timeline", { name: row.name })}>
                  {label(row.name)}
                </button>
                {row.where && (
                  <span class="cell muted" title={label(row.where)}>
                    {label(row.where)}
                  </span>
                )}
              </th>
              <td class="number">{time(row.total_us * 1000)}</td>
              <td class="number">{count(row.count)}×</td>
            </tr>
          ))}
        </tbody>
      </table>
    </details>
  );
}

function Tiles(props: { values: any; rows: Rows; steps: Step[] }) {
  const { values, steps } = props;
  const figures = values.figures;
  const unit = values.device.toUpperCase();
  const counts = [figures.device_events && `${count(figures.device_events)} on ${unit}`, values.synthetic && `${count(values.synthetic)} synthetic more`];
  const tiles: [string, string, string][] = [
    ["Span", time(values.span_ns), "from the first to the last event"],
    ["Self CPU time", time(figures.self_cpu_us * 1000), "sum over threads"],
    ["Events", count(figures.events), counts.filter(Boolean).join(", ")],
  ];
  for (const device of figures.devices as Device[]) {
    tiles.push([`${device.label} busy`, `${(100 * device.busy_share).toFixed(1)}%`, `${time(device.busy_us * 1000)} of its span of ${time(device.span_us * 1000)}`]);
  }
  if (figures.device_without_op_us > 0) {
    tiles.push(["Device time without op", `${(100 * figures.device_without_op_share).toFixed(1)}%`, plural(figures.device_events_without_op, "device event")]);
  }
  if (steps.length) {
    const times = steps.map((s) => s[2]).sort((a, b) => a - b);
    tiles.push([steps.length > 1 ? "Median step" : "Step", time(median(times)), plural(steps.length, "step")]);
  }
  for (const memory of figures.memory as { label: string; peak_bytes: number; end_bytes: number }[]) {
    if (memory.peak_bytes) tiles.push([`Peak memory, ${memory.label}`, bytes(memory.peak_bytes), `${bytes(memory.end_bytes)} still allocated at the end`]);
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

const MOST_BARS = 400;
const shortStep = (name: string, bars: number) => (bars <= 24 ? label(name).replace("ProfilerStep#", "#") : "");

function Steps({ steps, wide }: { steps: Step[]; wide: boolean }) {
  const store = useStore();
  const most = Math.max(...steps.map((s) => s[2]), 1);
  const shown = steps.slice(0, MOST_BARS);
  return (
    <Panel title="Steps" class={wide ? "wide" : ""} note={steps.length > shown.length ? `Showing the first ${MOST_BARS} of ${count(steps.length)} steps.` : undefined}>
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
            <span class="step-name">{shortStep(name, shown.length)}</span>
          </button>
        ))}
      </div>
    </Panel>
  );
}

/** The steps of one device as bars, stacked by what the device did. */
function DeviceSteps({ of, label: title }: { of: StepsOfDevice; label: string }) {
  const store = useStore();
  const shown = of.steps.slice(0, MOST_BARS);
  const whole = (step: DeviceStep) => step.gap_before_us + step.span_us;
  const most = Math.max(...shown.map(whole), 1e-3);
  const parts = STEP_PARTS.filter(([, key]) => shown.some((step) => step[key] > 0));
  const more = of.n_steps > shown.length ? ` Showing the first ${count(shown.length)} of ${count(of.n_steps)} steps.` : "";
  const us = (value: number) => time(value * 1000);
  return (
    <Panel title={title} class="wide" note={`The work launched in a step, whenever it ran, and the gap between it and the work before.${more}`}>
      <p class="step-legend">
        {parts.map(([name, key, colour]) => (
          <span key={key}>
            <span class={`dot fill-${colour}`} aria-hidden="true" />
            {name}
          </span>
        ))}
      </p>
      <div class="steps" tabIndex={0} role="group" aria-label={title}>
        {shown.map((step) => {
          const name = `ProfilerStep#${step.step}`;
          const text = parts.map(([part, key]) => `${part} ${us(step[key])} (${percent(step[key], whole(step))})`).join(", ");
          return (
            <button
              key={step.step}
              type="button"
              class="step"
              data-device-step={step.step}
              title={`${name}: ${us(whole(step))}. ${text}; click to show it on the timeline`}
              onClick={() => store.go("timeline", { name, time: [step.start_ns, step.start_ns + step.span_us * 1000] })}
            >
              <span class="step-time">{shown.length <= 12 ? time(whole(step) * 1000, 1) : ""}</span>
              <span class="step-stack" style={{ height: `${Math.max(1, (100 * whole(step)) / most)}px` }}>
                {parts.map(([, key, colour]) => (
                  <span key={key} class={`fill-${colour}`} style={{ height: `${(100 * step[key]) / (whole(step) || 1)}%` }} />
                ))}
              </span>
              <span class="step-name">{shortStep(name, shown.length)}</span>
            </button>
          );
        })}
      </div>
    </Panel>
  );
}
