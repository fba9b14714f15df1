/** One canvas under the nodes: all edges, and at low zoom or in large graphs the nodes themselves. */

import { useStoreApi } from "@xyflow/react";
import { useEffect, useMemo, useRef } from "react";
import { useShownTheme } from "../design/theme";
import { traceCurves } from "./scene/edge_paths";
import type { Severity } from "./graph_types";
import type { Highlight } from "./scene/highlight";
import { typeColour } from "./cards/marks";
import { onLines } from "../design/short_name";
import { ROW_GAP } from "./layout";
import { Painter, type Window2D } from "./painter";
import { headHeight, type Scene, type SceneEdge, type SceneNode } from "./scene/scene";
import styles from "./lineage_canvas.module.css";

interface Props {
  scene: Scene;
  drawNodes: boolean;
  highlight: Highlight | null;
  active: string | undefined;
  focus: string | undefined;
  severity: Readonly<Record<string, Severity>> | undefined;
}

const CURVES_FROM_ZOOM = 0.3;
const LABELS_FROM_HEIGHT = 13; // pixels of a node on screen
const MOST_LABELS = 700;

export function MapCanvas(props: Props) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const store = useStoreApi();
  const theme = useShownTheme();
  const colours = useMemo(() => readColours(), [theme]); // eslint-disable-line -- the theme changes the computed colours
  const groups = useMemo(() => groupEdges(props.scene.edges, props.highlight), [props.scene, props.highlight]);
  useEffect(() => {
    // The element itself: a frame may still be drawn after React has cleared the reference.
    const element = canvas.current!;
    const painter = new Painter(element, (view) => drawScene(element, { ...props, groups, colours, ...view }));
    const follow = () => {
      const { transform, width, height } = store.getState();
      painter.show({ x: transform[0], y: transform[1], zoom: transform[2], width, height });
    };
    follow();
    const stop = store.subscribe(follow);
    return () => {
      stop();
      painter.stop();
    };
  }, [store, props.scene, props.drawNodes, props.highlight, props.active, props.focus, props.severity, groups, colours]); // eslint-disable-line
  return <canvas ref={canvas} className={styles.map} aria-hidden="true" />;
}

type Colours = (variable: string) => string;

function readColours(): Colours {
  const style = getComputedStyle(document.documentElement);
  const known = new Map<string, string>();
  return (variable) => {
    let value = known.get(variable);
    if (value === undefined) {
      value = style.getPropertyValue(variable).trim() || "gray";
      known.set(variable, value);
    }
    return value;
  };
}

/** Edges that look the same are drawn by one call. */
interface EdgeGroup {
  colour: string;
  width: number;
  dash: number[];
  alpha: number;
  edges: SceneEdge[];
}

const CHANGE_COLOURS = { added: "--added", removed: "--removed", changed: "--warning" } as const;
/** The line shows the confidence of an edge: solid, dotted if ambiguous, long dashes if declared. */
const CONFIDENCE: Record<string, { dash: number[]; alpha: number }> = {
  exact: { dash: [], alpha: 1 },
  inferred: { dash: [], alpha: 0.65 },
  ambiguous: { dash: [2, 4], alpha: 0.9 },
  declared: { dash: [10, 5], alpha: 0.9 },
};

function groupEdges(edges: readonly SceneEdge[], highlight: Highlight | null): EdgeGroup[] {
  const groups = new Map<string, EdgeGroup>();
  for (const edge of edges) {
    const { change, confidence, status } = edge.edge;
    const faded = highlight !== null && !highlight.edges.has(edge.key);
    const style = CONFIDENCE[confidence] ?? CONFIDENCE.exact!;
    const key = `${change} ${confidence} ${status} ${faded}`;
    let group = groups.get(key);
    if (group === undefined) {
      const alpha = style.alpha * (faded ? 0.25 : status === "stale" ? 0.6 : 1);
      const dash = change === "removed" ? [6, 4] : status === "stale" ? [4, 4] : style.dash;
      group = { colour: change ? CHANGE_COLOURS[change] : "--edge", width: change ? 2 : 1.4, dash, alpha, edges: [] };
      groups.set(key, group);
    }
    group.edges.push(edge);
  }
  return [...groups.values()];
}

