/** The positions of all elements: boxes of nodes with their column rows, and the lines of edges. */

import { LABEL_LINE, labelLines } from "../cards/labels";
import { columnRows, rowMiddle, rowsHeight, type ColumnRows } from "../cards/column_rows";
import { anchorsBetween, distanceTo, type Anchors } from "./edge_paths";
import type { ColumnEdge, GraphEdge, GraphNode } from "../graph_types";
import { linkKey, ROW_GAP, type Box, type Layout, type Link } from "../layout";

const DATASET_WIDTH = 224;
const DATASET_HEIGHT = 60;
const JOB_WIDTH = 212;
const JOB_HEIGHT = 46;

export interface SceneNode {
  node: GraphNode;
  x: number;
  y: number;
  width: number;
  height: number;
  layer: number;
  rows: ColumnRows | null;
}

export interface SceneEdge {
  key: string;
  edge: GraphEdge;
  anchors: Anchors;
  box: Box4; // around its anchors
}

/** Left, top, right and bottom. */
export type Box4 = readonly [number, number, number, number];

export interface SceneColumnEdge {
  key: string;
  edge: ColumnEdge;
  anchors: Anchors;
}

export interface Bounds {
  x: number;
  y: number;
  width: number;
  height: number;
}

export interface Scene {
  nodes: SceneNode[];
  byId: Map<string, SceneNode>;
  edges: SceneEdge[];
  bounds: Bounds;
}

/** User state that decides the rows: opened datasets, searches, and the columns of a locked path. */
export interface RowChoice {
  open: ReadonlySet<string>;
  searches: ReadonlyMap<string, string>;
  onPath: ReadonlyMap<string, ReadonlySet<string>>;
}

/** The height of a node without rows of columns. */
export function headHeight(node: GraphNode): number {
  return (node.kind === "job" ? JOB_HEIGHT : DATASET_HEIGHT) + (labelLines(node) - 1) * LABEL_LINE;
}

function widthOf({ kind }: GraphNode): number {
  return kind === "job" ? JOB_WIDTH : DATASET_WIDTH;
}

export function boxesOf(nodes: readonly GraphNode[]): Box[] {
  return nodes.map((node) => ({ id: node.id, width: widthOf(node), height: headHeight(node) }));
}

export function linksOf(edges: readonly GraphEdge[]): Link[] {
  return edges.map(({ source, target }) => ({ source, target }));
}

export function buildScene(nodes: readonly GraphNode[], edges: readonly GraphEdge[], layout: Layout, choice: RowChoice): Scene {
  const byId = new Map<string, SceneNode>();
  for (const node of nodes) {
    const spot = layout.spots.get(node.id);
    if (spot === undefined) continue; // the layout of the newest nodes is not ready
    const rows = columnRows(node, choice.open.has(node.id), choice.searches.get(node.id) ?? "", choice.onPath.get(node.id));
    byId.set(node.id, { node, ...spot, width: widthOf(node), height: headHeight(node) + rowsHeight(rows), rows });
  }
  const pushed = makeRoom(byId, layout);
  const placed = [...byId.values()];
  const lines = edges.flatMap((edge) => {
    const anchors = edgeAnchors(edge, byId, layout, pushed);
    return anchors === null ? [] : [{ key: linkKey(edge.source, edge.target), edge, anchors, box: boxAround(anchors) }];
  });
  return { nodes: placed, byId, edges: lines, bounds: boundsOf(placed) };
}

/** Moves elements below enlarged nodes down, and returns the new y of bends. */
function makeRoom(byId: Map<string, SceneNode>, layout: Layout): Map<string, number[]> {
  const bends = new Map<string, number[]>();
  for (const [key, spots] of layout.bends) bends.set(key, spots.map((spot) => spot.y));
  let grown = false;
  for (const placed of byId.values()) grown ||= placed.rows !== null;
  if (!grown) return bends;
  interface Piece { y: number; height: number; move: (y: number) => void }
  const layers = new Map<number, Piece[]>();
  const add = (layer: number, piece: Piece) => {
    const row = layers.get(layer);
    if (row) row.push(piece);
    else layers.set(layer, [piece]);
  };
  for (const placed of byId.values()) {
    add(placed.layer, { y: placed.y, height: placed.height + ROW_GAP, move: (y) => (placed.y = y) });
  }
  for (const [key, spots] of layout.bends) {
    spots.forEach((spot, i) => add(spot.layer, { y: spot.y, height: 1, move: (y) => (bends.get(key)![i] = y) }));
  }
  for (const row of layers.values()) {
    row.sort((a, b) => a.y - b.y);
    let free = -Infinity;
    for (const piece of row) {
      const y = Math.max(piece.y, free);
      if (y !== piece.y) piece.move(y);
      free = y + piece.height;
    }
  }
  return bends;
}

