import { useGet } from "../../api/queries";
import type { EntityView, Findings } from "../../api/types";
import { FindingList } from "../../design/findings";
import { formatAge, formatTime } from "../../design/format";
import { Loaded, Table } from "../../design/page";
import { Badge, Empty, Panel } from "../../design/parts";

/** The last result of each check, and the findings of the monitor. */
export function QualityPanel({ entity }: { entity: EntityView }) {
  const findings = useGet<Findings>("/v1/drift", { of: entity.id, status: "all", limit: 50 });
  const results = entity.quality ?? [];
  return (
    <>
      <Panel title="Checks" flush label="Checks">
        {results.length === 0 ? <Empty title="No quality result is known">Results of dbt tests, Great Expectations and Soda appear here when their events arrive.</Empty> : (
          <Table label="Checks" head={["Result", "Check", "Column", "Checked"]}>
            {results.map((result, at) => (
              <tr key={at}>
                <td><Badge tone={result.success ? "safe" : "breaking"} icon={result.success ? "check" : "breaking"}>{result.success ? "Passed" : "Failed"}</Badge></td>
                <td>{result.assertion}</td>
                <td>{result.column}</td>
                <td title={formatTime(result.checked_at)}>{formatAge(result.checked_at)}</td>
              </tr>
            ))}
          </Table>
        )}
      </Panel>
      <Panel title="Findings of the monitor" flush label="Findings of the monitor">
        <Loaded query={findings}>
          {(data) => (data.findings.length ? <FindingList findings={data.findings} /> : <Empty title="No finding">The monitor (<code>downriver watch</code>) reports drift, late runs and failures here.</Empty>)}
        </Loaded>
      </Panel>
    </>
  );
}
