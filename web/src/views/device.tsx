// Device: what each device did with its time, and why it was idle.
import type { ComponentChildren } from "preact";
import type { ViewProps } from "../app";
import { PARTS, type Figures, type Step } from "../device_parts";
import { bytes, count, label, percent, plural, time } from "../format";
import { Empty, Panel } from "../parts";
import { useBlock, useStore } from "../store";

type Stream = Figures & { stream: number; events: number; longest_idle_us: number };
type Work = { name: string; count: number; time_us: number; share: number; mean_us: number };
type Copy = { direction: string; count: number; bytes: number | null; time_us: number; gb_per_s: number | null };
type Idle = {
  causes: { cause: string; time_us: number; share: number; gaps: number }[];
  sources: { cause: string; source: string; call: string; time_us: number; gaps: number }[];
  longest_gaps: { start_us: number; length_us: number; cause: string; before: string; after: string }[];
  queues: { stream: number; mean_queue_length: number; max_queue_length: number; queue_empty_share: number }[];
  queue_curves: { stream: number; longest: number[] }[];
  short_kernels: { name: string; count: number; of: number; run_us: number; launch_us: number }[];
};
type Device = Figures & {
  device: number;
  without_op_us: number;
  without_op_share: number;
  launched_before_events: number;
  launched_before_us: number;
  outer_copies_us: number;
  n_steps: number;
  steps: Step[];
  streams: Stream[];
  by_type: Work[];
  by_op: Work[];
  copies: Copy[];
  idle: Idle;
};

const us = (value: number) => time(value * 1000);
const share = (part: number) => percent(part, 1);

export function Device({ trace }: ViewProps) {
  const block = useBlock("device", trace);
  if (block === undefined) return <Empty>Loading …</Empty>;
  if (block === null) return <Empty>No work of a device was recorded.</Empty>;
  return (
    <>
      {(block.values.devices as Device[]).map((device) => (
        <One key={device.device} device={device} />
      ))}
    </>
  );
}

function One({ device }: { device: Device }) {
  const store = useStore();
  const { idle } = device;
  return (
    <section data-device={device.device}>
      <p class="health" role="note">
        {device.without_op_us > 0
          ? `${share(device.without_op_share)} of the device work belongs to no op (${us(device.without_op_us)}).`
          : "All device work belongs to ops."}
        {device.launched_before_events > 0 &&
          ` Left out of these times: ${plural(device.launched_before_events, "kernel")} launched before the recording (busy for ${us(device.launched_before_us)}).`}
        {device.outer_copies_us > 0 &&
          ` Left out of these times: copies before the first and after the last computation or communication (${us(device.outer_copies_us)}), as torch_npu does.`}
      </p>
      <div class="grid">
        <Panel title={`Device ${device.device}: ${percent(device.busy_us, device.span_us)} busy`} note={`Span ${us(device.span_us)}, from the first to the last work.`}>
          <Bar figures={device} whole={device.span_us} />
          <table class="plain">
            <tbody>
              {PARTS.map(([name, key, colour]) => (
                <tr key={key} data-part={key}>
                  <th scope="row">
                    <span class={`dot fill-${colour}`} aria-hidden="true" />
                    {name}
                  </th>
                  <td class="number">{us(device[key])}</td>
                  <td class="number">{percent(device[key], device.span_us)}</td>
                </tr>
              ))}
            </tbody>
          </table>
          {device.communication_us > 0 && (
            <p class="muted">
              Communication {us(device.communication_us)}, {share(device.overlap)} of it overlaps with computation.
            </p>
          )}
        </Panel>
        <Panel title="Idle time by cause">
          <Rows
            head={["Cause", "Time", "Share", "Gaps"]}
            rows={idle.causes.filter((row) => row.time_us > 0).map((row) => [row.cause, us(row.time_us), share(row.share), count(row.gaps)])}
            empty="The device was never idle."
          />
        </Panel>
        {idle.sources.length > 0 && (
          <Panel title="What the idle time comes from" note="Host late: what the host did instead of launching. Waiting: what was waited for.">
            <Rows
              head={["Source", "Cause", "Time", "Gaps"]}
              texts={2}
              rows={idle.sources.slice(0, 15).map((row) => [
                `${row.call ? `${row.call} in ` : ""}${row.source || "no op or Python call"}`,
                row.cause,
                us(row.time_us),
                count(row.gaps),
              ])}
            />
          </Panel>
        )}
        {idle.longest_gaps.length > 0 && (
          <Panel title="Longest gaps" note="Click one to show it on the timeline.">
            <table class="plain top">
              <tbody>
                {idle.longest_gaps.slice(0, 10).map((gap) => (
                  <tr key={gap.start_us}>
                    <th scope="row">
                      <button
                        type="button"
                        class="link cell"
                        title={`after ${label(gap.before)}, before ${label(gap.after)}`}
                        onClick={() => store.go("timeline", { name: gap.after, time: [gap.start_us * 1000, (gap.start_us + gap.length_us) * 1000] })}
                      >
                        before {label(gap.after)}
                      </button>
                    </th>
                    <td>{gap.cause}</td>
                    <td class="number">{us(gap.length_us)}</td>
                  </tr>
                ))}
              </tbody>
            </table>
          </Panel>
        )}
        {device.steps.length > 0 && <Steps device={device} />}
        <Panel title="Streams" class="wide">
          <Rows
            head={["Stream", "Events", "Busy", "Busy share", "Longest idle", "Mean queue", "Longest queue", "Queue empty"]}
            rows={device.streams.map((stream) => {
              const queue = idle.queues.find((q) => q.stream === stream.stream);
              return [
                String(stream.stream),
                count(stream.events),
                us(stream.busy_us),
                percent(stream.busy_us, stream.span_us),
                us(stream.longest_idle_us),
                queue ? queue.mean_queue_length.toFixed(2) : "–",
                queue ? count(queue.max_queue_length) : "–",
                queue ? share(queue.queue_empty_share) : "–",
              ];
            })}
          />
          {idle.queue_curves.map((curve) => (
            <Curve key={curve.stream} title={`Queue of stream ${curve.stream}`} values={curve.longest} />
          ))}
        </Panel>
        <Panel title="Kernels by type">
          <Rows
            head={["Type", "Time", "Share", "Count"]}
            rows={device.by_type.map((row) => [row.name, us(row.time_us), share(row.share), count(row.count)])}
          />
        </Panel>
        <Panel title="Kernels by op">
          <Rows
            head={["Op", "Time", "Share", "Count"]}
            rows={device.by_op.slice(0, 20).map((row) => [row.name, us(row.time_us), share(row.share), count(row.count)])}
          />
        </Panel>
        {device.copies.length > 0 && (
          <Panel title="Copies and memory fills">
            <Rows
              head={["Direction", "Count", "Bytes", "Time", "GB/s"]}
              rows={device.copies.map((row) => [
                row.direction,
                count(row.count),
                row.bytes === null ? "–" : bytes(row.bytes),
                us(row.time_us),
                row.gb_per_s === null ? "–" : row.gb_per_s.toFixed(2),
              ])}
            />
          </Panel>
        )}
        {idle.short_kernels.length > 0 && (
          <Panel title="Short kernels" note="They run for less time than their launch takes.">
            <Rows
              head={["Kernel", "Count", "Of", "Run time", "Launch time"]}
              rows={idle.short_kernels.slice(0, 15).map((row) => [row.name, count(row.count), count(row.of), us(row.run_us), us(row.launch_us)])}
            />
          </Panel>
        )}
      </div>
    </section>
  );
}

