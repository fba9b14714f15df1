/** Rows of the table beside the graph: sorted, filtered, and as CSV. Pure functions. */

import type { GraphNode } from "../../graph/graph_types";

export const COLUMNS = [
  { key: "name", title: "Name" },
  { key: "type", title: "Type" },
  { key: "depth", title: "Steps" },
  { key: "marks", title: "Marks" },
  { key: "owners", title: "Owners" },
  { key: "last_run", title: "Last run" },
] as const;

export type ColumnKey = (typeof COLUMNS)[number]["key"];

export interface SortOrder {
  by: ColumnKey;
  descending: boolean;
}

function textOf(node: GraphNode, by: ColumnKey): string | number {
  switch (by) {
    case "name": return node.label.toLowerCase();
    case "type": return node.type;
    case "depth": return node.depth;
    case "marks": return node.marks.join(" ");
    case "owners": return node.owners.join(" ").toLowerCase();
    case "last_run": return node.last_run?.state ?? "";
  }
}

export function sortRows(nodes: readonly GraphNode[], { by, descending }: SortOrder): GraphNode[] {
  const sign = descending ? -1 : 1;
  return nodes.toSorted((a, b) => {
    const [left, right] = [textOf(a, by), textOf(b, by)];
    return (left < right ? -sign : left > right ? sign : 0) || a.label.localeCompare(b.label);
  });
}

/** Nodes that contain every word in the name, the type, a mark, an owner or a tag. */
export function filterRows(nodes: readonly GraphNode[], wanted: string): GraphNode[] {
  const words = wanted.toLowerCase().split(/\s+/).filter(Boolean);
  return nodes.filter((node) => {
    const text = [node.label, node.namespace, node.name, node.kind, node.type, ...node.marks, ...node.owners, ...node.tags].join(" ").toLowerCase();
    return words.every((word) => text.includes(word));
  });
}

const CSV_HEAD = ["id", "kind", "type", "namespace", "name", "steps", "marks", "owners", "tags", "columns", "upstream", "downstream", "last_run", "change"];

export function renderCsv(nodes: readonly GraphNode[]): string {
  const lines = nodes.map((node) => [
    node.id, node.kind, node.type, node.namespace, node.name, node.depth, node.marks.join(" "), node.owners.join(" "), node.tags.join(" "),
    node.column_total, node.upstream_total, node.downstream_total, node.last_run?.state ?? "", node.change ?? "",
  ]);
  return [CSV_HEAD, ...lines].map((line) => line.map(csvCell).join(",")).join("\r\n") + "\r\n";
}

/** Quoted where needed. A text that a spreadsheet would run as a formula starts with an apostrophe. */
function csvCell(value: string | number): string {
  const text = typeof value === "string" && /^[=+\-@\t\r]/.test(value) ? `'${value}` : String(value);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
