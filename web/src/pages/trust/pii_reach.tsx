import { useState } from "react";
import { useGet } from "../../api/queries";
import type { TaggedColumn, TagReach } from "../../api/types";
import { TextField } from "../../design/fields";
import { nameOf } from "../../design/format";
import { Icon } from "../../design/icons";
import { BlindSpots, EntityLink, Loaded, Owners, Table } from "../../design/page";
import { Badge, Empty, Panel } from "../../design/parts";
import { useSettled } from "../../search/use_search";
import styles from "./trust.module.css";

/** The columns that a tag reaches along the lineage, and where masking stops it. */
export function PiiReach() {
  const [tag, setTag] = useState("pii");
  const reach = useGet<TagReach>("/v1/tags", { tag: useSettled(tag, 300) || "pii" });
  return (
    <Panel title="Reach of a tag" actions={<div className={styles.tagField}><TextField label="Tag" value={tag} change={setTag} choices={["pii", "gdpr", "confidential"]} /></div>} flush label="Reach of a tag">
      <Loaded query={reach}>
        {(data) => data.tagged.length === 0 && data.datasets.length === 0 ? <Empty title={`Nothing has the tag “${data.tag}”`} /> : (
          <>
            <div className={styles.reachHead}>
              <Badge tone="pii" icon="lock">{data.tagged.length + data.datasets.length} tagged</Badge>
              <Badge tone="warning" icon="arrow">{data.reached.length} reached</Badge>
              <Badge tone="safe" icon="shield">{data.stopped.length} masked</Badge>
            </div>
            <BlindSpots spots={data.blind_spots} />
            {data.reached.length + data.stopped.length === 0 ? <Empty title="It reaches no other column" /> : (
              <Table label="Reached columns" head={["Column", "State", "Path", "Owners"]}>
                {data.reached.map((column) => <Row key={column.column} column={column} masked={false} />)}
                {data.stopped.map((column) => <Row key={column.column} column={column} masked />)}
              </Table>
            )}
          </>
        )}
      </Loaded>
    </Panel>
  );
}

function Row({ column, masked }: { column: TaggedColumn; masked: boolean }) {
  return (
    <tr>
      <td><EntityLink id={column.column} type="column" /></td>
      <td><Badge tone={masked ? "safe" : "warning"} icon={masked ? "shield" : "warning"}>{masked ? "masked" : "exposed"}</Badge></td>
      <td className={styles.path}>{column.path.map((step, at) => <span key={at}>{at ? <Icon name="arrow" size={12} /> : null}{nameOf(step)}</span>)}</td>
      <td><Owners owners={column.owners ?? []} /></td>
    </tr>
  );
}
