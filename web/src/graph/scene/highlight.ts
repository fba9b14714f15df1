/** The elements in full colour while a column is locked or the pointer is on an element. Others fade. */

import type { ColumnEdge, ColumnPlace, GraphEdge } from "../graph_types";
import { linkKey } from "../layout";

export interface Highlight {
  nodes: ReadonlySet<string>;
  edges: ReadonlySet<string>; // by `linkKey`
}

/** The columns of each dataset that a column path touches. */
export function columnsOnPath(edges: readonly ColumnEdge[], locked: ColumnPlace | undefined): Map<string, Set<string>> {
  const columns = new Map<string, Set<string>>();
  const add = ({ dataset, column }: ColumnPlace) => {
    const known = columns.get(dataset);
    if (known) known.add(column);
    else columns.set(dataset, new Set([column]));
  };
  if (locked !== undefined) add(locked);
  for (const edge of edges) {
    add(edge.source);
    add(edge.target);
  }
  return columns;
}

/** The part of a column path that contains the given column: its upstream and its downstream. */
export function pathThrough(edges: readonly ColumnEdge[], start: ColumnPlace): ColumnEdge[] {
  const key = ({ dataset, column }: ColumnPlace) => linkKey(dataset, column);
  const kept = new Set<ColumnEdge>();
  for (const forwards of [true, false]) {
    const byEnd = new Map<string, ColumnEdge[]>();
    for (const edge of edges) {
      const end = key(forwards ? edge.source : edge.target);
      const known = byEnd.get(end);
      if (known) known.push(edge);
      else byEnd.set(end, [edge]);
    }
    const seen = new Set([key(start)]);
    const waiting = [key(start)];
    while (waiting.length) {
      for (const edge of byEnd.get(waiting.pop()!) ?? []) {
        kept.add(edge);
        const next = key(forwards ? edge.target : edge.source);
        if (!seen.has(next)) {
          seen.add(next);
          waiting.push(next);
        }
      }
    }
  }
  return edges.filter((edge) => kept.has(edge));
}

/** Datasets of the path, the jobs between two of them, and the edges between these nodes. */
export function highlightPath(path: readonly ColumnEdge[], start: ColumnPlace, edges: readonly GraphEdge[]): Highlight {
  const datasets = new Set(columnsOnPath(path, start).keys());
  const jobs = new Set(path.flatMap((edge) => (edge.job ? [edge.job] : [])));
  const pairs = new Set(path.map((edge) => linkKey(edge.source.dataset, edge.target.dataset)));
  const nodes = new Set([...datasets, ...jobs]);
  const kept = edges.filter(
    ({ source, target }) =>
      (datasets.has(source) && jobs.has(target)) || (jobs.has(source) && datasets.has(target)) || pairs.has(linkKey(source, target)),
  );
  return { nodes, edges: new Set(kept.map(({ source, target }) => linkKey(source, target))) };
}

/** A node with its direct edges and neighbours. */
export function highlightNode(id: string, edges: readonly GraphEdge[]): Highlight {
  const touching = edges.filter((edge) => edge.source === id || edge.target === id);
  return {
    nodes: new Set([id, ...touching.flatMap((edge) => [edge.source, edge.target])]),
    edges: new Set(touching.map(({ source, target }) => linkKey(source, target))),
  };
}
