import { useState } from "react";
import { useSearchParams } from "wouter";
import { useGet } from "../../api/queries";
import type { RunDetails, RunRecord, StoredEvent } from "../../api/types";
import { formatBytes, formatCount, formatDuration, formatTime, nameOf } from "../../design/format";
import { EntityLink, Loaded, Page } from "../../design/page";
import { Badge, Button, CopyBlock, Empty, Panel } from "../../design/parts";
import { RunState } from "../../design/runs";
import { Json } from "../entity/raw_panel";
import styles from "../entity/entity.module.css";

/** One run of a job: its inputs, outputs and state, and the events that report them. */
export default function Run() {
  const [address] = useSearchParams();
  const id = address.get("id") ?? "";
  const answer = useGet<RunDetails>(`/v1/runs/${encodeURIComponent(id)}`, {}, id !== "");
  if (id === "") return <Page title="Run"><Empty title="No run was chosen" /></Page>;
  return (
    <Page title={answer.data ? `Run of ${nameOf(answer.data.run.job)}` : "Run"} lead={<code>{id}</code>} badges={answer.data ? <RunState state={answer.data.run.state} /> : undefined}>
      <Loaded query={answer} height={320}>
        {(data) => (
          <>
            <RunFacts run={data.run} />
            {data.run.error ? <Panel title="Error" label="Error"><CopyBlock text={data.run.error} /></Panel> : null}
            <div className={styles.halves}>
              <Datasets title="Read" ids={data.run.inputs} />
              <Datasets title="Written" ids={data.run.outputs} />
            </div>
            {data.facets.map((part) => <Json key={`${part.role} ${part.entity}`} title={`Facets: ${part.role} ${nameOf(part.entity)}`} value={part.facets} />)}
            <Events digests={data.events} />
          </>
        )}
      </Loaded>
    </Page>
  );
}

function RunFacts({ run }: { run: RunRecord }) {
  return (
    <dl className={styles.facts}>
      <div><dt>Job</dt><dd><EntityLink id={run.job} /></dd></div>
      <div><dt>Started</dt><dd>{formatTime(run.started_at)}</dd></div>
      <div><dt>Ended</dt><dd>{formatTime(run.ended_at)}</dd></div>
      <div><dt>Duration</dt><dd>{formatDuration(run.duration_seconds)}</dd></div>
      {run.rows_read === null || run.rows_read === undefined ? null : <div><dt>Rows read</dt><dd>{formatCount(run.rows_read)}</dd></div>}
      {run.rows_written === null || run.rows_written === undefined ? null : <div><dt>Rows written</dt><dd>{formatCount(run.rows_written)}</dd></div>}
      {run.bytes_written === null || run.bytes_written === undefined ? null : <div><dt>Bytes written</dt><dd>{formatBytes(run.bytes_written)}</dd></div>}
      {run.quality ? <div><dt>Quality</dt><dd><Badge tone={run.quality.failed ? "breaking" : "safe"}>{run.quality.passed} passed, {run.quality.failed} failed</Badge></dd></div> : null}
    </dl>
  );
}

function Datasets({ title, ids }: { title: string; ids: readonly string[] }) {
  return (
    <Panel title={title} label={title}>
      {ids.length ? <ul>{ids.map((id) => <li key={id}><EntityLink id={id} /></li>)}</ul> : <span className={styles.muted}>No dataset is known.</span>}
    </Panel>
  );
}

function Events({ digests }: { digests: readonly string[] }) {
  const [chosen, setChosen] = useState<string | null>(null);
  const event = useGet<StoredEvent>(`/v1/events/${chosen ?? ""}`, {}, chosen !== null);
  return (
    <>
      <Panel title="Events" label="Events">
        <ul className={styles.changes}>
          {digests.map((digest) => (
            <li key={digest}><Button aria-pressed={digest === chosen} onClick={() => setChosen(digest)} title={digest}><code>{digest.slice(0, 12)}</code></Button></li>
          ))}
        </ul>
      </Panel>
      {chosen !== null ? <Loaded query={event}>{(data) => <Json title={`Event of ${formatTime(data.received_at)}`} value={data.event} />}</Loaded> : null}
    </>
  );
}
