/** Small graphs for unit tests. */

import type { ColumnEdge, GraphEdge, GraphNode } from "./graph_types";

export function dataset(id: string, more: Partial<GraphNode> = {}): GraphNode {
  return {
    id, kind: "dataset", type: "table", namespace: "db", name: id, label: id, owners: [], tags: [], marks: [], aliases: [], statements: [],
    column_total: 0, upstream_total: 0, downstream_total: 0, depth: 0, blind_spot_count: 0, ...more,
  };
}

export function job(id: string, more: Partial<GraphNode> = {}): GraphNode {
  return dataset(id, { kind: "job", type: "job", downstream_total: 1, ...more });
}

export function edge(source: string, target: string, more: Partial<GraphEdge> = {}): GraphEdge {
  return {
    source, target, kind: "reads", confidence: "exact", status: "active", first_seen: "", last_seen: "", first_event: "", last_event: "", ...more,
  };
}

/** A column edge between `dataset.column` and `dataset.column`. */
export function columnEdge(source: string, target: string, more: Partial<ColumnEdge> = {}): ColumnEdge {
  const place = (text: string) => ({ dataset: text.split(".")[0]!, column: text.split(".")[1]! });
  return {
    source: place(source), target: place(target), type: "DIRECT", subtype: "IDENTITY", masking: false, confidence: "exact",
    status: "active", first_seen: "", last_seen: "", first_event: "", last_event: "", ...more,
  };
}
