/**
 * A layered layout from left to right, as a pure function: the same graph gives the same picture.
 *
 * Cycles are opened, layers are longest paths, long edges get a bend in every layer they cross, the
 * order inside a layer has few crossings, and y is as near to the neighbours as the order allows.
 * With a previous layout, placed nodes keep their places and only new nodes are placed beside them.
 */

import { extendLayers, longestPathLayers, withoutCycles, type Digraph } from "./layers/layering";
import { orderLayers } from "./layers/ordering";
import { placeRows } from "./layers/placement";
import { Shelves } from "./layers/shelves";

export interface Box {
  id: string;
  width: number;
  height: number;
}

export interface Link {
  source: string;
  target: string;
}

/** The top left corner of a box. */
export interface Spot {
  x: number;
  y: number;
  layer: number;
}

/** The height at which a long edge passes a layer between its ends. */
export interface Bend {
  y: number;
  layer: number;
}

/** The left side and the width of a layer. */
export interface Lane {
  x: number;
  width: number;
}

export interface Layout {
  lanes: Map<number, Lane>;
  spots: Map<string, Spot>;
  bends: Map<string, Bend[]>; // by `linkKey`, from left to right
}

export const LAYER_GAP = 78;
export const ROW_GAP = 22;
const BEND_HEIGHT = 20;
const BEND_WEIGHT = 3; // long edges run straight rather than short ones
const MOST_BENDS = 60_000;
const EMPTY_WIDTH = 120; // of a layer that only bends pass
const GRID_FROM = 9; // that many boxes without edges are laid out as a grid

export function linkKey(source: string, target: string): string {
  return `${source}\u0000${target}`;
}

export function layout(boxes: readonly Box[], links: readonly Link[], previous?: Layout): Layout {
  const graph = indexed(boxes, links);
  const isKnown = previous !== undefined && boxes.some((box) => previous.spots.has(box.id));
  return isKnown ? extended(boxes, graph, previous) : fresh(boxes, graph);
}

/** Links between known boxes, each once, without loops; cycles are opened. */
function indexed(boxes: readonly Box[], links: readonly Link[]): Digraph {
  const index = new Map(boxes.map((box, i) => [box.id, i]));
  const from: number[] = [];
  const to: number[] = [];
  const seen = new Set<number>();
  for (const link of links) {
    const source = index.get(link.source);
    const target = index.get(link.target);
    if (source === undefined || target === undefined || source === target) continue;
    const key = source * boxes.length + target;
    if (seen.has(key)) continue;
    seen.add(key);
    from.push(source);
    to.push(target);
  }
  return withoutCycles({ count: boxes.length, from: Int32Array.from(from), to: Int32Array.from(to) });
}

/** A graph in which every edge reaches the next layer only: vertices after the boxes are bends. */
interface Proper {
  graph: Digraph & { layers: Int32Array; layerCount: number };
  chains: { source: number; target: number; bends: number[] }[];
  lowest: number;
}

function withBends({ count, from, to }: Digraph, layers: Int32Array): Proper {
  let lowest = Infinity;
  let highest = -Infinity;
  for (const layer of layers) {
    lowest = Math.min(lowest, layer);
    highest = Math.max(highest, layer);
  }
  const allLayers = Array.from(layers, (layer) => layer - lowest);
  const sources: number[] = [];
  const targets: number[] = [];
  const chains: Proper["chains"] = [];
  let bendCount = 0;
  for (let i = 0; i < from.length; i++) {
    const source = from[i]!;
    const target = to[i]!;
    const bends: number[] = [];
    let last = source;
    const span = layers[target]! - layers[source]!;
    if (span > 1 && bendCount + span > MOST_BENDS) continue; // drawn straight, and not counted as crossing
    for (let layer = layers[source]! + 1; layer < layers[target]!; layer++) {
      const bend = allLayers.length;
      allLayers.push(layer - lowest);
      bends.push(bend);
      sources.push(last);
      targets.push(bend);
      last = bend;
    }
    bendCount += bends.length;
    sources.push(last);
    targets.push(target);
    if (bends.length) chains.push({ source, target, bends });
  }
  return {
    graph: {
      count: allLayers.length,
      from: Int32Array.from(sources),
      to: Int32Array.from(targets),
      layers: Int32Array.from(allLayers),
      layerCount: count ? highest - lowest + 1 : 0,
    },
    chains,
    lowest: count ? lowest : 0,
  };
}

