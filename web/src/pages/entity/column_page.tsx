import type { ReactNode } from "react";
import { Link } from "wouter";
import { useGet } from "../../api/queries";
import type { ColumnEdges, Diagnosis, EntityView } from "../../api/types";
import { columnId, formatAge } from "../../design/format";
import { Icon } from "../../design/icons";
import { BlindSpots, EntityLink, Loaded, Page, ReachingTag, Table } from "../../design/page";
import { Badge, Empty, Panel } from "../../design/parts";
import { changePath, lineagePath } from "../../shell/routes";
import buttons from "../../design/parts.module.css";
import { TagEditor } from "./edit/tag_editor";
import { ColumnEdgesTable } from "./column_edges_table";
import { useReaching } from "./reaching";
import styles from "./entity.module.css";

/** One column: its upstream and its downstream. */
export function ColumnPage({ entity, column, asOf, past }: { entity: EntityView; column: string; asOf: string | undefined; past: ReactNode }) {
  const info = entity.columns.find((known) => known.name === column);
  const reaching = useReaching(entity.id);
  const path = useGet<ColumnEdges>("/v1/column-path", { dataset: entity.id, column, as_of: asOf });
  const diagnosis = useGet<Diagnosis>("/v1/diagnosis", { dataset: entity.id, column });
  return (
    <Page
      title={<span className={styles.title}><Icon name="column" size={22} />{column}</span>}
      lead={<>{info?.description ? <span>{info.description} · </span> : null}Column of <EntityLink id={entity.id} label={entity.name} type={entity.type} /></>}
      badges={<><Badge>{info?.type || "type unknown"}</Badge><TagEditor entity={columnId(entity.id, column)} name={column} tags={info?.tags ?? []} />{reaching(column).map((found) => <ReachingTag key={found.tag} tag={found.tag} origin={found.origin} />)}</>}
      actions={
        <>
          <Link href={lineagePath(entity.id, column, asOf)} className={buttons.button ?? ""}><Icon name="graph" />Lineage</Link>
          <Link href={changePath(entity.id, column, asOf)} className={`${buttons.button} ${buttons.primary}`}><Icon name="change" />What if</Link>
        </>
      }
    >
      {past}
      <Loaded query={path} height={220}>
        {(data) => <PathPanels edges={data} dataset={entity.id} column={column} />}
      </Loaded>
      <Panel title="Source datasets and their freshness" flush label="Source datasets">
        <Loaded query={diagnosis}>
          {(data) => data.freshness.length === 0 ? <Empty title="No source dataset is known" /> : (
            <Table label="Source datasets" head={["Dataset", "Last updated", "Written by"]}>
              {data.freshness.map((source) => (
                <tr key={source.source}>
                  <td><EntityLink id={source.dataset} /></td>
                  <td>{source.last_updated ? formatAge(source.last_updated) : "unknown"}</td>
                  <td>{source.written_by.map((job) => <EntityLink key={job} id={job} />)}</td>
                </tr>
              ))}
            </Table>
          )}
        </Loaded>
      </Panel>
    </Page>
  );
}

/** Divide the edges of a path into those upstream and those downstream of the column. */
export function splitPath(edges: ColumnEdges["edges"], dataset: string, column: string): { upstream: ColumnEdges["edges"]; downstream: ColumnEdges["edges"] } {
  const key = (place: { dataset: string; column: string }) => `${place.dataset}\n${place.column}`;
  const reached = new Set([`${dataset}\n${column}`]);
  const downstream: ColumnEdges["edges"] = [];
  for (let grew = true; grew; ) {
    grew = false;
    for (const edge of edges) {
      if (!reached.has(key(edge.source)) || downstream.includes(edge)) continue;
      downstream.push(edge);
      reached.add(key(edge.target));
      grew = true;
    }
  }
  return { downstream, upstream: edges.filter((edge) => !downstream.includes(edge)) };
}

function PathPanels({ edges, dataset, column }: { edges: ColumnEdges; dataset: string; column: string }) {
  const { upstream, downstream } = splitPath(edges.edges, dataset, column);
  return (
    <>
      <BlindSpots spots={edges.blind_spots} />
      <Panel title="Comes from" flush label="Comes from">
        {upstream.length ? <ColumnEdgesTable edges={upstream} label="Comes from" /> : <Empty title="No source column is known" />}
      </Panel>
      <Panel title="Feeds" flush label="Feeds">
        {downstream.length ? <ColumnEdgesTable edges={downstream} label="Feeds" /> : <Empty title="No column is computed from it" />}
      </Panel>
    </>
  );
}