function Bar({ figures, whole }: { figures: Figures; whole: number }) {
  const parts = PARTS.filter(([, key]) => figures[key] > 0);
  const text = parts.map(([name, key]) => `${name} ${us(figures[key])} (${percent(figures[key], figures.span_us)})`).join(", ");
  return (
    <div class="share-bar" role="img" aria-label={text} title={text} style={{ width: `${(100 * figures.span_us) / (whole || 1)}%` }}>
      {parts.map(([, key, colour]) => (
        <span key={key} class={`fill-${colour}`} style={{ width: `${(100 * figures[key]) / (figures.span_us || 1)}%` }} />
      ))}
    </div>
  );
}

function Steps({ device }: { device: Device }) {
  const store = useStore();
  const most = Math.max(...device.steps.map((step) => step.span_us));
  const note =
    "The work launched in a step, whenever it ran." +
    (device.n_steps > device.steps.length ? ` Showing the first ${count(device.steps.length)} of ${count(device.n_steps)} steps.` : "");
  return (
    <Panel title="Steps" class="wide" note={note}>
      <table class="plain device-steps">
        <thead>
          <tr>
            <th scope="col">Step</th>
            <th scope="col" class="device-bar" />
            <th scope="col" class="number">Span</th>
            {PARTS.map(([name, key]) => (
              <th key={key} scope="col" class="number">
                {name}
              </th>
            ))}
            <th scope="col" class="number">Overlap</th>
            <th scope="col" class="number">Gap before</th>
          </tr>
        </thead>
        <tbody>
          {device.steps.map((step) => (
            <tr key={step.step} data-step={step.step}>
              <th scope="row">
                <button
                  type="button"
                  class="link"
                  title="Show it on the timeline"
                  onClick={() => store.go("timeline", { name: `ProfilerStep#${step.step}`, time: [step.start_ns, step.start_ns + step.span_us * 1000] })}
                >
                  {step.step}
                </button>
              </th>
              <td class="device-bar">
                <Bar figures={step} whole={most} />
              </td>
              <td class="number">{us(step.span_us)}</td>
              {PARTS.map(([, key]) => (
                <td key={key} class="number">
                  {percent(step[key], step.span_us)}
                </td>
              ))}
              <td class="number">{step.communication_us > 0 ? share(step.overlap) : "–"}</td>
              <td class="number">{us(step.gap_before_us)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </Panel>
  );
}

function Rows(props: { head: string[]; rows: string[][]; texts?: number; empty?: string }) {
  const texts = props.texts ?? 1;
  if (!props.rows.length) return <p class="muted">{props.empty ?? "None."}</p>;
  const cell = (text: string, place: number): ComponentChildren =>
    place === 0 ? (
      <th scope="row" title={label(text)}>
        <span class="cell">{label(text)}</span>
      </th>
    ) : (
      <td class={place < texts ? "" : "number"}>{text}</td>
    );
  return (
    <div class="device-rows">
      <table class="plain top">
        <thead>
          <tr>
            {props.head.map((title, place) => (
              <th key={title} scope="col" class={place < texts ? "" : "number"}>
                {title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {props.rows.map((row, i) => (
            <tr key={i}>{row.map(cell)}</tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** The longest queue in each part of the span, as steps. */
function Curve({ title, values }: { title: string; values: number[] }) {
  const most = Math.max(...values, 1);
  const path = values.map((value, i) => `${i ? "L" : "M"}${i} ${40 - (38 * value) / most}L${i + 1} ${40 - (38 * value) / most}`).join("");
  return (
    <figure class="device-queue">
      <figcaption class="muted">
        {title}: at most {count(most)}
      </figcaption>
      <svg viewBox={`0 0 ${values.length} 40`} preserveAspectRatio="none" role="img" aria-label={`${title} over time, at most ${most}`}>
        <path d={`${path}L${values.length} 40L0 40Z`} />
      </svg>
    </figure>
  );
}
