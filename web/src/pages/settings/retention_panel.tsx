import { useState } from "react";
import { useAnswer } from "../../api/queries";
import type { Pruned, RetiredEdge, RetiredEntity, RetiredRuns } from "../../api/types";
import { Choice } from "../../design/fields";
import { formatAge, formatTime, plural } from "../../design/format";
import { EntityLink, Loaded, Table } from "../../design/page";
import { Badge, Empty, Panel } from "../../design/parts";
import styles from "./settings.module.css";

const PERIODS = { "30d": "30 days", "90d": "90 days", "180d": "180 days", "365d": "a year" } as const;
type Period = keyof typeof PERIODS;

/** The entities that pruning would remove from answers. Only the command removes them. */
export function RetentionPanel() {
  const [period, setPeriod] = useState<Period>("90d");
  const answer = useAnswer<Pruned>("/v1/prune", { older_than: period, dry_run: true });
  return (
    <Panel title="Retention" actions={<div className={styles.period}><Choice label="Not seen for" value={period} change={setPeriod} options={PERIODS} /></div>} flush label="Retention">
      <p className={styles.note}>A preview: nothing is removed here. <code>downriver prune --older-than {period}</code> removes the datasets and jobs below from answers; their events stay in the log.</p>
      <Loaded query={answer} height={160}>
        {(data) => (
          <>
            <Entities title={`Would be removed: ${plural(data.retired.length, "dataset or job", "datasets and jobs")}`} entities={data.retired} nothing="Nothing would be removed" />
            {data.retired_edges.length ? <Edges title={`Stale edges that would be removed: ${data.retired_edges.length}`} edges={data.retired_edges} /> : null}
            {data.retired_runs.length ? <Runs title={`Old runs that would be removed from lists: ${total(data.retired_runs)}`} runs={data.retired_runs} /> : null}
            {data.protected.length ? <Entities title={`Old, but kept: ${data.protected.length}`} entities={data.protected} nothing="" /> : null}
          </>
        )}
      </Loaded>
    </Panel>
  );
}

function total(runs: readonly RetiredRuns[]): number {
  return runs.reduce((sum, each) => sum + each.runs, 0);
}

function Edges({ title, edges }: { title: string; edges: readonly RetiredEdge[] }) {
  return (
    <>
      <h3 className={styles.subtitle}>{title}</h3>
      <Table label={title} head={["From", "To", "Last seen"]}>
        {edges.map((edge) => (
          <tr key={`${edge.source} ${edge.target}`}>
            <td><EntityLink id={edge.source} /></td>
            <td><EntityLink id={edge.target} /></td>
            <td title={formatTime(edge.last_seen)}>{formatAge(edge.last_seen)}</td>
          </tr>
        ))}
      </Table>
    </>
  );
}

function Runs({ title, runs }: { title: string; runs: readonly RetiredRuns[] }) {
  return (
    <>
      <h3 className={styles.subtitle}>{title}</h3>
      <Table label={title} head={["Job", "Runs", "Before"]}>
        {runs.map((each) => (
          <tr key={each.job}>
            <td><EntityLink id={each.job} /></td>
            <td>{each.runs}</td>
            <td title={formatTime(each.before)}>{formatAge(each.before)}</td>
          </tr>
        ))}
      </Table>
    </>
  );
}

function Entities({ title, entities, nothing }: { title: string; entities: readonly RetiredEntity[]; nothing: string }) {
  if (entities.length === 0) return <Empty title={nothing} />;
  return (
    <>
      <h3 className={styles.subtitle}>{title}</h3>
      <Table label={title} head={["Name", "Last seen", "Reason"]}>
        {entities.map((entity) => (
          <tr key={entity.id}>
            <td><EntityLink id={entity.id} /></td>
            <td title={formatTime(entity.last_seen)}>{formatAge(entity.last_seen)}</td>
            <td>{entity.reason || <Badge>not seen</Badge>}</td>
          </tr>
        ))}
      </Table>
    </>
  );
}
