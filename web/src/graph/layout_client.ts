/** Requests layouts from the worker, and keeps visible nodes in place while a graph grows. */

import { useEffect, useRef, useState } from "react";
import type { GraphEdge, GraphNode } from "./graph_types";
import { layout, type Box, type Layout, type Link } from "./layout";
import { boxesOf, linksOf } from "./scene/scene";

export interface LayoutQuestion {
  number: number;
  boxes: Box[];
  links: Link[];
  previous: Layout | undefined;
}

export interface LayoutAnswer {
  number: number;
  layout: Layout;
}

let worker: Worker | undefined;
let asked = 0;
const waiting = new Map<number, (layout: Layout) => void>();

function askWorker(boxes: Box[], links: Link[], previous: Layout | undefined): Promise<Layout> {
  if (typeof Worker === "undefined") return Promise.resolve(layout(boxes, links, previous)); // no worker in unit tests
  if (worker === undefined) {
    worker = new Worker(new URL("./layout.worker.ts", import.meta.url), { type: "module" });
    worker.addEventListener("message", ({ data }: MessageEvent<LayoutAnswer>) => {
      waiting.get(data.number)?.(data.layout);
      waiting.delete(data.number);
    });
  }
  const question: LayoutQuestion = { number: ++asked, boxes, links, previous };
  return new Promise((done) => {
    waiting.set(question.number, done);
    worker!.postMessage(question);
  });
}

/**
 * The layout of a graph. It starts anew when `generation` changes (another root, another selector, or
 * the person asks for it); otherwise what has a place keeps it.
 */
export function useLayout(nodes: readonly GraphNode[], edges: readonly GraphEdge[], generation: string): Layout | null {
  const [shown, setShown] = useState<{ layout: Layout; generation: string } | null>(null);
  const latest = useRef(shown);
  useEffect(() => {
    let current = true;
    const previous = latest.current?.generation === generation ? latest.current.layout : undefined;
    void askWorker(boxesOf(nodes), linksOf(edges), previous).then((answer) => {
      if (!current) return;
      latest.current = { layout: answer, generation };
      setShown(latest.current);
    });
    return () => {
      current = false;
    };
  }, [nodes, edges, generation]);
  return shown?.layout ?? null;
}
