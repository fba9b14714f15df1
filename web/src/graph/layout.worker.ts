/** Runs the layout outside of the main thread. */

import { layout } from "./layout";
import type { LayoutAnswer, LayoutQuestion } from "./layout_client";

addEventListener("message", ({ data }: MessageEvent<LayoutQuestion>) => {
  const answer: LayoutAnswer = { number: data.number, layout: layout(data.boxes, data.links, data.previous) };
  postMessage(answer);
});
