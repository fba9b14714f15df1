import { useMemo } from "react";
import { useAnswer } from "../../api/queries";
import type { ColumnEdges, EntityView } from "../../api/types";
import { BlindSpots, Loaded } from "../../design/page";
import { Empty, Panel } from "../../design/parts";
import { ColumnEdgesTable } from "./column_edges_table";

/** The columns that this dataset is computed from, and those computed from it. */
export function ColumnLineagePanel({ entity }: { entity: EntityView }) {
  const datasets = useMemo(
    () => [...new Set([entity.id, ...entity.upstream, ...entity.downstream].map((near) => (typeof near === "string" ? near : near.id)))].filter((id) => id.startsWith("dataset:")),
    [entity],
  );
  const answer = useAnswer<ColumnEdges>("/v1/column-edges", { datasets });
  return (
    <Loaded query={answer} height={240}>
      {(data) => {
        const inputs = data.edges.filter((edge) => edge.target.dataset === entity.id);
        const outputs = data.edges.filter((edge) => edge.source.dataset === entity.id && edge.target.dataset !== entity.id);
        return (
          <>
            <BlindSpots spots={data.blind_spots} />
            <Panel title="Computed from" flush label="Computed from">
              {inputs.length ? <ColumnEdgesTable edges={inputs} label="Computed from" /> : <Empty title="No source column is known" />}
            </Panel>
            <Panel title="Used by" flush label="Used by">
              {outputs.length ? <ColumnEdgesTable edges={outputs} label="Used by" /> : <Empty title="No column is computed from this dataset" />}
            </Panel>
          </>
        );
      }}
    </Loaded>
  );
}