function fresh(boxes: readonly Box[], all: Digraph): Layout {
  const { linked, loose } = splitLoose(boxes, all);
  const graph = linked.length === boxes.length ? all : restricted(all, linked);
  const proper = withBends(graph, longestPathLayers(graph));
  const heights = new Float64Array(proper.graph.count).fill(BEND_HEIGHT);
  const weights = new Float64Array(proper.graph.count).fill(BEND_WEIGHT);
  linked.forEach((box, i) => {
    heights[i] = boxes[box]!.height + ROW_GAP;
    weights[i] = 1;
  });
  const y = placeRows(proper.graph, orderLayers(proper.graph), heights, weights);
  const layerOf = new Map([...linked.map((index, i): [number, number] => [index, proper.graph.layers[i]!])]);
  const grid = gridOf(loose.map((index) => boxes[index]!));
  loose.forEach((index, i) => layerOf.set(index, i % grid.columns));
  const lanes = layLanes(boxes.map((box, i) => ({ layer: layerOf.get(i)!, width: box.width })), new Map());
  const result: Layout = { lanes, spots: new Map(), bends: new Map() };
  let bottom = -3 * ROW_GAP;
  linked.forEach((index, i) => {
    const box = boxes[index]!;
    const layer = proper.graph.layers[i]!;
    const top = Math.round(y[i]! - box.height / 2);
    result.spots.set(box.id, { x: boxX(layer, box, lanes), y: top, layer });
    bottom = Math.max(bottom, top + box.height);
  });
  for (const { source, target, bends } of proper.chains) {
    const key = linkKey(boxes[linked[source]!]!.id, boxes[linked[target]!]!.id);
    result.bends.set(key, bends.map((bend) => ({ y: Math.round(y[bend]!), layer: proper.graph.layers[bend]! })));
  }
  loose.forEach((index, i) => {
    const box = boxes[index]!;
    const layer = i % grid.columns;
    const top = bottom + 3 * ROW_GAP + Math.floor(i / grid.columns) * grid.rowHeight;
    result.spots.set(box.id, { x: boxX(layer, box, lanes), y: top, layer });
  });
  return result;
}

/** Boxes with edges, and boxes without if there are enough of them for a grid. */
function splitLoose(boxes: readonly Box[], graph: Digraph): { linked: number[]; loose: number[] } {
  const touched = new Uint8Array(boxes.length);
  for (const vertex of graph.from) touched[vertex] = 1;
  for (const vertex of graph.to) touched[vertex] = 1;
  const all = boxes.map((_, i) => i);
  const loose = all.filter((i) => !touched[i]);
  return loose.length < GRID_FROM ? { linked: all, loose: [] } : { linked: all.filter((i) => touched[i]), loose };
}

function restricted(graph: Digraph, kept: number[]): Digraph {
  const index = new Int32Array(graph.count).fill(-1);
  kept.forEach((vertex, i) => (index[vertex] = i));
  return { count: kept.length, from: graph.from.map((v) => index[v]!), to: graph.to.map((v) => index[v]!) };
}

/** A grid that is about twice as wide as high. */
function gridOf(boxes: readonly Box[]): { columns: number; rowHeight: number } {
  const rowHeight = boxes.reduce((most, box) => Math.max(most, box.height), 0) + ROW_GAP;
  const width = boxes.reduce((most, box) => Math.max(most, box.width), 0) + LAYER_GAP;
  return { columns: Math.max(1, Math.ceil(Math.sqrt((boxes.length * rowHeight * 1.8) / width))), rowHeight };
}

/** A lane for every layer from the first to the last. Known lanes stay; a wider box then reaches into the gap. */
function layLanes(boxes: readonly { layer: number; width: number }[], known: ReadonlyMap<number, Lane>): Map<number, Lane> {
  const widths = new Map<number, number>();
  for (const { layer, width } of boxes) widths.set(layer, Math.max(width, widths.get(layer) ?? 0));
  const lanes = new Map(known);
  const layers = [...widths.keys(), ...known.keys()];
  if (!layers.length) return lanes;
  let [first, last] = [Infinity, -Infinity];
  for (const layer of layers) [first, last] = [Math.min(first, layer), Math.max(last, layer)];
  const start = known.size ? Math.min(...known.keys()) : first;
  for (let layer = start; layer <= last; layer++) {
    const before = lanes.get(layer - 1);
    if (!lanes.has(layer)) lanes.set(layer, { x: before ? before.x + before.width + LAYER_GAP : 0, width: widths.get(layer) ?? EMPTY_WIDTH });
  }
  for (let layer = start - 1; layer >= first; layer--) {
    const width = widths.get(layer) ?? EMPTY_WIDTH;
    lanes.set(layer, { x: lanes.get(layer + 1)!.x - LAYER_GAP - width, width });
  }
  return lanes;
}

