/** The layer of each vertex. Every edge leads to a layer further right. */

/** A directed graph of the vertices 0 … count-1. Edge `i` runs from `from[i]` to `to[i]`. */
export interface Digraph {
  count: number;
  from: Int32Array;
  to: Int32Array;
}

/** The neighbours of vertex `v` are `items[start[v]]` … `items[start[v + 1] - 1]`. */
export interface Neighbours {
  start: Int32Array;
  items: Int32Array;
}

export function neighbours(count: number, from: Int32Array, to: Int32Array): Neighbours {
  const start = new Int32Array(count + 1);
  for (const vertex of from) start[vertex + 1]!++;
  for (let v = 0; v < count; v++) start[v + 1]! += start[v]!;
  const next = start.slice();
  const items = new Int32Array(from.length);
  for (let i = 0; i < from.length; i++) items[next[from[i]!]!++] = to[i]!;
  return { start, items };
}

/** The same graph without cycles: edges that close a cycle of a depth-first search are turned round. */
export function withoutCycles(graph: Digraph): Digraph {
  const { count } = graph;
  const incoming = new Int32Array(count);
  for (const vertex of graph.to) incoming[vertex]!++;
  const order = edgesBySource(graph);
  const state = new Uint8Array(count); // 0 unseen, 1 on the path, 2 done
  const next = order.start.slice(0, count);
  const turned = new Uint8Array(graph.from.length);
  const path: number[] = [];
  const visit = (root: number) => {
    if (state[root] !== 0) return;
    state[root] = 1;
    path.push(root);
    while (path.length) {
      const vertex = path[path.length - 1]!;
      const position = next[vertex]!;
      if (position === order.start[vertex + 1]) {
        state[vertex] = 2;
        path.pop();
        continue;
      }
      next[vertex] = position + 1;
      const edge = order.items[position]!;
      const target = graph.to[edge]!;
      if (state[target] === 1) turned[edge] = 1;
      else if (state[target] === 0) {
        state[target] = 1;
        path.push(target);
      }
    }
  };
  for (let v = 0; v < count; v++) if (incoming[v] === 0) visit(v);
  for (let v = 0; v < count; v++) visit(v);
  const from = graph.from.map((vertex, edge) => (turned[edge] ? graph.to[edge]! : vertex));
  const to = graph.to.map((vertex, edge) => (turned[edge] ? graph.from[edge]! : vertex));
  return { count, from, to };
}

function edgesBySource(graph: Digraph): Neighbours {
  return neighbours(graph.count, graph.from, Int32Array.from(graph.from.keys()));
}

/** The vertices of an acyclic graph, sources first. */
export function topologicalOrder({ count, from, to }: Digraph): Int32Array {
  const { start, items } = neighbours(count, from, to);
  const waiting = new Int32Array(count);
  for (const vertex of to) waiting[vertex]!++;
  const order = new Int32Array(count);
  let end = 0;
  for (let v = 0; v < count; v++) if (waiting[v] === 0) order[end++] = v;
  for (let i = 0; i < end; i++) {
    const vertex = order[i]!;
    for (let k = start[vertex]!; k < start[vertex + 1]!; k++) {
      const target = items[k]!;
      if (--waiting[target]! === 0) order[end++] = target;
    }
  }
  return order;
}

/** Longest path from the sources; a vertex without inputs sits one layer left of its first reader. */
export function longestPathLayers(graph: Digraph): Int32Array {
  const { count, from, to } = graph;
  const out = neighbours(count, from, to);
  const into = neighbours(count, to, from);
  const layers = new Int32Array(count);
  for (const vertex of topologicalOrder(graph)) {
    for (let k = out.start[vertex]!; k < out.start[vertex + 1]!; k++) {
      const target = out.items[k]!;
      layers[target] = Math.max(layers[target]!, layers[vertex]! + 1);
    }
  }
  for (let v = 0; v < count; v++) {
    if (into.start[v] !== into.start[v + 1] || out.start[v] === out.start[v + 1]) continue;
    layers[v] = nearest(out, layers, v) - 1;
  }
  return layers;
}

/**
 * Layers of a graph of which some vertices have one already (`known`, with the others NaN). A known
 * layer stays unless an edge would run backwards; a new vertex sits beside the neighbour it came with.
 */
export function extendLayers(graph: Digraph, known: Float64Array): Int32Array {
  const { count, from, to } = graph;
  const out = neighbours(count, from, to);
  const into = neighbours(count, to, from);
  const order = topologicalOrder(graph);
  const wanted = known.slice();
  for (const vertex of order.toReversed()) {
    if (!Number.isNaN(wanted[vertex]!)) continue;
    const reader = nearest(out, wanted, vertex);
    if (reader !== Infinity) wanted[vertex] = reader - 1;
  }
  const layers = new Int32Array(count);
  for (const vertex of order) {
    let lowest = -Infinity;
    for (let k = into.start[vertex]!; k < into.start[vertex + 1]!; k++) {
      lowest = Math.max(lowest, layers[into.items[k]!]! + 1);
    }
    const want = wanted[vertex]!;
    layers[vertex] = Number.isNaN(want) ? Math.max(lowest, lowest === -Infinity ? 0 : lowest) : Math.max(want, lowest);
  }
  return layers;
}

function nearest(out: Neighbours, layers: Int32Array | Float64Array, vertex: number): number {
  let least = Infinity;
  for (let k = out.start[vertex]!; k < out.start[vertex + 1]!; k++) {
    const layer = layers[out.items[k]!]!;
    if (layer < least) least = layer;
  }
  return least;
}
