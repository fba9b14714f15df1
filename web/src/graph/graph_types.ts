/** What the canvas draws: answers of the server, and groups that the page makes of them. */

import type { GraphColumnEdge, GraphEdge as Edge, GraphNode as Node } from "../api/schema";

export type { BlindSpot, ColumnEdges, ColumnPlace, Graph, GraphColumn } from "../api/schema";

export type Severity = "breaking" | "warning" | "safe" | "changed";
export type Side = "upstream" | "downstream" | "both";
export type ColumnEdge = GraphColumnEdge;

/** `members` is the number of nodes in a group. */
export type GraphNode = Node & { members?: number };

/** `members` is the number of edges that an edge between groups represents. */
export type GraphEdge = Edge & { members?: number };
