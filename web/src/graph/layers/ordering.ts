/** The order of the vertices inside each layer, with few crossings of edges. */

import { neighbours, type Digraph, type Neighbours } from "./layering";

const MOST_SWEEPS = 24;
const SWEEPS_WITHOUT_GAIN = 4;
const PRECISION = 1024; // of a barycenter, in parts of a place
const PLACES = 2 ** 21; // more than a layer has

/** A graph whose edges all run from one layer to the next. `layers[v]` counts from 0. */
export interface ProperGraph extends Digraph {
  layers: Int32Array;
  layerCount: number;
}

const SEVERAL_STARTS_BELOW = 1_000; // vertices: below, several starts take little time

/** The vertices of each layer from top to bottom. A small graph is ordered from several starts, and the best is kept. */
export function orderLayers(graph: ProperGraph): Int32Array[] {
  const right = neighbours(graph.count, graph.from, graph.to);
  const left = neighbours(graph.count, graph.to, graph.from);
  const position = new Int32Array(graph.count);
  const starts = graph.count < SEVERAL_STARTS_BELOW ? [right, left] : [right];
  let best: Int32Array[] | undefined;
  let fewest = Infinity;
  for (const sides of starts) {
    for (const backwards of starts.length > 1 ? [false, true] : [false]) {
      const rows = orderFrom(depthFirstRows(graph, sides, backwards), left, right, position);
      rows.forEach((row) => number(row, position));
      const crossings = starts.length > 1 ? countCrossings(rows, right, position) : 0;
      if (crossings < fewest) [best, fewest] = [rows, crossings];
    }
  }
  return best!;
}

/** Barycenter sweeps, of which the best is kept; then moves of single vertices. */
function orderFrom(rows: Int32Array[], left: Neighbours, right: Neighbours, position: Int32Array): Int32Array[] {
  rows.forEach((row) => number(row, position));
  let best = rows.map((row) => row.slice());
  let fewest = countCrossings(rows, right, position);
  let idle = 0;
  for (let sweep = 0; sweep < MOST_SWEEPS && idle < SWEEPS_WITHOUT_GAIN && fewest > 0; sweep++) {
    const forwards = sweep % 2 === 0;
    for (let i = 1; i < rows.length; i++) {
      const layer = forwards ? i : rows.length - 1 - i;
      sortByBarycenter(rows, layer, forwards ? left : right, forwards ? layer - 1 : layer + 1, position);
    }
    const crossings = countCrossings(rows, right, position);
    if (crossings < fewest) {
      fewest = crossings;
      best = rows.map((row) => row.slice());
      idle = 0;
    } else idle++;
  }
  exchangeNeighbours(best, left, right, position);
  siftVertices(best, left, right, position);
  return best;
}

function number(row: Int32Array, position: Int32Array): void {
  for (let i = 0; i < row.length; i++) position[row[i]!] = i;
}

/** Vertices in the order of a depth-first search, so that connected vertices start side by side. */
function depthFirstRows(graph: ProperGraph, sides: Neighbours, backwards: boolean): Int32Array[] {
  const rows: number[][] = Array.from({ length: graph.layerCount }, () => []);
  const seen = new Uint8Array(graph.count);
  const stack: number[] = [];
  for (let i = 0; i < graph.count; i++) {
    stack.push(backwards ? graph.count - 1 - i : i);
    while (stack.length) {
      const vertex = stack.pop()!;
      if (seen[vertex]) continue;
      seen[vertex] = 1;
      rows[graph.layers[vertex]!]!.push(vertex);
      for (let k = sides.start[vertex + 1]! - 1; k >= sides.start[vertex]!; k--) {
        if (!seen[sides.items[k]!]) stack.push(sides.items[k]!);
      }
    }
  }
  return rows.map((row) => Int32Array.from(row));
}

function sortByBarycenter(rows: Int32Array[], layer: number, sides: Neighbours, other: number, position: Int32Array): void {
  const row = rows[layer]!;
  const scale = rows[other]!.length / row.length;
  const keys = new Float64Array(row.length); // the barycenter, and below it the old place: sorted without a function
  for (let i = 0; i < row.length; i++) {
    const vertex = row[i]!;
    const first = sides.start[vertex]!;
    const end = sides.start[vertex + 1]!;
    let sum = 0;
    for (let k = first; k < end; k++) sum += position[sides.items[k]!]!;
    keys[i] = Math.round((end > first ? sum / (end - first) : i * scale) * PRECISION) * PLACES + i;
  }
  keys.sort();
  const sorted = new Int32Array(row.length);
  for (let i = 0; i < row.length; i++) sorted[i] = row[keys[i]! % PLACES]!;
  rows[layer] = sorted;
  number(sorted, position);
}

