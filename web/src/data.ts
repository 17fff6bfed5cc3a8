// Data: blocks of the page in, typed arrays out. The layout is written down in export/html/pack.py.

export type Column = Uint8Array | Uint16Array | Uint32Array | Int32Array | Float64Array;

export interface Block {
  values: any;
  columns: Record<string, Column>;
}

interface Described {
  t: string;
  n: number;
  o: number;
  d?: number;
  s?: number;
}

const kinds: Record<string, new (buffer: ArrayBuffer, offset: number, length: number) => Column> = {
  u1: Uint8Array as any,
  u2: Uint16Array as any,
  u4: Uint32Array as any,
  i4: Int32Array as any,
  f8: Float64Array as any,
};

const cache = new Map<string, Promise<Block | null>>();

/** A block by its element's id; null if the page has none. Later blocks are read once the whole page has arrived. */
export async function block(name: string, trace: number, recorded = false): Promise<Block | null> {
  let id = `${name}-${trace}`;
  if (name !== "summary" || recorded) await arrived();
  // without synthetic events; a page has no such block where they make no difference
  if (recorded && document.getElementById(`${id}-recorded`)) id += "-recorded";
  let found = cache.get(id);
  if (!found) {
    found = read(id);
    cache.set(id, found);
  }
  return found;
}

/** How many traces the page holds. */
export function traceCount(): number {
  return document.getElementById("summary-1") ? 2 : 1;
}

function arrived(): Promise<void> {
  if (document.readyState !== "loading") return Promise.resolve();
  return new Promise((done) => document.addEventListener("DOMContentLoaded", () => done(), { once: true }));
}

async function read(id: string): Promise<Block | null> {
  const element = document.getElementById(id);
  if (!element) return null;
  const packed = decoded(element.textContent ?? "");
  element.textContent = ""; // the text is as large as all that is made from it
  const stream = new Blob([packed as BlobPart]).stream().pipeThrough(new DecompressionStream("deflate"));
  const raw = await new Response(stream).arrayBuffer();
  const length = new DataView(raw).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(raw, 4, length)));
  const columns: Record<string, Column> = {};
  for (const [name, described] of Object.entries(header.columns as Record<string, Described>)) {
    columns[name] = column(raw, 4 + length, described);
  }
  return { values: header.values, columns };
}

function decoded(text: string): Uint8Array {
  const native = (Uint8Array as any).fromBase64;
  if (native) return native.call(Uint8Array, text);
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; i++) bytes[i] = binary.charCodeAt(i);
  return bytes;
}

function column(raw: ArrayBuffer, base: number, { t, n, o, d, s }: Described): Column {
  const size = Number(t[1]);
  let values: Column;
  if (s) {
    const from = new Uint8Array(raw, base + o, n * size);
    const bytes = new Uint8Array(n * size);
    for (let part = 0; part < size; part++) {
      for (let i = 0, at = part, source = part * n; i < n; i++, at += size, source++) bytes[at] = from[source]!;
    }
    values = new kinds[t]!(bytes.buffer, 0, n);
  } else {
    values = new kinds[t]!(raw.slice(base + o, base + o + n * size), 0, n);
  }
  if (!d) return values;
  const summed = new Float64Array(n);
  for (let i = 0, sum = 0; i < n; i++) summed[i] = sum += values[i]!;
  return summed;
}
