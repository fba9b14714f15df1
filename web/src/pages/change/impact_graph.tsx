import { lazy, Suspense, useMemo } from "react";
import { useLocation } from "wouter";
import { useGet } from "../../api/queries";
import type { Graph, Severity } from "../../graph/graph_types";
import { formatCount, plural } from "../../design/format";
import { Loaded } from "../../design/page";
import { Panel, Skeleton } from "../../design/parts";
import { entityPath } from "../../shell/routes";
import { without, type Shown } from "../lineage/graph_view";
import { useReachingTags, withReaching } from "../lineage/reaching_tags";
import styles from "./change.module.css";

const LineageCanvas = lazy(async () => ({ default: (await import("../../graph/lineage_canvas")).LineageCanvas }));
const HEIGHT = 320;
const DEEPEST = 6;
const MOST = 120;

/** Colour a job without a severity of its own as what it writes: of a dbt model, the effect names the table. */
export function withJobs(graph: Graph, severity: Record<string, Severity>): Record<string, Severity> {
  const found = { ...severity };
  for (const edge of graph.edges) {
    const written = severity[edge.target];
    if (edge.source.startsWith("job:") && found[edge.source] === undefined && written !== undefined) found[edge.source] = written;
  }
  return found;
}

/**
 * Without the jobs that write one dataset and have its colour: the edge to the dataset stands for them, and
 * the graph has half the layers. Jobs that write nothing, or several datasets, stay.
 */
export function foldJobs(graph: Graph, severity: Record<string, Severity>): Shown {
  const outputs = new Map<string, string[]>();
  for (const { source, target } of graph.edges) outputs.set(source, [...(outputs.get(source) ?? []), target]);
  const read = new Set(graph.edges.map(({ target }) => target));
  return without(graph, ({ id, kind }) => {
    const written = outputs.get(id) ?? [];
    return kind === "job" && read.has(id) && written.length === 1 && severity[id] === severity[written[0]!];
  });
}

/** The downstream of a dataset, coloured by the effects of a change. */
export function ImpactGraph({ target, severity, depth, asOf }: { target: string; severity: Record<string, Severity>; depth: number; asOf?: string | undefined }) {
  const [, navigate] = useLocation();
  const graph = useGet<Graph>("/v1/graph", { entity: target, direction: "downstream", depth: Math.min(depth, DEEPEST), limit: MOST, as_of: asOf });
  const colours = useMemo(() => graph.data && withJobs(graph.data, severity), [graph.data, severity]);
  const folded = useMemo(() => graph.data && colours && foldJobs(graph.data, colours), [graph.data, colours]);
  const reaching = useReachingTags(asOf);
  const nodes = useMemo(() => withReaching(folded?.nodes ?? [], reaching), [folded, reaching]);
  const asEdges = graph.data && folded ? graph.data.nodes.length - folded.nodes.length : 0;
  const shown = graph.data ? (
    <span className={styles.muted}>
      {formatCount(graph.data.shown)} of {formatCount(graph.data.total)} shown{asEdges ? `, ${plural(asEdges, "job")} as ${asEdges === 1 ? "an edge" : "edges"}` : ""}
    </span>
  ) : null;
  return (
    <Panel title="Downstream" actions={shown} flush label="Graph of the effects">
      <div style={{ height: HEIGHT }}>
        <Loaded query={graph} height={HEIGHT - 32}>
          {() => (
            <Suspense fallback={<Skeleton height={HEIGHT} />}>
              <LineageCanvas nodes={nodes} edges={folded!.edges} generation={target} severity={colours!} onOpen={(id) => navigate(entityPath(id, asOf))} height={HEIGHT} />
            </Suspense>
          )}
        </Loaded>
      </div>
    </Panel>
  );
}
