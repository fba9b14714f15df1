import { useGet } from "../../api/queries";
import { BarList } from "../../design/charts";
import { Loaded } from "../../design/page";
import { Empty, Panel } from "../../design/parts";
import type { NodeArrays } from "./node_arrays";
import { coverageByNamespace } from "./node_arrays";

const SHOWN = 8;

/** The share of connected datasets and jobs in each namespace. */
export function NamespaceCoverage() {
  const map = useGet<NodeArrays>("/v1/map", { group: "none" });
  return (
    <Panel title="Coverage by namespace" label="Coverage by namespace">
      <Loaded query={map} height={170}>
        {(data) => {
          const rows = coverageByNamespace(data);
          if (rows.length === 0) return <Empty title="No namespace yet" />;
          return <BarList most={100} label="Coverage by namespace" rows={rows.slice(0, SHOWN).map((row) => ({ key: row.namespace, name: <span title={row.namespace}>{row.namespace}</span>, value: row.percent, text: `${row.connected} of ${row.total}` }))} />;
        }}
      </Loaded>
    </Panel>
  );
}
