/** Turns answers of the server into the drawn graph: merged, filtered, collapsed. Pure functions. */

import type { BlindSpot, Graph, GraphEdge, GraphNode } from "../../graph/graph_types";
import { splitName } from "../../design/short_name";
import { linkKey } from "../../graph/layout";
import type { Grouping, Hideable } from "./url_state";

export interface Shown {
  nodes: GraphNode[];
  edges: GraphEdge[];
}

export interface Merged extends Shown {
  root: string | null;
  total: number;
  blindSpots: BlindSpot[];
}

/** The answer for the root and those of all expansions as one graph. The root's answer has the depths. */
export function merge(answers: readonly Graph[]): Merged {
  const nodes = new Map<string, GraphNode>();
  const edges = new Map<string, GraphEdge>();
  const blindSpots = new Map<string, BlindSpot>();
  for (const answer of answers) {
    for (const node of answer.nodes) if (!nodes.has(node.id)) nodes.set(node.id, node);
    for (const edge of answer.edges) edges.set(`${linkKey(edge.source, edge.target)}\u0000${edge.kind}`, edge);
    for (const spot of answer.blind_spots) blindSpots.set(`${spot.kind}\u0000${spot.entity}\u0000${spot.message}`, spot);
  }
  return {
    root: answers[0]?.root ?? null,
    nodes: [...nodes.values()],
    edges: [...edges.values()],
    total: Math.max(nodes.size, ...answers.map((answer) => answer.total)),
    blindSpots: [...blindSpots.values()],
  };
}

/** The numbers of the summary: groups, the nodes in them, the others, and those that a filter hides. */
export function countShown(nodes: readonly GraphNode[], merged: Merged): { groups: number; grouped: number; single: number; hidden: number } {
  const groups = nodes.filter((node) => node.members !== undefined);
  const grouped = groups.reduce((sum, group) => sum + group.members!, 0);
  const single = nodes.length - groups.length;
  return { groups: groups.length, grouped, single, hidden: merged.nodes.length - single - grouped };
}

const TEMPORARY = /(^|[._\-/\s])(tmp|temp|temporary|scratch)([._\-/\s\d]|$)/i;
const MOST_BRIDGES = 400; // a job that joins more pairs than this stays

export function isTemporary(node: GraphNode): boolean {
  return node.kind === "dataset" && TEMPORARY.test(node.name);
}

/** Removes nodes, and joins the nodes that they connected. The root stays. */
export function hide(graph: Shown, hidden: ReadonlySet<Hideable>, root: string | null): Shown {
  if (!hidden.size) return graph;
  return without(
    graph,
    (node) =>
      node.id !== root &&
      ((hidden.has("jobs") && node.kind === "job") ||
        (hidden.has("readers") && node.kind === "job" && node.downstream_total === 0) ||
        (hidden.has("temporary") && isTemporary(node))),
  );
}

/** Removes the nodes for which `isHidden` holds. An edge joins each pair that such a node connected. */
export function without(graph: Shown, isHidden: (node: GraphNode) => boolean): Shown {
  const into = new Map<string, Map<string, GraphEdge>>();
  const out = new Map<string, Map<string, GraphEdge>>();
  const link = (edge: GraphEdge) => {
    entry(out, edge.source).set(edge.target, edge);
    entry(into, edge.target).set(edge.source, edge);
  };
  graph.edges.forEach(link);
  const kept: GraphNode[] = [];
  for (const node of graph.nodes) {
    const before = into.get(node.id) ?? new Map<string, GraphEdge>();
    const after = out.get(node.id) ?? new Map<string, GraphEdge>();
    if (!isHidden(node) || before.size * after.size > MOST_BRIDGES) {
      kept.push(node);
      continue;
    }
    for (const [source, first] of before) {
      out.get(source)?.delete(node.id);
      for (const [target, second] of after) {
        if (source !== target && !out.get(source)?.has(target)) link(bridge(first, second, node));
      }
    }
    for (const target of after.keys()) into.get(target)?.delete(node.id);
    out.delete(node.id);
  }
  return { nodes: kept, edges: [...out.values()].flatMap((targets) => [...targets.values()]) };
}

