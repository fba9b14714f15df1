/** The whole graph as arrays, as `/v1/map` returns it, and counts of its nodes. */

export interface NodeArrays {
  ids: string[];
  labels: string[];
  types: string[];
  groups: number[];
  group_names: string[];
  degrees: number[];
  edges: number[];
}

export interface NamespaceRow {
  namespace: string;
  total: number;
  connected: number;
  percent: number;
}

/** The number of nodes with an edge in each namespace, the largest namespace first. */
export function coverageByNamespace({ ids, degrees }: NodeArrays): NamespaceRow[] {
  const rows = new Map<string, NamespaceRow>();
  ids.forEach((id, at) => {
    const namespace = id.slice(id.indexOf(":") + 1, id.lastIndexOf(":"));
    const row = rows.get(namespace) ?? { namespace, total: 0, connected: 0, percent: 0 };
    row.total += 1;
    if ((degrees[at] ?? 0) > 0) row.connected += 1;
    rows.set(namespace, row);
  });
  for (const row of rows.values()) row.percent = Math.round((1000 * row.connected) / row.total) / 10;
  return [...rows.values()].sort((one, other) => other.total - one.total);
}
