/** The y of each vertex: near its neighbours, in the order of its layer, without overlap. */

import { neighbours } from "./layering";
import type { ProperGraph } from "./ordering";

const SWEEPS = 8;

/** Centres of all vertices. `heights` include the space that is kept free around a vertex. */
export function placeRows(graph: ProperGraph, rows: Int32Array[], heights: Float64Array, weights: Float64Array): Float64Array {
  const left = neighbours(graph.count, graph.to, graph.from);
  const right = neighbours(graph.count, graph.from, graph.to);
  const y = new Float64Array(graph.count);
  for (const row of rows) stack(row, heights, y);
  const wanted = new Float64Array(graph.count);
  for (let sweep = 0; sweep < SWEEPS; sweep++) {
    const forwards = sweep % 2 === 0;
    const both = sweep >= SWEEPS - 2;
    for (let i = 0; i < rows.length; i++) {
      const row = rows[forwards ? i : rows.length - 1 - i]!;
      for (const vertex of row) {
        let sum = 0;
        let total = 0;
        for (const sides of both ? [left, right] : [forwards ? left : right]) {
          for (let k = sides.start[vertex]!; k < sides.start[vertex + 1]!; k++) {
            const other = sides.items[k]!;
            sum += y[other]! * weights[other]!;
            total += weights[other]!;
          }
        }
        wanted[vertex] = total ? sum / total : y[vertex]!;
      }
      poolAdjacentViolators(row, wanted, heights, weights, y);
    }
  }
  return y;
}

function stack(row: Int32Array, heights: Float64Array, y: Float64Array): void {
  let total = 0;
  for (const vertex of row) total += heights[vertex]!;
  let top = -total / 2;
  for (const vertex of row) {
    y[vertex] = top + heights[vertex]! / 2;
    top += heights[vertex]!;
  }
}

/** Moves the vertices of a row as near as possible to their ideal places (least squares), in order and
 * without overlap. Isotonic regression on what is left of y when the space above is taken away.
 */
export function poolAdjacentViolators(
  row: Int32Array,
  wanted: Float64Array,
  heights: Float64Array,
  weights: Float64Array,
  y: Float64Array,
): void {
  const sums: number[] = [];
  const masses: number[] = [];
  const sizes: number[] = [];
  let offset = 0;
  for (let i = 0; i < row.length; i++) {
    const vertex = row[i]!;
    if (i > 0) offset += (heights[row[i - 1]!]! + heights[vertex]!) / 2;
    let mass = weights[vertex]!;
    let sum = (wanted[vertex]! - offset) * mass;
    let size = 1;
    while (sums.length && sums[sums.length - 1]! * mass >= sum * masses[masses.length - 1]!) {
      sum += sums.pop()!;
      mass += masses.pop()!;
      size += sizes.pop()!;
    }
    sums.push(sum);
    masses.push(mass);
    sizes.push(size);
  }
  offset = 0;
  let i = 0;
  for (let block = 0; block < sums.length; block++) {
    const level = sums[block]! / masses[block]!;
    for (let end = i + sizes[block]!; i < end; i++) {
      const vertex = row[i]!;
      if (i > 0) offset += (heights[row[i - 1]!]! + heights[vertex]!) / 2;
      y[vertex] = level + offset;
    }
  }
}
