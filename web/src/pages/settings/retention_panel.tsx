import { useState } from "react";
import { useAnswer } from "../../api/queries";
import type { Pruned, RetiredEntity } from "../../api/types";
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
            {data.protected.length ? <Entities title={`Old, but kept: ${data.protected.length}`} entities={data.protected} nothing="" /> : null}
          </>
        )}
      </Loaded>
    </Panel>
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
