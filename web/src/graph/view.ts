/** The visible part of the plane, drawn as cards or as a map. */

import { getViewportForBounds, useReactFlow, useStore, useStoreApi, type Transform, type Viewport } from "@xyflow/react";
import { useCallback, useEffect, useRef } from "react";
import type { GraphEdge, Side } from "./graph_types";
import { countVisible, type Scene } from "./scene/scene";

const MOST_CARDS = 300;
const MAP_BELOW_ZOOM = 0.4;
const READABLE_ZOOM = 0.42;
const ROWS_READABLE_ZOOM = 0.7; // of columns
const PADDING = 0.04;
const MARGIN = { x: 72, y: 40 }; // room for the expand buttons beside a node

/** More than a few hundred cards are slow, and at low zoom their text is too small to read. */
export function isMap(scene: Scene, [x, y, zoom]: Transform, width: number, height: number): boolean {
  if (zoom < MAP_BELOW_ZOOM) return true;
  if (scene.nodes.length <= MOST_CARDS) return false;
  const part = { x: -x / zoom, y: -y / zoom, width: width / zoom, height: height / zoom };
  return countVisible(scene, part, MOST_CARDS) > MOST_CARDS;
}

export interface View {
  fit: () => void;
  /** Moves the view if the node is outside of it; `close` also makes it large enough to read. */
  reveal: (id: string, close?: boolean) => void;
}

/** Starts with the whole graph if its text is readable, else with the node in focus. */
export function useView(scene: Scene | null, generation: string, focus: string | undefined): View {
  const flow = useReactFlow();
  const store = useStoreApi();
  const width = useStore((state) => state.width);
  const height = useStore((state) => state.height);
  const shown = useRef("");
  const fitted = useRef<Viewport>(undefined); // the last view of the whole graph
  const fit = useCallback(() => {
    const { width, height } = store.getState();
    if (scene === null) return;
    fitted.current = wholeView(scene, width, height);
    void flow.setViewport(fitted.current, { duration: duration(scene) });
  }, [flow, store, scene]);
  const reveal = useCallback(
    (id: string, close = false) => {
      const placed = scene?.byId.get(id);
      const { width, height, transform } = store.getState();
      if (placed === undefined) return;
      const left = placed.x * transform[2] + transform[0];
      const top = placed.y * transform[2] + transform[1];
      const inside = left > 0 && top > 0 && left + placed.width * transform[2] < width && top + placed.height * transform[2] < height;
      const zoom = close ? Math.max(transform[2], READABLE_ZOOM) : transform[2];
      if (!inside || zoom !== transform[2]) void flow.setCenter(placed.x + placed.width / 2, placed.y + placed.height / 2, { zoom });
    },
    [flow, store, scene],
  );
  useEffect(() => {
    if (scene === null || !scene.nodes.length || !width || !height || shown.current === generation) return;
    shown.current = generation;
    const whole = wholeView(scene, width, height);
    const start = focus === undefined ? undefined : scene.byId.get(focus);
    const readable = scene.nodes.some((node) => node.rows !== null) ? ROWS_READABLE_ZOOM : READABLE_ZOOM;
    const asWhole = whole.zoom >= readable || start === undefined;
    fitted.current = asWhole ? whole : undefined;
    if (asWhole) void flow.setViewport(whole);
    else void flow.setCenter(start.x + start.width / 2, start.y + start.height / 2, { zoom: 0.75 });
  }, [scene, generation, focus, width, height, flow]);
  useEffect(() => {
    // The panel was opened or closed, or the window resized: a view of the whole graph stays one.
    const [x, y, zoom] = store.getState().transform;
    const view = fitted.current;
    if (scene === null || view === undefined || view.x !== x || view.y !== y || view.zoom !== zoom) return;
    const whole = wholeView(scene, width, height);
    if (whole.zoom < MAP_BELOW_ZOOM) return;
    fitted.current = whole;
    void flow.setViewport(whole);
  }, [width, height]); // eslint-disable-line -- not when nodes are added: the visible nodes do not move
  return { fit, reveal };
}

function wholeView({ bounds }: Scene, width: number, height: number): Viewport {
  const around = { x: bounds.x - MARGIN.x, y: bounds.y - MARGIN.y, width: bounds.width + 2 * MARGIN.x, height: bounds.height + 2 * MARGIN.y };
  return getViewportForBounds(around, width, height, 0.02, 1, PADDING);
}

function duration(scene: Scene): number {
  return scene.nodes.length <= 50 && !window.matchMedia("(prefers-reduced-motion: reduce)").matches ? 200 : 0;
}

/** Focuses a card as soon as it is mounted. Cards outside of the view are not mounted yet. */
export function focusCard(canvas: HTMLElement | null, id: string, attempts = 6): void {
  requestAnimationFrame(() => {
    const card = canvas?.querySelector<HTMLElement>(`[data-node="${CSS.escape(id)}"]`);
    if (card) card.focus({ preventScroll: true });
    else if (attempts) focusCard(canvas, id, attempts - 1);
  });
}

/** Requests all hidden neighbours once, on the sides that have some. */
export function expandByKey(scene: Scene, id: string, edges: readonly GraphEdge[], expand: (id: string, side: Side) => void): void {
  const node = scene.byId.get(id)?.node;
  if (node === undefined) return;
  const upstream = new Set(edges.filter((edge) => edge.target === id).map((edge) => edge.source)).size < node.upstream_total;
  const downstream = new Set(edges.filter((edge) => edge.source === id).map((edge) => edge.target)).size < node.downstream_total;
  if (upstream || downstream) expand(id, upstream && downstream ? "both" : upstream ? "upstream" : "downstream");
}
