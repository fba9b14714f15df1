import { lazy, Suspense, useMemo } from "react";
import { Link, useLocation } from "wouter";
import { useGet } from "../../api/queries";
import { formatCount } from "../../design/format";
import { Loaded } from "../../design/page";
import { Panel, Skeleton } from "../../design/parts";
import type { Graph } from "../../graph/graph_types";
import { entityPath, lineagePath } from "../../shell/routes";
import { useReachingTags, withReaching } from "../lineage/reaching_tags";
import styles from "./entity.module.css";

const LineageCanvas = lazy(async () => ({ default: (await import("../../graph/lineage_canvas")).LineageCanvas }));
const HEIGHT = 260;

interface Props {
  root: string;
  label?: string;
  asOf?: string | undefined;
  direction?: "both" | "upstream" | "downstream";
  depth?: number;
}

/** The direct neighbours of an entity, or more of one side, as a small graph. */
export function Neighbourhood({ root, label = "Lineage", asOf, direction = "both", depth = 1 }: Props) {
  const [, navigate] = useLocation();
  const graph = useGet<Graph>("/v1/graph", { entity: root, direction, depth, limit: 40, as_of: asOf });
  const reaching = useReachingTags(asOf);
  const nodes = useMemo(() => withReaching(graph.data?.nodes ?? [], reaching), [graph.data, reaching]);
  return (
    <Panel title={label} actions={<span className={styles.graphHead}>{graph.data ? `${formatCount(graph.data.shown)} of ${formatCount(graph.data.total)} shown` : null}<Link href={lineagePath(root, undefined, asOf)}>Open the lineage</Link></span>} flush label={label}>
      <div className={styles.graphFrame} style={{ height: HEIGHT }}>
        <Loaded query={graph} height={HEIGHT - 32}>
          {(data) => (
            <Suspense fallback={<Skeleton height={HEIGHT} />}>
              <LineageCanvas nodes={nodes} edges={data.edges} generation={root} {...(depth === 1 ? { focus: data.root ?? root } : {})} onOpen={(id) => navigate(entityPath(id, asOf))} height={HEIGHT} />
            </Suspense>
          )}
        </Loaded>
      </div>
    </Panel>
  );
}