function boxX(layer: number, box: Box, lanes: ReadonlyMap<number, Lane>): number {
  const lane = lanes.get(layer)!;
  return lane.x + (lane.width - box.width) / 2;
}

/** Placed nodes keep their place. The others get the free space nearest to their neighbours. */
function extended(boxes: readonly Box[], graph: Digraph, previous: Layout): Layout {
  const known = Float64Array.from(boxes, (box) => previous.spots.get(box.id)?.layer ?? NaN);
  const layers = extendLayers(graph, known);
  const proper = withBends(graph, layers);
  const shelves = new Shelves();
  const y = new Float64Array(proper.graph.count).fill(NaN); // centres
  boxes.forEach((box, i) => {
    const spot = previous.spots.get(box.id);
    if (spot === undefined || spot.layer !== layers[i]) return;
    y[i] = spot.y + box.height / 2;
    shelves.take(spot.layer, spot.y, box.height + ROW_GAP);
  });
  for (const { source, target, bends } of proper.chains) {
    const old = previous.bends.get(linkKey(boxes[source]!.id, boxes[target]!.id));
    for (const bend of bends) {
      const layer = proper.graph.layers[bend]! + proper.lowest;
      const spot = old?.find((one) => one.layer === layer);
      if (spot === undefined) continue;
      y[bend] = spot.y;
      shelves.take(layer, spot.y - BEND_HEIGHT / 2, BEND_HEIGHT);
    }
  }
  insertRest(proper, boxes, y, shelves, previous);
  const lanes = layLanes(boxes.map((box, i) => ({ layer: layers[i]!, width: box.width })), previous.lanes);
  const result: Layout = { lanes, spots: new Map(), bends: new Map() };
  boxes.forEach((box, i) => {
    const layer = layers[i]!;
    result.spots.set(box.id, { x: boxX(layer, box, lanes), y: Math.round(y[i]! - box.height / 2), layer });
  });
  for (const { source, target, bends } of proper.chains) {
    const points = bends.map((bend) => ({ y: Math.round(y[bend]!), layer: proper.graph.layers[bend]! + proper.lowest }));
    result.bends.set(linkKey(boxes[source]!.id, boxes[target]!.id), points);
  }
  return result;
}

/** Places vertices without y, breadth first from those that have one. */
function insertRest({ graph, lowest }: Proper, boxes: readonly Box[], y: Float64Array, shelves: Shelves, previous: Layout): void {
  const touching: number[][] = Array.from({ length: graph.count }, () => []);
  for (let i = 0; i < graph.from.length; i++) {
    touching[graph.from[i]!]!.push(graph.to[i]!);
    touching[graph.to[i]!]!.push(graph.from[i]!);
  }
  const wantedY = (vertex: number) => {
    const before = vertex < boxes.length ? previous.spots.get(boxes[vertex]!.id) : undefined;
    if (before !== undefined) return before.y + boxes[vertex]!.height / 2; // it had to leave its layer
    const placed = touching[vertex]!.filter((other) => !Number.isNaN(y[other]!));
    return placed.reduce((sum, other) => sum + y[other]!, 0) / placed.length;
  };
  let rest = Array.from({ length: graph.count }, (_, v) => v).filter((v) => Number.isNaN(y[v]!));
  while (rest.length) {
    const wave = rest.map((vertex) => ({ vertex, wanted: wantedY(vertex) })).filter(({ wanted }) => !Number.isNaN(wanted));
    if (!wave.length) wave.push({ vertex: rest[0]!, wanted: shelves.bottom() + 2 * ROW_GAP });
    wave.sort((a, b) => a.wanted - b.wanted || a.vertex - b.vertex);
    for (const { vertex, wanted } of wave) {
      const isBox = vertex < boxes.length;
      const height = isBox ? boxes[vertex]!.height : BEND_HEIGHT;
      const top = shelves.place(graph.layers[vertex]! + lowest, wanted - height / 2, isBox ? height + ROW_GAP : height);
      y[vertex] = top + height / 2;
    }
    rest = rest.filter((vertex) => Number.isNaN(y[vertex]!));
  }
}