const CONFIDENCES = ["exact", "declared", "inferred", "ambiguous"];

/** A combined edge has the lower confidence of its two edges. */
function bridge(first: GraphEdge, second: GraphEdge, between: GraphNode): GraphEdge {
  const weaker = CONFIDENCES.indexOf(first.confidence) > CONFIDENCES.indexOf(second.confidence) ? first : second;
  return {
    ...second,
    source: first.source,
    kind: "derives",
    confidence: weaker.confidence,
    status: first.status === "stale" ? "stale" : second.status,
    change: second.change ?? first.change,
    job: between.kind === "job" ? between.id : (second.job ?? first.job),
  };
}

function entry(index: Map<string, Map<string, GraphEdge>>, key: string): Map<string, GraphEdge> {
  const known = index.get(key) ?? new Map<string, GraphEdge>();
  index.set(key, known);
  return known;
}

/** The schema or folder of a node: its name without the last part. */
function schemaOf({ name }: GraphNode): string {
  return splitName(name).front.replace(/[./]$/, "");
}

/** The system of a node, or the system and its schema. */
export function groupOf(node: GraphNode, grouping: Exclude<Grouping, "none">): string {
  const schema = grouping === "schema" ? schemaOf(node) : "";
  return schema ? `${node.namespace} ${schema}` : node.namespace;
}

const GROUP = "group:";

export function groupName(id: string): string | undefined {
  return id.startsWith(GROUP) ? id.slice(GROUP.length) : undefined;
}

/** One node in place of all nodes of a group. The root and opened groups stay as they are. */
export function collapse(graph: Shown, grouping: Grouping, open: ReadonlySet<string>, root: string | null): Shown {
  if (grouping === "none") return graph;
  const groups = new Map<string, GraphNode[]>();
  const nodes: GraphNode[] = [];
  for (const node of graph.nodes) {
    const group = groupOf(node, grouping);
    if (node.id === root || open.has(group)) nodes.push(node);
    else groups.set(group, [...(groups.get(group) ?? []), node]);
  }
  const standsFor = new Map<string, string>();
  for (const [name, members] of groups) {
    if (members.length === 1) {
      nodes.push(members[0]!);
      continue;
    }
    nodes.push(groupNode(name, (grouping === "schema" && schemaOf(members[0]!)) || members[0]!.namespace, members));
    for (const { id } of members) standsFor.set(id, GROUP + name);
  }
  const edges = new Map<string, GraphEdge>();
  for (const edge of graph.edges) {
    const source = standsFor.get(edge.source) ?? edge.source;
    const target = standsFor.get(edge.target) ?? edge.target;
    if (source === target) continue;
    const key = linkKey(source, target);
    const known = edges.get(key);
    const isGroup = source !== edge.source || target !== edge.target;
    edges.set(key, known ? { ...known, members: (known.members ?? 1) + 1 } : { ...edge, source, target, ...(isGroup ? { members: 1 } : {}) });
  }
  return { nodes, edges: [...edges.values()] };
}

function groupNode(name: string, label: string, members: readonly GraphNode[]): GraphNode {
  const depths = members.map((node) => node.depth);
  return {
    id: GROUP + name,
    kind: "dataset",
    type: "group",
    namespace: members[0]!.namespace,
    name,
    label,
    owners: [...new Set(members.flatMap((node) => node.owners))],
    tags: [],
    aliases: [],
    statements: [],
    marks: [...new Set(members.flatMap((node) => node.marks.filter((mark) => mark === "failed" || mark === "pii")))],
    column_total: 0,
    upstream_total: 0,
    downstream_total: 0,
    depth: depths.reduce((nearest, depth) => (Math.abs(depth) < Math.abs(nearest) ? depth : nearest), depths[0]!),
    blind_spot_count: members.reduce((sum, node) => sum + node.blind_spot_count, 0),
    members: members.length,
  };
}