function headMiddle(placed: SceneNode): number {
  return placed.y + headHeight(placed.node) / 2;
}

function edgeAnchors(link: Link, byId: Map<string, SceneNode>, layout: Layout, bends: Map<string, number[]>): Anchors | null {
  const source = byId.get(link.source);
  const target = byId.get(link.target);
  if (source === undefined || target === undefined) return null;
  const key = linkKey(link.source, link.target);
  const spots = layout.bends.get(key);
  const start = source.x + source.width;
  if (spots === undefined || target.x <= start) return anchorsBetween(start, headMiddle(source), target.x, headMiddle(target), belowBoth(source, target));
  const anchors: Anchors = [start, headMiddle(source)];
  spots.forEach((spot, i) => {
    const y = bends.get(key)![i]!;
    const lane = layout.lanes.get(spot.layer)!;
    anchors.push(lane.x, y, lane.x + lane.width, y);
  });
  anchors.push(target.x, headMiddle(target));
  return anchors;
}

function belowBoth(one: SceneNode, other: SceneNode): number {
  return Math.max(one.y + one.height, other.y + other.height) + ROW_GAP / 2;
}

function boxAround(anchors: Anchors): Box4 {
  let [left, top, right, bottom] = [Infinity, Infinity, -Infinity, -Infinity];
  for (let i = 0; i < anchors.length; i += 2) {
    left = Math.min(left, anchors[i]!);
    right = Math.max(right, anchors[i]!);
    top = Math.min(top, anchors[i + 1]!);
    bottom = Math.max(bottom, anchors[i + 1]!);
  }
  return [left, top, right, bottom];
}

/** The lines of column edges between visible rows. Without a visible row, a line ends at the head of the dataset. */
export function columnLines(edges: readonly ColumnEdge[], scene: Scene): SceneColumnEdge[] {
  return edges.flatMap((edge) => {
    const source = scene.byId.get(edge.source.dataset);
    const target = scene.byId.get(edge.target.dataset);
    if (source === undefined || target === undefined || source === target) return [];
    const anchors = anchorsBetween(source.x + source.width, columnY(source, edge.source.column), target.x, columnY(target, edge.target.column), belowBoth(source, target));
    return [{ key: columnEdgeKey(edge), edge, anchors }];
  });
}

export function columnEdgeKey({ source, target, type, subtype, job }: ColumnEdge): string {
  return [source.dataset, source.column, target.dataset, target.column, type, subtype, job ?? ""].join("\u0000");
}

function columnY(placed: SceneNode, column: string): number {
  const middle = placed.rows === null ? undefined : rowMiddle(placed.rows, column);
  return middle === undefined ? headMiddle(placed) : placed.y + headHeight(placed.node) + middle;
}

function boundsOf(nodes: readonly SceneNode[]): Bounds {
  let [left, top, right, bottom] = [Infinity, Infinity, -Infinity, -Infinity];
  for (const { x, y, width, height } of nodes) {
    left = Math.min(left, x);
    top = Math.min(top, y);
    right = Math.max(right, x + width);
    bottom = Math.max(bottom, y + height);
  }
  return nodes.length ? { x: left, y: top, width: right - left, height: bottom - top } : { x: 0, y: 0, width: 1, height: 1 };
}

/** The number of nodes in a part of the plane. */
export function countVisible(scene: Scene, view: Bounds, stopAfter: number): number {
  let count = 0;
  for (const { x, y, width, height } of scene.nodes) {
    if (x < view.x + view.width && x + width > view.x && y < view.y + view.height && y + height > view.y && ++count > stopAfter) break;
  }
  return count;
}

export function nodeAt(scene: Scene, x: number, y: number): SceneNode | undefined {
  return scene.nodes.find((one) => x >= one.x && x <= one.x + one.width && y >= one.y && y <= one.y + one.height);
}

const LOOP = 200; // an edge that runs backwards leaves its box sideways

/** The edge nearest to a point, if one is near enough. */
export function edgeAt(scene: Scene, x: number, y: number, within: number): SceneEdge | undefined {
  let found: SceneEdge | undefined;
  let nearest = Infinity;
  for (const edge of scene.edges) {
    const [left, top, right, bottom] = edge.box;
    if (y < top - within || y > bottom + within || x < left - within - LOOP || x > right + within + LOOP) continue;
    const distance = distanceTo(edge.anchors, x, y, within);
    if (distance < nearest) {
      nearest = distance;
      found = edge;
    }
  }
  return found;
}
