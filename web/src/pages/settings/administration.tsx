import { useGet } from "../../api/queries";
import type { Audit, Keys, PolicyInForce } from "../../api/types";
import { asWords, formatAge, formatCount, formatTime } from "../../design/format";
import { Loaded, Prose, Table } from "../../design/page";
import { Badge, Empty, Panel, type Tone } from "../../design/parts";
import styles from "./settings.module.css";

const DECISIONS: Record<string, Tone> = { BLOCKED: "breaking", CAUTION: "warning", APPROVED: "safe" };

/** The rules by which a verdict is made, in their order. */
export function PolicyPanel() {
  const policy = useGet<PolicyInForce>("/v1/policy");
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
                  <td>{rule.decision ? <Badge tone={DECISIONS[rule.decision] ?? "neutral"}>{asWords(rule.decision)}</Badge> : null}</td>
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
        {(data) => data.keys.length === 0 ? <Empty title="No key exists">Create one with <code>downriver keys create NAME --role reader</code>. From then on every request needs a key.</Empty> : (
          <Table label="Keys" head={["Name", "Role", "Created"]}>
            {data.keys.map((key) => <tr key={key.name}><td>{key.name}</td><td><Badge>{key.role}</Badge></td><td title={formatTime(key.created_at)}>{formatAge(key.created_at)}</td></tr>)}
          </Table>
        )}
      </Loaded>
    </Panel>
  );
}

/** The log is a chain of hashes: whether it is whole, and its last link. */
export function AuditPanel() {
  const audit = useGet<Audit>("/v1/audit");
  return (
    <Panel title="Audit log" actions={audit.data ? <Badge tone={audit.data.intact ? "safe" : "breaking"} icon={audit.data.intact ? "check" : "breaking"}>{audit.data.intact ? "intact" : "altered"}</Badge> : undefined} label="Audit log">
      <Loaded query={audit}>
        {(data) => (
          <dl className={styles.facts}>
            <div><dt>Events in the chain</dt><dd>{formatCount(data.events)}</dd></div>
            <div className={styles.wide}><dt>Head</dt><dd><code>{data.head ?? "none"}</code></dd></div>
            {data.problem ? <div className={styles.wide}><dt>Problem</dt><dd>{data.problem}</dd></div> : null}
          </dl>
        )}
      </Loaded>
    </Panel>
  );
}
