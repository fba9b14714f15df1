import type { RecordedVerdict } from "../../api/types";
import { asWords, formatAge, formatTime, plural } from "../../design/format";
import type { IconName } from "../../design/icons";
import { EntityLink } from "../../design/page";
import { Badge, type Tone } from "../../design/parts";
import styles from "./verdicts.module.css";

const DECISIONS: Record<RecordedVerdict["decision"], { tone: Tone; icon: IconName }> = {
  BLOCKED: { tone: "breaking", icon: "breaking" },
  CAUTION: { tone: "warning", icon: "warning" },
  APPROVED: { tone: "safe", icon: "check" },
};

export function DecisionBadge({ decision }: { decision: RecordedVerdict["decision"] }) {
  return <Badge {...DECISIONS[decision]}>{asWords(decision)}</Badge>;
}

/** Verdicts of the gate: the change, the decision, and the affected consumers. */
export function VerdictList({ verdicts, short = false }: { verdicts: readonly RecordedVerdict[]; short?: boolean }) {
  return (
    <ul className={styles.verdicts}>
      {verdicts.map((verdict) => (
        <li key={verdict.id}>
          <DecisionBadge decision={verdict.decision} />
          <div className={styles.text}>
            <p className={styles.change} title={verdict.changes.join("\n")}>{summaryOf(verdict.changes)}</p>
            <p className={styles.reason}>{verdict.reason}</p>
            {short ? null : <Details verdict={verdict} />}
            <Waivers waived={verdict.waived ?? []} short={short} />
          </div>
          <div className={styles.when}>
            <time dateTime={verdict.at} title={formatTime(verdict.at)}>{formatAge(verdict.at)}</time>
            <span>{reachOf(verdict)}</span>
          </div>
        </li>
      ))}
    </ul>
  );
}

function Details({ verdict }: { verdict: RecordedVerdict }) {
  return (
    <p className={styles.details}>
      {verdict.targets.map((target) => <EntityLink key={target} id={target} />)}
      <span>decided by <code>{verdict.decided_by}</code></span>
      <span>{verdict.risk.toLowerCase()} risk</span>
      {verdict.by ? <span>by {verdict.by}</span> : null}
      {verdict.base ? <code title={`${verdict.base}..${verdict.head}`}>{commitsOf(verdict)}</code> : null}
      {verdict.complete ? null : <Badge tone="warning" icon="blind">not complete</Badge>}
    </p>
  );
}

function Waivers({ waived, short }: { waived: readonly string[]; short: boolean }) {
  if (waived.length === 0) return null;
  if (short) return <p className={styles.details}><Badge tone="info" icon="owner">{plural(waived.length, "finding")} waived</Badge></p>;
  return (
    <ul className={styles.waivers} aria-label="Waived">
      {groupWaivers(waived).map(({ rules, waiver }) => (
        <li key={waiver}><Badge tone="info" icon="owner">waived</Badge><span>{rules.map((rule) => <code key={rule}>{rule}</code>)} by {waiver}</span></li>
      ))}
    </ul>
  );
}

/** A person often waives several rules at once: each waiver with all rules that it is for. */
export function groupWaivers(waived: readonly string[]): { rules: string[]; waiver: string }[] {
  const groups = new Map<string, string[]>();
  for (const text of waived) {
    const [rule = "", ...rest] = text.split(": ");
    const waiver = rest.join(": ");
    groups.set(waiver, [...(groups.get(waiver) ?? []), rule]);
  }
  return [...groups].map(([waiver, rules]) => ({ rules, waiver }));
}

/** The first change, and how many others there are. */
export function summaryOf(changes: readonly string[]): string {
  const [first = "no change", ...others] = changes;
  return others.length === 0 ? first : `${first} and ${plural(others.length, "other change")}`;
}

function reachOf({ affected, breaking }: RecordedVerdict): string {
  return affected === 0 ? "nothing affected" : `${affected} affected, ${breaking} breaking`;
}

function commitsOf({ base = "", head = "" }: RecordedVerdict): string {
  return `${base.slice(0, 8)}..${head === "" ? "working tree" : head.slice(0, 8)}`;
}