/** The number of pairs of edges that cross, between each layer and the next. */
export function countCrossings(rows: Int32Array[], right: Neighbours, position: Int32Array): number {
  let crossings = 0;
  const widest = rows.reduce((most, row) => Math.max(most, row.length), 0);
  const tree = new Int32Array(widest + 1);
  for (let layer = 0; layer + 1 < rows.length; layer++) {
    const row = rows[layer]!;
    const size = rows[layer + 1]!.length;
    tree.fill(0, 0, size + 1);
    let inserted = 0;
    for (let place = 0; place < row.length; place++) {
      const first = right.start[row[place]!]!;
      const end = right.start[row[place]! + 1]!;
      // Two edges of one vertex do not cross: all are counted before any is inserted.
      for (let k = first; k < end; k++) {
        let notBelow = 0;
        for (let i = position[right.items[k]!]! + 1; i > 0; i -= i & -i) notBelow += tree[i]!;
        crossings += inserted - notBelow;
      }
      for (let k = first; k < end; k++) {
        for (let i = position[right.items[k]!]! + 1; i <= size; i += i & -i) tree[i]!++;
      }
      inserted += end - first;
    }
  }
  return crossings;
}

const EXCHANGE_ROUNDS = 3;
const MOST_PAIRS = 10_000; // of edges to compare for one swap: two hubs side by side stay as they are

/** Swaps vertices that lie next to each other where that saves crossings. */
function exchangeNeighbours(rows: Int32Array[], left: Neighbours, right: Neighbours, position: Int32Array): void {
  rows.forEach((row) => number(row, position));
  for (let round = 0, swapped = true; swapped && round < EXCHANGE_ROUNDS; round++) {
    swapped = false;
    for (const row of rows) {
      for (let i = 1; i < row.length; i++) {
        const [upper, lower] = [row[i - 1]!, row[i]!];
        const gain = crossingsSaved(left, upper, lower, position) + crossingsSaved(right, upper, lower, position);
        if (gain <= 0) continue;
        row[i - 1] = lower;
        row[i] = upper;
        position[lower] = i - 1;
        position[upper] = i;
        swapped = true;
      }
    }
  }
}

const SIFT_ROUNDS = 8;
const MOST_SIFT_WORK = 20_000_000; // pairs of vertices and of their edges: a fraction of a second

/** Moves each vertex to the place in its layer that saves the most crossings, until the work is spent. */
function siftVertices(rows: Int32Array[], left: Neighbours, right: Neighbours, position: Int32Array): void {
  const degree = (vertex: number) => left.start[vertex + 1]! - left.start[vertex]! + right.start[vertex + 1]! - right.start[vertex]!;
  let work = 0;
  for (let round = 0, moved = true; moved && round < SIFT_ROUNDS; round++) {
    moved = false;
    for (const row of rows) {
      const edges = row.reduce((sum, vertex) => sum + degree(vertex), 0);
      for (const vertex of row.slice()) {
        work += row.length + degree(vertex) * edges;
        if (work > MOST_SIFT_WORK) return;
        const place = bestPlace(row, vertex, left, right, position);
        if (place === position[vertex]) continue;
        moveTo(row, position[vertex]!, place);
        number(row, position);
        moved = true;
      }
    }
  }
}

/** Where in its row a vertex has the fewest crossings with the others, which keep their order. */
function bestPlace(row: Int32Array, vertex: number, left: Neighbours, right: Neighbours, position: Int32Array): number {
  const start = position[vertex]!;
  let best = start;
  let most = 0;
  for (let place = start + 1, saved = 0; place < row.length; place++) {
    saved += crossingsSaved(left, vertex, row[place]!, position) + crossingsSaved(right, vertex, row[place]!, position);
    if (saved > most) [most, best] = [saved, place];
  }
  for (let place = start - 1, saved = 0; place >= 0; place--) {
    saved += crossingsSaved(left, row[place]!, vertex, position) + crossingsSaved(right, row[place]!, vertex, position);
    if (saved > most) [most, best] = [saved, place];
  }
  return best;
}

function moveTo(row: Int32Array, from: number, to: number): void {
  const vertex = row[from]!;
  if (to > from) row.copyWithin(from, from + 1, to + 1);
  else row.copyWithin(to + 1, to, from);
  row[to] = vertex;
}

function crossingsSaved(sides: Neighbours, upper: number, lower: number, position: Int32Array): number {
  let saved = 0;
  if ((sides.start[upper + 1]! - sides.start[upper]!) * (sides.start[lower + 1]! - sides.start[lower]!) > MOST_PAIRS) return 0;
  for (let a = sides.start[upper]!; a < sides.start[upper + 1]!; a++) {
    const first = position[sides.items[a]!]!;
    for (let b = sides.start[lower]!; b < sides.start[lower + 1]!; b++) saved += Math.sign(first - position[sides.items[b]!]!);
  }
  return saved;
}
