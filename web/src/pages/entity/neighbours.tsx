import type { EntityView, Related } from "../../api/types";
import { EntityLink, Table } from "../../design/page";
import { Badge, Empty, Panel } from "../../design/parts";
import styles from "./entity.module.css";

export function NeighboursPanel({ entity }: { entity: EntityView }) {
  const isJob = entity.kind === "job";
  return (
    <div className={styles.halves}>
      <Neighbours title={isJob ? "Reads" : "Upstream"} related={entity.upstream} nothing="Nothing upstream is known" />
      <Neighbours title={isJob ? "Writes" : "Downstream"} related={entity.downstream} nothing="Nothing downstream is known" />
    </div>
  );
}

function Neighbours({ title, related, nothing }: { title: string; related: readonly Related[]; nothing: string }) {
  return (
    <Panel title={title} flush label={title}>
      {related.length === 0 ? <Empty title={nothing} /> : (
        <Table label={title} head={["Name", "Through", "Confidence"]}>
          {related.map((near) => (
            <tr key={`${near.id} ${near.via.join(" ")}`}>
              <td><EntityLink id={near.id} label={near.name} /></td>
              <td>{near.via.map((job) => <div key={job}><EntityLink id={job} /></div>)}{near.transformation ? <div className={styles.muted}>{near.transformation}</div> : null}</td>
              <td>{near.confidence} {near.status === "stale" ? <Badge tone="warning">stale</Badge> : null}</td>
            </tr>
          ))}
        </Table>
      )}
    </Panel>
  );
}