interface View extends Props, Window2D {
  groups: EdgeGroup[];
  colours: Colours;
}

function drawScene(canvas: HTMLCanvasElement, view: View): void {
  const ratio = Math.min(window.devicePixelRatio || 1, 2);
  const [width, height] = [Math.round(view.width * ratio), Math.round(view.height * ratio)];
  if (canvas.width !== width || canvas.height !== height) {
    canvas.width = width;
    canvas.height = height;
    canvas.style.width = `${view.width}px`;
    canvas.style.height = `${view.height}px`;
  }
  const context = canvas.getContext("2d");
  if (context === null) return;
  context.setTransform(1, 0, 0, 1, 0, 0);
  context.clearRect(0, 0, width, height);
  context.setTransform(ratio * view.zoom, 0, 0, ratio * view.zoom, ratio * view.x, ratio * view.y);
  const left = -view.x / view.zoom;
  const top = -view.y / view.zoom;
  const part = { left, top, right: left + view.width / view.zoom, bottom: top + view.height / view.zoom };
  for (const group of view.groups) drawGroup(context, group, view, part);
  if (view.drawNodes) drawNodes(context, view, part, ratio);
}

type Part = { left: number; top: number; right: number; bottom: number };

function drawGroup(context: CanvasRenderingContext2D, group: EdgeGroup, view: View, part: Part): void {
  const curved = view.zoom >= CURVES_FROM_ZOOM;
  context.beginPath();
  for (let i = 0; i < group.edges.length; i++) {
    const { anchors, box } = group.edges[i]!;
    if (box[0] > part.right || box[2] < part.left || box[1] > part.bottom || box[3] < part.top) continue;
    if (curved) traceCurves(context, anchors);
    else {
      context.moveTo(anchors[0]!, anchors[1]!);
      for (let k = 2; k < anchors.length; k += 2) context.lineTo(anchors[k]!, anchors[k + 1]!);
    }
  }
  context.setLineDash(curved ? group.dash : []);
  context.lineWidth = group.width * Math.max(1, 0.6 / view.zoom);
  context.strokeStyle = view.colours(group.colour);
  // Thousands of lines on a small plane would hide the nodes.
  context.globalAlpha = group.alpha * (view.zoom < 0.15 ? 0.35 : 1);
  context.stroke();
  context.globalAlpha = 1;
  context.setLineDash([]);
}

const SEVERITY_COLOURS: Record<Severity, string> = { breaking: "--breaking", warning: "--warning", safe: "--safe", changed: "--info" };

function nodeColour({ node }: SceneNode, severity: View["severity"]): string {
  const known = severity?.[node.id];
  if (known) return SEVERITY_COLOURS[known];
  if (node.change) return CHANGE_COLOURS[node.change];
  if (node.marks.includes("failed")) return "--breaking";
  return typeColour(node);
}

function drawNodes(context: CanvasRenderingContext2D, view: View, part: Part, ratio: number): void {
  const visible = view.scene.nodes.filter(
    ({ x, y, width, height }) => x < part.right && x + width > part.left && y < part.bottom && y + height > part.top,
  );
  const labelled = 60 * view.zoom >= LABELS_FROM_HEIGHT && visible.length <= MOST_LABELS;
  const byColour = new Map<string, SceneNode[]>();
  for (const placed of visible) {
    const faded = view.highlight !== null && !view.highlight.nodes.has(placed.node.id);
    const key = `${faded ? 1 : 0}${nodeColour(placed, view.severity)}`;
    const known = byColour.get(key);
    if (known) known.push(placed);
    else byColour.set(key, [placed]);
  }
  const labels = labelled ? fitLabels(context, visible, view) : new Map<SceneNode, MapLabel>();
  const bar = labelled ? 10 : 0;
  for (const [key, nodes] of byColour) {
    context.globalAlpha = key[0] === "1" ? 0.2 : 1;
    context.fillStyle = view.colours(key.slice(1));
    context.beginPath();
    for (const placed of nodes) drawBox(context, placed, labels.get(placed), view.zoom, bar || placed.width);
    context.fill();
    if (!labelled) continue;
    context.fillStyle = view.colours("--surface-raised");
    context.beginPath();
    for (const placed of nodes) drawBox(context, placed, labels.get(placed), view.zoom, placed.width - bar, bar);
    context.fill();
  }
  context.globalAlpha = 1;
  drawRings(context, view);
  if (labelled) drawLabels(context, labels, view, ratio);
}

