// How the time of a device divides: the figures of device_breakdown.py, and the parts that add up to a span with their colours.

export type Figures = {
  span_us: number;
  computation_us: number;
  exposed_communication_us: number;
  exposed_copy_us: number;
  idle_us: number;
  busy_us: number;
  communication_us: number;
  overlap: number;
};
export type Step = Figures & { step: number; start_ns: number; gap_before_us: number };

export const PARTS = [
  ["Computation", "computation_us", "kernel"],
  ["Exposed communication", "exposed_communication_us", "communication"],
  ["Exposed copies", "exposed_copy_us", "copy"],
  ["Idle", "idle_us", "idle"],
] as const;

/** The parts of a step's bar: from the end of the work before it to the end of its own. */
export const STEP_PARTS = [["Gap before the step", "gap_before_us", "gap"], ...PARTS] as const;
