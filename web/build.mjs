// The build: src/ in, the pages that the Python package ships out. The same sources and lock file give the same bytes.
//   node build.mjs [directory]     (default: ../src/mindtorch_prof/export/html)
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const out = resolve(process.argv[2] ?? join(here, "../src/mindtorch_prof/export/html"));
mkdirSync(out, { recursive: true });

const options = {
  absWorkingDir: here,
  bundle: true,
  write: false,
  minify: true,
  charset: "ascii",
  legalComments: "none",
  target: ["es2022"],
  metafile: true,
  preserveSymlinks: true, // a linked node_modules has the same paths, by which licences are found
};
const hash = (text) => `'sha256-${createHash("sha256").update(text).digest("base64")}'`;
const used = new Set();

async function bundle(entry, extra) {
  const result = await build({ ...options, ...extra, entryPoints: [entry] });
  for (const input of Object.keys(result.metafile.inputs)) {
    const part = input.match(/^node_modules\/((?:@[^/]+\/)?[^/]+)\//);
    if (part) used.add(part[1]);
  }
  return result.outputFiles[0].text.trim();
}

// A page: its one style and one script stand in it and their hashes in its policy; markers say where Python puts data.
async function page(name, title, script, style) {
  const js = await bundle(script, { format: "iife", jsx: "automatic", jsxImportSource: "preact" });
  const css = await bundle(style, { loader: { ".css": "css" } });
  if (/<\/(script|style)/i.test(js + css)) throw new Error(`${name}: the code would end its own element`);
  const policy = `default-src 'none'; script-src ${hash(js)}; style-src ${hash(css)}; base-uri 'none'; form-action 'none'`;
  const html = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="no-referrer">
<title>${title}</title>
<style>${css}</style>
</head>
<body>
<div id="app"><noscript>This page needs JavaScript; all of it is inside the page.</noscript></div>
<!--first--><script>${js}</script>
<!--later--></body>
</html>
`;
  writeFileSync(join(out, name), html);
  return html.length;
}

function licences() {
  const texts = [...used].sort().map((name) => {
    const folder = join(here, "node_modules", name);
    const about = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
    const file = readdirSync(folder).find((f) => /^licen[cs]e(\.md|\.txt)?$/i.test(f));
    if (!file || !existsSync(join(folder, file))) throw new Error(`${name} has no licence file`);
    return `${name} ${about.version} (${about.license})\n\n${readFileSync(join(folder, file), "utf8").trim()}\n`;
  });
  const line = "-".repeat(100);
  const head = "Parts of other projects inside template.html, fleet.html and table.html.\n";
  writeFileSync(join(out, "THIRD_PARTY.txt"), [head, ...texts].join(`\n${line}\n\n`));
}

const sizes = {
  "template.html": await page("template.html", "Profile", "src/main.tsx", "src/style.css"),
  "fleet.html": await page("fleet.html", "Fleet", "src/fleet/main.tsx", "src/fleet/fleet.css"),
  "table.html": await page("table.html", "Profile", "src/notebook.ts", "src/notebook.css"),
};
licences();
for (const [name, size] of Object.entries(sizes)) console.log(`${name}: ${(size / 1024).toFixed(1)} KiB`);
