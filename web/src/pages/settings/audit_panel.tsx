import { useState } from "react";
import { request, urlOf } from "../../api/client";
import { useGet } from "../../api/queries";
import type { AuditPage, AuditRecord, Verification } from "../../api/types";
import { Choice } from "../../design/fields";
import { save } from "../../design/download";
import { formatAge, formatCount, formatTime } from "../../design/format";
import { Loaded, Prose, Table } from "../../design/page";
import { Badge, Button, Empty, Panel } from "../../design/parts";
import styles from "./settings.module.css";

const PERIODS = { "1d": "the last day", "7d": "the last week", "30d": "the last 30 days", all: "all time" } as const;
const STEP = 25;
const MOST = 1000;

/** Writes, refused requests and actions of admins, and whether the log of events is unaltered. */
export function AuditPanel() {
  const [period, setPeriod] = useState<keyof typeof PERIODS>("30d");
  const [limit, setLimit] = useState(STEP);
  const since = period === "all" ? undefined : period;
  const audit = useGet<AuditPage>("/v1/audit", { since, limit });
  const download = async () => save("audit.csv", await (await request(urlOf("/v1/audit/export", { format: "csv", since }))).blob());
  return (
    <Panel
      title="Audit log"
      flush
      label="Audit log"
      actions={(
        <div className={styles.period}>
          <Choice label="In" value={period} change={setPeriod} options={PERIODS} />
          <Button icon="download" onClick={() => void download()}>CSV</Button>
        </div>
      )}
    >
      <Loaded query={audit}>
        {(data) => data.entries.length === 0 ? <Empty title={`Nothing happened in ${PERIODS[period]}`}>Writes, refusals and acts of admins appear here.</Empty> : (
          <>
            <Table label="Audit log" head={["When", "Who", "What", "Of", "Times", "Detail"]} numeric={[4]}>
              {data.entries.map((entry) => (
                <tr key={entry.id}>
                  <td className={styles.when} title={formatTime(entry.last_at)}>{formatAge(entry.last_at)}</td>
                  <td>{entry.actor || <span className={styles.aside}>no valid key</span>}</td>
                  <td>{entry.action === "refused" ? <Badge tone="breaking" icon="breaking">refused</Badge> : <Badge>{entry.action}</Badge>}</td>
                  <td><code>{entry.target}</code></td>
                  <td data-numeric>{formatCount(entry.count)}</td>
                  <td><Prose text={entry.detail || entriesOfLog(entry)} /></td>
                </tr>
              ))}
            </Table>
            {data.next_cursor && limit < MOST ? <p className={styles.others}><Button onClick={() => setLimit(Math.min(limit * 4, MOST))}>Show older entries</Button></p> : null}
          </>
        )}
      </Loaded>
      <ChainCheck />
    </Panel>
  );
}

/** The entries of the log that a write added. */
export function entriesOfLog({ first_seq: first, last_seq: last }: AuditRecord): string {
  if (!first || !last) return "";
  return first === last ? `log entry ${first}` : `log entries ${first} to ${last}`;
}

/** The log of events is a chain of hashes: whether it is whole, and its last link. */
function ChainCheck() {
  const [asked, setAsked] = useState(false);
  const audit = useGet<Verification>("/v1/audit/verification", {}, asked);
  const result = audit.data;
  return (
    <div className={styles.chain}>
      <h3>Hash chain of the events {result ? <Badge tone={result.ok ? "safe" : "breaking"} icon={result.ok ? "check" : "breaking"}>{result.ok ? "intact" : "altered"}</Badge> : null}</h3>
      <p className={styles.lead}>A verification recomputes the chain and names the first event that was altered.</p>
      {asked ? (
        <Loaded query={audit}>
          {(data) => (
            <dl className={styles.facts}>
              <div><dt>Events in the chain</dt><dd>{formatCount(data.entries)}</dd></div>
              <div className={styles.wide}><dt>Head</dt><dd><code>{data.head}</code></dd></div>
              {data.ok ? null : <div className={styles.wide}><dt>Problem</dt><dd>Event {data.altered_seq} {data.reason}</dd></div>}
            </dl>
          )}
        </Loaded>
      ) : <Button icon="shield" onClick={() => setAsked(true)}>Verify the hash chain</Button>}
    </div>
  );
}
