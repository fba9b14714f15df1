import { useState } from "react";
import { Link } from "wouter";
import { useGet } from "../../api/queries";
import type { EntityView, SchemaVersions } from "../../api/types";
import { TextField } from "../../design/fields";
import { formatAge, formatTime } from "../../design/format";
import { ReachingTag, Table, Tags } from "../../design/page";
import { Badge, Empty, Panel } from "../../design/parts";
import { changePath, columnPath } from "../../shell/routes";
import { useReaching } from "./reaching";
import styles from "./entity.module.css";

const SEARCH_ABOVE = 12;

/** The current columns, and the history of the schema. */
export function SchemaPanel({ entity }: { entity: EntityView }) {
  const [text, setText] = useState("");
  const reaching = useReaching(entity.id);
  const history = useGet<SchemaVersions>("/v1/schema-versions", { entity: entity.id });
  const shown = entity.columns.filter((column) => column.name.toLowerCase().includes(text.toLowerCase()));
  if (entity.columns.length === 0) {
    return <Panel><Empty title="Schema unknown">No event contained a schema facet for this dataset.</Empty></Panel>;
  }
  return (
    <div className={styles.columns}>
      <Panel flush label="Columns">
        {entity.columns.length > SEARCH_ABOVE ? <div className={styles.filter}><TextField label={`Find among ${entity.columns.length} columns`} value={text} change={setText} /></div> : null}
        <Table label="Columns" head={["Column", "Type", "Tags", "Description", "Proposal"]}>
          {shown.map((column) => (
            <tr key={column.name}>
              <td><Link href={columnPath(entity.id, column.name)} className={styles.columnName ?? ""}>{column.name}</Link></td>
              <td><code>{column.type || "unknown"}</code></td>
              <td className={styles.tagCell}><Tags tags={column.tags ?? []} />{reaching(column.name).map((found) => <ReachingTag key={found.tag} tag={found.tag} origin={found.origin} />)}</td>
              <td className={styles.text}>{column.description}</td>
              <td><Link href={changePath(entity.id, column.name)}>What if</Link></td>
            </tr>
          ))}
        </Table>
      </Panel>
      {history.data ? <Versions versions={[...history.data.versions].reverse()} /> : null}
    </div>
  );
}

function Versions({ versions }: { versions: SchemaVersions["versions"] }) {
  return (
    <Panel title="Schema versions" flush label="Schema versions">
      <ol className={styles.timeline}>
        {versions.map((version, at) => (
          <li key={`${version.at} ${at}`}>
            <p title={formatTime(version.at)}><strong>{formatAge(version.at)}</strong> {at === versions.length - 1 ? `first seen with ${version.columns.length} columns` : `${version.columns.length} columns`}</p>
            {at === versions.length - 1 ? null : (
              <p className={styles.changes}>
                {version.added.map((name) => <Badge key={name} tone="safe" icon="plus">{name}</Badge>)}
                {version.removed.map((name) => <Badge key={name} tone="breaking" icon="minus">{name}</Badge>)}
                {version.retyped.map((change) => <Badge key={change.name} tone="warning" icon="change">{change.name}: {change.from} → {change.to}</Badge>)}
              </p>
            )}
          </li>
        ))}
      </ol>
    </Panel>
  );
}
