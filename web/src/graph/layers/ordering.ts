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

/** The vertices of each layer from top to bottom: barycenter sweeps, of which the best is kept. */
export function orderLayers(graph: ProperGraph): Int32Array[] {
  const right = neighbours(graph.count, graph.from, graph.to);
  const left = neighbours(graph.count, graph.to, graph.from);
  const rows = depthFirstRows(graph, right);
  const position = new Int32Array(graph.count);
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
  return best;
}

function number(row: Int32Array, position: Int32Array): void {
  for (let i = 0; i < row.length; i++) position[row[i]!] = i;
}

/** Vertices in the order of a depth-first search, so that what belongs together starts together. */
function depthFirstRows(graph: ProperGraph, right: Neighbours): Int32Array[] {
  const rows: number[][] = Array.from({ length: graph.layerCount }, () => []);
  const seen = new Uint8Array(graph.count);
  const stack: number[] = [];
  for (let root = 0; root < graph.count; root++) {
    stack.push(root);
    while (stack.length) {
      const vertex = stack.pop()!;
      if (seen[vertex]) continue;
      seen[vertex] = 1;
      rows[graph.layers[vertex]!]!.push(vertex);
      for (let k = right.start[vertex + 1]! - 1; k >= right.start[vertex]!; k--) {
        if (!seen[right.items[k]!]) stack.push(right.items[k]!);
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

function crossingsSaved(sides: Neighbours, upper: number, lower: number, position: Int32Array): number {
  let saved = 0;
  if ((sides.start[upper + 1]! - sides.start[upper]!) * (sides.start[lower + 1]! - sides.start[lower]!) > MOST_PAIRS) return 0;
  for (let a = sides.start[upper]!; a < sides.start[upper + 1]!; a++) {
    const first = position[sides.items[a]!]!;
    for (let b = sides.start[lower]!; b < sides.start[lower + 1]!; b++) saved += Math.sign(first - position[sides.items[b]!]!);
  }
  return saved;
}
