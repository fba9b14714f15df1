/** Requests the graph: one request for the root or the selector, and one for each expansion. */

import { useQueries, useQuery } from "@tanstack/react-query";
import { useMemo, useRef } from "react";
import { get, type Parameters } from "../../api/client";
import type { ColumnEdges, ColumnPlace, Graph } from "../../graph/graph_types";
import { merge, type Merged } from "./graph_view";
import type { LineageState } from "./url_state";

export const NODE_LIMIT = 300;
export const SELECTION_LIMIT = 5000;

export interface GraphAnswer {
  merged: Merged | null;
  loading: boolean; // waiting for the first answer
  updating: boolean; // waiting for another moment or an expansion
  error: unknown;
  retry: () => void;
}

export function useGraph(state: LineageState): GraphAnswer {
  const moment = { as_of: state.asOf, diff: state.diff, include: "columns,runs" };
  const first: Parameters = state.selector
    ? { q: state.selector, limit: SELECTION_LIMIT, ...moment }
    : { entity: state.entity, direction: "both", depth: 1, limit: NODE_LIMIT, ...moment };
  const more: Parameters[] = state.expanded.map(({ id, side }) => ({ entity: id, direction: side, depth: 1, limit: NODE_LIMIT, ...moment }));
  const enabled = state.selector !== undefined || state.entity !== undefined;
  const results = useQueries({
    queries: [first, ...more].map((parameters) => ({
      queryKey: ["/v1/graph", parameters],
      queryFn: ({ signal }: { signal: AbortSignal }) => get<Graph>("/v1/graph", parameters, signal),
      enabled,
    })),
  });
  const answers = useSteadyList(results.map((result) => result.data));
  const newest = useMemo(() => {
    const known = answers.filter((answer) => answer !== undefined);
    return answers[0] === undefined ? null : merge(known);
  }, [answers]);
  const merged = useLastOf(newest, state.selector ?? state.entity);
  return {
    merged,
    loading: enabled && merged === null && results[0]!.isPending,
    updating: merged !== null && results.some((result) => result.isPending),
    error: results.find((result) => result.error)?.error ?? null,
    retry: () => results.forEach((result) => result.error && void result.refetch()),
  };
}

/** The same list as before when its items are the same. */
function useSteadyList<T>(items: readonly T[]): readonly T[] {
  const last = useRef(items);
  if (last.current.length !== items.length || last.current.some((item, i) => item !== items[i])) last.current = items;
  return last.current;
}

/** The last graph of this root stays visible while that of another moment loads. */
function useLastOf(merged: Merged | null, root: string | undefined): Merged | null {
  const last = useRef<{ root: string | undefined; merged: Merged } | null>(null);
  if (merged !== null) last.current = { root, merged };
  return last.current?.root === root ? last.current!.merged : null;
}

/** The whole path of a column, up and down; nothing while no column is given. */
export function useColumnPath(place: ColumnPlace | undefined, asOf: string | undefined) {
  const parameters = { dataset: place?.dataset, column: place?.column, as_of: asOf };
  return useQuery({
    queryKey: ["/v1/column-path", parameters],
    queryFn: ({ signal }) => get<ColumnEdges>("/v1/column-path", parameters, signal),
    enabled: place !== undefined,
  });
}
