import { useMemo } from "react";
import { useAnswer, useGet } from "../../api/queries";
import type { ColumnEdges, EntityView } from "../../api/types";
import { Code } from "../../design/code";
import { EntityLink } from "../../design/page";
import { CopyButton, Empty, Panel, Skeleton } from "../../design/parts";
import styles from "./entity.module.css";

/** The SQL and source of a job, or of the jobs that write a dataset. */
export function CodePanel({ entity }: { entity: EntityView }) {
  if (entity.kind === "job") return <JobCode entity={entity} names={[]} />;
  const columns = entity.columns.map((column) => column.name);
  const writers = [...new Set(entity.upstream.flatMap((source) => source.via))];
  if (writers.length === 0) return <Panel><Empty title="No job that writes this dataset is known" /></Panel>;
  return writers.map((job) => <WriterCode key={job} job={job} names={columns} />);
}

function WriterCode({ job, names }: { job: string; names: readonly string[] }) {
  const answer = useGet<EntityView>("/v1/entity", { entity: job });
  if (answer.data === undefined) return <Panel><div data-loading><Skeleton height={160} /></div></Panel>;
  return <JobCode entity={answer.data} names={names} />;
}

/** With `names`, the columns of a dataset that the job writes, which are marked as well as those it references. */
function JobCode({ entity, names }: { entity: EntityView; names: readonly string[] }) {
  const { sql, source } = entity;
  const referenced = useReferenced(entity);
  const marked = useMemo(() => [...new Set([...names, ...referenced])], [names, referenced]);
  return (
    <Panel title={<EntityLink id={entity.id} label={entity.name} />} actions={sql ? <CopyButton text={sql} label="Copy SQL" /> : undefined} label={`Code of ${entity.name}`}>
      {source ? <p className={styles.source}>Source: {/^https?:\/\//.test(source) ? <a href={source} rel="noreferrer noopener" target="_blank">{source}</a> : <code>{source}</code>}</p> : null}
      {sql ? <Code text={sql} names={marked} label={`SQL of ${entity.name}`} /> : <Empty title="No SQL is known">No event of this job contained its SQL.</Empty>}
    </Panel>
  );
}

const NO_NAMES: readonly string[] = [];

/** The columns that a job reads and writes, by its column edges. */
function useReferenced(job: EntityView): readonly string[] {
  const datasets = useMemo(() => [...new Set([...job.upstream, ...job.downstream].map(({ id }) => id))], [job]);
  const answer = useAnswer<ColumnEdges>("/v1/column-edges", { datasets }, datasets.length > 0);
  return useMemo(() => {
    const edges = answer.data?.edges.filter((edge) => edge.job === job.id) ?? [];
    const names = edges.flatMap(({ source, target }) => [source.column, target.column]);
    return names.length ? [...new Set(names)].filter((name) => name !== "*") : NO_NAMES;
  }, [answer.data, job.id]);
}