interface MapLabel {
  lines: string[];
  size: number; // of the letters, in pixels on screen
}

const SMALLEST = 9;
const SHRUNK = 0.8; // a single word becomes so much smaller rather than broken

/** Labels keep a readable size on screen, whatever the zoom. They have as many lines as the space below a node allows. */
function fitLabels(context: CanvasRenderingContext2D, nodes: readonly SceneNode[], view: View): Map<SceneNode, MapLabel> {
  const size = Math.max(SMALLEST, Math.min(13, 26 * view.zoom));
  context.font = fontOf(size, view);
  const letter = (1.04 * context.measureText(SAMPLE).width) / SAMPLE.length;
  const labels = new Map<SceneNode, MapLabel>();
  for (const placed of nodes) {
    const letters = Math.floor((placed.width * view.zoom - 9) / letter);
    if (letters < 3) continue;
    const { label } = placed.node;
    const most = Math.max(1, Math.min(3, Math.floor(((headHeight(placed.node) + ROW_GAP) * view.zoom) / (size + 0.3))));
    const shrinks = label.length > letters && label.length * SHRUNK <= letters && (most === 1 || !WORD_END.test(label));
    labels.set(placed, shrinks ? { lines: [label], size: (size * letters) / label.length } : { lines: onLines(label, letters, most), size });
  }
  return labels;
}

const SAMPLE = "customer_orders.daily_2";
const WORD_END = /[./_-]|[a-z][A-Z]/;

function fontOf(size: number, view: View): string {
  return `560 ${size}px ${view.colours("--font")}`;
}

/** A box is at least as high as its label, also where the zoom makes it lower. */
function drawBox(context: CanvasRenderingContext2D, { x, y, height }: SceneNode, label: MapLabel | undefined, zoom: number, width: number, left = 0): void {
  const added = label ? Math.max(0, (label.lines.length * label.size) / zoom - height) : 0;
  context.rect(x + left, y - added / 2, width, height + added);
}

function drawRings(context: CanvasRenderingContext2D, view: View): void {
  for (const [id, colour] of [[view.focus, "--brand"], [view.active, "--focus"]] as const) {
    const placed = id === undefined ? undefined : view.scene.byId.get(id);
    if (placed === undefined) continue;
    context.lineWidth = 3 / view.zoom;
    context.strokeStyle = view.colours(colour);
    const gap = 3 / view.zoom;
    context.strokeRect(placed.x - gap, placed.y - gap, placed.width + 2 * gap, placed.height + 2 * gap);
  }
}

function drawLabels(context: CanvasRenderingContext2D, labels: ReadonlyMap<SceneNode, MapLabel>, view: View, ratio: number): void {
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.textBaseline = "middle";
  let drawn = 0;
  for (const [{ node, x, y }, { lines, size }] of labels) {
    if (size !== drawn) context.font = fontOf((drawn = size), view);
    const middle = (y + headHeight(node) / 2) * view.zoom + view.y;
    context.globalAlpha = view.highlight !== null && !view.highlight.nodes.has(node.id) ? 0.25 : 1;
    context.fillStyle = view.colours("--text");
    lines.forEach((line, at) => context.fillText(line, (x + 10) * view.zoom + view.x + 4, middle + (at - (lines.length - 1) / 2) * size));
  }
  context.globalAlpha = 1;
}
