/** Tags that propagate along column lineage to columns of the graph. */

import { useQueries } from "@tanstack/react-query";
import { useMemo } from "react";
import { get } from "../../api/client";
import { useGet } from "../../api/queries";
import type { PropagatingTags, TagReach } from "../../api/types";
import type { GraphNode, ReachingTag } from "../../graph/graph_types";

type ByColumn = Map<string, ReachingTag[]>;
export type Reaching = ReadonlyMap<string, ByColumn>;

/** The reached columns of all propagating tags, by dataset and column, along the lineage of a moment. */
export function useReachingTags(asOf: string | undefined): Reaching {
  const propagating = useGet<PropagatingTags>("/v1/tags/propagation");
  const tags = propagating.data?.tags ?? [];
  const reaches = useQueries({
    queries: tags.map((tag) => ({
      queryKey: ["/v1/tags", { tag, as_of: asOf }],
      queryFn: ({ signal }: { signal: AbortSignal }) => get<TagReach>("/v1/tags", { tag, as_of: asOf }, signal),
    })),
    combine: (results) => results.flatMap((result) => result.data ?? []),
  });
  return useMemo(() => reachingOf(reaches), [reaches]);
}

export function reachingOf(reaches: readonly Pick<TagReach, "reached">[]): Reaching {
  const found = new Map<string, ByColumn>();
  for (const { column, tag, origin } of reaches.flatMap((reach) => reach.reached)) {
    const end = column.lastIndexOf(":");
    const dataset = `dataset:${column.slice("column:".length, end)}`;
    const name = column.slice(end + 1);
    const columns = found.get(dataset) ?? new Map<string, ReachingTag[]>();
    columns.set(name, [...(columns.get(name) ?? []), { tag, origin }]);
    found.set(dataset, columns);
  }
  return found;
}

/** The nodes with the tags that reach their columns. A node without such a tag stays the same object. */
export function withReaching(nodes: GraphNode[], reaching: Reaching): GraphNode[] {
  if (!nodes.some((node) => reaching.has(node.id))) return nodes;
  return nodes.map((node) => {
    const columns = reaching.get(node.id);
    return columns ? { ...node, reaching: columns } : node;
  });
}
