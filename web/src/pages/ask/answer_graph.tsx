import { lazy, Suspense } from "react";
import { Link, useLocation } from "wouter";
import { useGet } from "../../api/queries";
import { formatCount } from "../../design/format";
import { Loaded } from "../../design/page";
import { Panel, Skeleton } from "../../design/parts";
import type { Graph } from "../../graph/graph_types";
import { entityPath, lineagePath } from "../../shell/routes";

const LineageCanvas = lazy(async () => ({ default: (await import("../../graph/lineage_canvas")).LineageCanvas }));
const HEIGHT = 260;

/** What lies around the entity of an answer. */
export function AnswerGraph({ root }: { root: string }) {
  const [, navigate] = useLocation();
  const graph = useGet<Graph>("/v1/graph", { entity: root, direction: "both", depth: 1, limit: 40 });
  return (
    <Panel title={graph.data ? `${formatCount(graph.data.shown)} of ${formatCount(graph.data.total)} shown` : "Lineage"} actions={<Link href={lineagePath(root)}>Open the lineage</Link>} flush label="Graph of the answer">
      <div style={{ height: HEIGHT }}>
        <Loaded query={graph} height={HEIGHT - 32}>
          {(data) => (
            <Suspense fallback={<Skeleton height={HEIGHT} />}>
              <LineageCanvas nodes={data.nodes} edges={data.edges} generation={root} onOpen={(id) => navigate(entityPath(id))} height={HEIGHT} />
            </Suspense>
          )}
        </Loaded>
      </div>
    </Panel>
  );
}
