import { useGet } from "../../api/queries";
import type { DatasetVersion, DatasetVersions, EntityView } from "../../api/types";
import { formatAge, formatCount, formatTime, plural } from "../../design/format";
import { EntityLink, Loaded, Table } from "../../design/page";
import { Badge, Empty, Panel } from "../../design/parts";
import { Differences } from "../differences/difference_list";
import styles from "./entity.module.css";

/** How the lineage of an entity changed, and the versions that its runs wrote. */
export function HistoryPanel({ entity }: { entity: EntityView }) {
  return (
    <>
      <Differences entity={entity.id} />
      {entity.kind === "job" ? null : <Versions dataset={entity.id} />}
    </>
  );
}

function Versions({ dataset }: { dataset: string }) {
  const versions = useGet<DatasetVersions>("/v1/versions", { entity: dataset });
  return (
    <Panel title="Versions of the data" flush label="Versions of the data">
      <Loaded query={versions}>
        {(data) => data.versions.length === 0 ? <Empty title="No version is known">Delta Lake, Iceberg and MLflow report versions, as does any event with a version facet.</Empty> : (
          <>
            <Table label="Versions of the data" head={["Version", "Written", "By", "Rows", "Columns", "Read by", "State"]} numeric={[3]}>
              {data.versions.map((version) => <VersionRow key={version.version} version={version} best={version.version === data.rollback_to} />)}
            </Table>
            {data.omitted_count ? <p className={styles.note}>{plural(data.omitted_count, "older version")} not shown.</p> : null}
          </>
        )}
      </Loaded>
    </Panel>
  );
}

function VersionRow({ version, best }: { version: DatasetVersion; best: boolean }) {
  const readers = [...new Set(version.read_by.map((reader) => reader.job))];
  return (
    <tr>
      <td><code title={version.version}>{version.version.slice(0, 14)}</code>{version.labels.map((label) => <Badge key={label}>{label}</Badge>)}</td>
      <td title={formatTime(version.at)}>{formatAge(version.at)}</td>
      <td>{version.written_by ? <EntityLink id={version.written_by} /> : "unknown"}{version.operation || version.user ? <div className={styles.muted}>{[version.operation, version.user].filter(Boolean).join(" · ")}</div> : null}</td>
      <td data-numeric>{version.rows === null ? "" : formatCount(version.rows)}</td>
      <td>
        {version.columns_added.map((name) => <Badge key={name} tone="safe" icon="plus">{name}</Badge>)}
        {version.columns_removed.map((name) => <Badge key={name} tone="breaking" icon="minus">{name}</Badge>)}
        {version.columns_retyped.map((name) => <Badge key={name} tone="warning" icon="change">{name}</Badge>)}
        {version.columns_changed.length ? <div className={styles.muted}>values changed: {version.columns_changed.join(", ")}</div> : null}
      </td>
      <td>{readers.map((job) => <div key={job}><EntityLink id={job} /></div>)}</td>
      <td>
        {best ? <Badge tone="safe" icon="check">safe to return to</Badge> : null}
        {version.suspect.map((reason) => <div key={reason} className={styles.muted}><Badge tone="warning" icon="warning">suspect</Badge> {reason}</div>)}
      </td>
    </tr>
  );
}
