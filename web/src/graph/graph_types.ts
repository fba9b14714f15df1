/** The answers of `/v1/graph`, `/v1/column-edges` and `/v1/column-path`. */

export type Change = "added" | "removed" | "changed";
export type Severity = "breaking" | "warning" | "safe" | "changed";
export type Side = "upstream" | "downstream" | "both";

export interface BlindSpot {
  kind: string;
  entity: string;
  message: string;
}

export interface RunSummary {
  id: string;
  job: string;
  state: string;
  started_at?: string | null;
  ended_at?: string | null;
  duration_seconds?: number | null;
}

export interface GraphColumn {
  name: string;
  type?: string | null;
  description?: string | null;
  tags: string[];
  marks: string[];
  change?: Change | null;
}

export interface GraphNode {
  id: string;
  kind: "dataset" | "job";
  type: string;
  namespace: string;
  name: string;
  label: string;
  description?: string | null;
  integration?: string | null;
  owners: string[];
  tags: string[];
  marks: string[];
  columns?: GraphColumn[] | null;
  column_total: number;
  last_run?: RunSummary | null;
  upstream_total: number;
  downstream_total: number;
  depth: number;
  change?: Change | null;
  blind_spot_count: number;
  members?: number; // of a group that stands for several nodes
}

export interface GraphEdge {
  source: string;
  target: string;
  kind: string;
  confidence: string;
  status: "active" | "stale";
  first_seen: string;
  last_seen: string;
  first_event: string;
  last_event: string;
  job?: string | null;
  change?: Change | null;
  members?: number; // of an edge between groups
}

export interface Graph {
  root: string | null;
  nodes: GraphNode[];
  edges: GraphEdge[];
  complete: boolean;
  blind_spots: BlindSpot[];
  shown: number;
  total: number;
  as_of: string | null;
}

export interface ColumnPlace {
  dataset: string;
  column: string;
}

export interface ColumnEdge {
  source: ColumnPlace;
  target: ColumnPlace;
  type: "DIRECT" | "INDIRECT";
  subtype: string;
  masking: boolean;
  confidence: string;
  first_event: string;
  last_event: string;
  first_seen?: string;
  last_seen?: string;
  job?: string | null;
  description?: string | null;
  location?: string | null;
  change?: Change | null;
}

export interface ColumnEdges {
  edges: ColumnEdge[];
  datasets: string[];
  complete: boolean;
  blind_spots: BlindSpot[];
  omitted_count: number;
}
