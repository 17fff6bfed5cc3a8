// A canvas that keeps the size of its box and the sharpness of the screen, and draws at most once a frame.
import { useEffect, useRef } from "preact/hooks";
import { onTheme } from "./colours";

export interface Surface {
  canvas: HTMLCanvasElement;
  context: CanvasRenderingContext2D;
  width: number; // in CSS pixels
  height: number;
}

export type Draw = (surface: Surface) => void;

/** Returns a ref for the canvas and a function that asks for a new drawing. */
export function useCanvas(draw: Draw) {
  const ref = useRef<HTMLCanvasElement>(null);
  const latest = useRef(draw);
  latest.current = draw;
  const asked = useRef(0);
  const paint = () => {
    asked.current = 0;
    const canvas = ref.current;
    const context = canvas?.getContext("2d", { alpha: false });
    if (!canvas || !context) return;
    const { clientWidth: width, clientHeight: height } = canvas;
    const ratio = Math.min(window.devicePixelRatio || 1, 2);
    const [w, h] = [Math.round(width * ratio), Math.round(height * ratio)];
    if (canvas.width !== w || canvas.height !== h) {
      canvas.width = w;
      canvas.height = h;
    }
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    latest.current({ canvas, context, width, height });
  };
  const ask = useRef(() => {
    if (!asked.current) asked.current = requestAnimationFrame(paint);
  }).current;
  useEffect(() => {
    const observer = new ResizeObserver(ask);
    observer.observe(ref.current!);
    const stop = onTheme(ask);
    return () => {
      observer.disconnect();
      stop();
      cancelAnimationFrame(asked.current);
      asked.current = 0;
    };
  }, []);
  useEffect(ask);
  return [ref, ask] as const;
}

export const FONT = "11px system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif";

const widths = new Map<string, number>();

/** Text cut to a width. Each text is measured once; its letters are then taken to be equally wide. */
export function fitted(context: CanvasRenderingContext2D, text: string, width: number): string {
  if (width < 12) return "";
  let whole = widths.get(text);
  if (whole === undefined) widths.set(text, (whole = context.measureText(text).width));
  if (whole <= width) return text;
  const most = Math.floor((text.length * (width - 11)) / whole);
  return most < 2 ? "" : text.slice(0, most) + "…";
}
