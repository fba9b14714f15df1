import { lazy, Suspense } from "react";
import { useLocation } from "wouter";
import { useGet } from "../../api/queries";
import type { Graph, Severity } from "../../graph/graph_types";
import { formatCount } from "../../design/format";
import { Loaded } from "../../design/page";
import { Panel, Skeleton } from "../../design/parts";
import { entityPath } from "../../shell/routes";
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

/** The downstream of a dataset, coloured by the effects of a change. */
export function ImpactGraph({ target, severity, depth }: { target: string; severity: Record<string, Severity>; depth: number }) {
  const [, navigate] = useLocation();
  const graph = useGet<Graph>("/v1/graph", { entity: target, direction: "downstream", depth: Math.min(depth, DEEPEST), limit: MOST });
  const shown = graph.data ? <span className={styles.muted}>{formatCount(graph.data.shown)} of {formatCount(graph.data.total)} shown</span> : null;
  return (
    <Panel title="Downstream" actions={shown} flush label="Graph of the effects">
      <div style={{ height: HEIGHT }}>
        <Loaded query={graph} height={HEIGHT - 32}>
          {(data) => (
            <Suspense fallback={<Skeleton height={HEIGHT} />}>
              <LineageCanvas nodes={data.nodes} edges={data.edges} generation={target} severity={withJobs(data, severity)} onOpen={(id) => navigate(entityPath(id))} height={HEIGHT} />
            </Suspense>
          )}
        </Loaded>
      </div>
    </Panel>
  );
}
