// Tables as text, for the clipboard.

function cell(value: string): string {
  return /[",\n]/.test(value) ? `"${value.replaceAll('"', '""')}"` : value;
}

export function csv(head: string[], rows: string[][]): string {
  // a leading = + - @ would be a formula in a spreadsheet; numbers may begin with a minus
  const safe = (value: string) => (/^[=+@\t\r]|^-(?![\d.])/.test(value) ? `'${value}` : value);
  return [head, ...rows].map((row) => row.map((v) => cell(safe(v))).join(",")).join("\n") + "\n";
}

export function markdown(head: string[], rows: string[][]): string {
  const line = (row: string[]) => `| ${row.map((v) => v.replace(/[\\|`<>*_]/g, "\\$&")).join(" | ")} |`;
  const rule = `|${head.map((_, i) => (i ? " ---: " : " --- ")).join("|")}|`;
  return [line(head), rule, ...rows.map(line)].join("\n") + "\n";
}

export async function toClipboard(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const area = document.createElement("textarea");
    area.value = text;
    area.className = "offscreen";
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    return done;
  }
}
