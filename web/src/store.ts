// What is being looked at: the view, the trace, and what a click in one view asks another to show.
import { createContext } from "preact";
import { useContext, useEffect, useState } from "preact/hooks";
import { block, type Block } from "./data";

export const VIEWS = ["overview", "operators", "flame", "timeline", "memory", "modules", "device", "roofline", "compare"] as const;
export type View = (typeof VIEWS)[number];
export type Which = 0 | 1 | "both";

export interface Wanted {
  name: string;
  time?: [number, number];
}

export interface Store {
  view: View;
  which: Which;
  recorded: boolean; // whether synthetic events are hidden
  wanted: Wanted | null; // what a click asked the present view to show
  go(view: View, wanted?: Wanted | null): void;
  say(text: string): void; // a short message, also for screen readers
}

export const StoreContext = createContext<Store>(null as unknown as Store);
export const useStore = (): Store => useContext(StoreContext);

/** A block of data: undefined while it is read, null if the page has none. */
export function useBlock(name: string, trace: number): Block | null | undefined {
  const { recorded } = useStore();
  const [found, setFound] = useState<Block | null | undefined>(undefined);
  useEffect(() => {
    let wanted = true;
    setFound(undefined);
    block(name, trace, recorded).then((b) => wanted && setFound(b));
    return () => {
      wanted = false;
    };
  }, [name, trace, recorded]);
  return found;
}
