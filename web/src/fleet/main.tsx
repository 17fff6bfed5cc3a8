// The page of a job of many ranks begins here: its one block of data is read, then everything is drawn.
import { render } from "preact";
import { block } from "../data";
import { Fleet } from "./page";

async function start(): Promise<void> {
  const root = document.getElementById("app")!;
  if (typeof DecompressionStream === "undefined") {
    root.textContent = "This browser is too old for this page: it has no DecompressionStream (browsers of 2023 and later have it).";
    return;
  }
  const data = (await block("summary", 0))!;
  root.textContent = "";
  render(<Fleet data={data} />, root);
  performance.mark("first-view");
}

start().catch((error) => {
  document.getElementById("app")!.textContent = `Cannot read the data of this page: ${error}`;
  throw error;
});
