/** The data of the canvas: answers of the server, and groups of their nodes. */

import type { GraphColumnEdge, GraphEdge as Edge, GraphNode as Node } from "../api/schema";

export type { BlindSpot, ColumnEdges, ColumnPlace, Graph, GraphColumn } from "../api/schema";

export type Severity = "breaking" | "warning" | "safe" | "changed";
export type Side = "upstream" | "downstream" | "both";
export type ColumnEdge = GraphColumnEdge;

/** A tag that was set on another column, `origin`, and propagates to this one. */
export interface ReachingTag {
  tag: string;
  origin: string;
}

/** `members` is the number of nodes in a group, `reaching` the tags that propagate to a column, by its name. */
export type GraphNode = Node & { members?: number; reaching?: ReadonlyMap<string, readonly ReachingTag[]> };

/** `members` is the number of edges that an edge between groups represents. */
export type GraphEdge = Edge & { members?: number };
