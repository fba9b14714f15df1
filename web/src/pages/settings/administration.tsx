import { useState } from "react";
import { useGet } from "../../api/queries";
import type { KeyInfo, Keys, ServerPolicy, Verification } from "../../api/types";
import { formatAge, formatCount, formatTime } from "../../design/format";
import { Loaded, Prose, Table } from "../../design/page";
import { Badge, Button, Empty, Panel } from "../../design/parts";
import { DecisionBadge } from "../verdicts/verdict_list";
import styles from "./settings.module.css";

/** The rules by which a verdict is made, in their order. */
export function PolicyPanel() {
  const policy = useGet<ServerPolicy>("/v1/policy");
  return (
    <Panel title="Policy" flush label="Policy">
      <Loaded query={policy}>
        {(data) => (
          <>
            <p className={styles.note}>The strictest finding decides. {data.source ? <>Read from <code>{data.source}</code>.</> : "This is the default policy."}</p>
            <Table label="Rules" head={["Rule", "Decision", "Meaning"]}>
              {data.rules.map((rule) => (
                <tr key={rule.name}>
                  <td><code>{rule.name}</code></td>
                  <td>{rule.decision ? <DecisionBadge decision={rule.decision} /> : null}</td>
                  <td><Prose text={rule.explanation} /></td>
                </tr>
              ))}
            </Table>
          </>
        )}
      </Loaded>
    </Panel>
  );
}

export function KeysPanel() {
  const keys = useGet<Keys>("/v1/keys");
  return (
    <Panel title="Keys" flush label="Keys">
      <Loaded query={keys}>
        {(data) => data.keys.length === 0 ? <Empty title="No key exists">Create one with <code>downriver keys create NAME --role admin</code>. From then on every request needs a key.</Empty> : (
          <Table label="Keys" head={["Name", "Role", "Namespaces", "Created", "Expires"]}>
            {data.keys.map((key) => (
              <tr key={key.name}>
                <td>{key.name}</td>
                <td><Badge>{key.role}</Badge></td>
                <td>{key.namespaces.length === 0 ? "all" : key.namespaces.map((pattern) => <code key={pattern}>{pattern} </code>)}</td>
                <td title={formatTime(key.created_at)}>{formatAge(key.created_at)}</td>
                <td title={key.expires_at ? formatTime(key.expires_at) : undefined}><KeyExpiry of={key} /></td>
              </tr>
            ))}
          </Table>
        )}
      </Loaded>
    </Panel>
  );
}

function KeyExpiry({ of }: { of: KeyInfo }) {
  if (of.revoked_at) return <Badge tone="warning">revoked</Badge>;
  if (!of.expires_at) return <>never</>;
  if (new Date(of.expires_at).getTime() <= Date.now()) return <Badge tone="warning">expired</Badge>;
  return <>{formatTime(of.expires_at)}</>;
}

/** The log is a chain of hashes: whether it is whole, and its last link. */
export function AuditPanel() {
  const [asked, setAsked] = useState(false);
  const audit = useGet<Verification>("/v1/audit/verification", {}, asked);
  const result = audit.data;
  return (
    <Panel
      title="Audit log"
      actions={result ? <Badge tone={result.ok ? "safe" : "breaking"} icon={result.ok ? "check" : "breaking"}>{result.ok ? "intact" : "altered"}</Badge> : undefined}
      label="Audit log"
    >
      <p className={styles.lead}>The log is a hash chain. A verification recomputes the chain and names the first event that was altered.</p>
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
    </Panel>
  );
}
