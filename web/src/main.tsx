// The page begins here: summaries are read, then the first view is drawn. Everything else is read when a view asks for it.
import { render } from "preact";
import { App } from "./app";
import { block, traceCount, type Block } from "./data";
import { rememberShortNames, spelled } from "./format";

async function start(): Promise<void> {
  const root = document.getElementById("app")!;
  if (typeof DecompressionStream === "undefined") {
    root.textContent = "This browser is too old for this page: it has no DecompressionStream (browsers of 2023 and later have it).";
    return;
  }
  const summaries = (await Promise.all(Array.from({ length: traceCount() }, (_, i) => block("summary", i)))) as Block[];
  for (const summary of summaries) rememberShortNames(summary.values.short_names);
  if (summaries[0]!.values.views === "all") {
    document.title = summaries.map((s) => spelled(s.values.label).slice(0, 80)).join(" → ") + " – profile";
  }
  root.textContent = "";
  render(<App summaries={summaries} />, root);
  performance.mark("first-view");
}

start().catch((error) => {
  document.getElementById("app")!.textContent = `Cannot read the data of this page: ${error}`;
  throw error;
});
