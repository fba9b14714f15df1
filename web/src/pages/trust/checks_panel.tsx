import { useState } from "react";
import { useGet } from "../../api/queries";
import type { CheckViolation, LineageChecks } from "../../api/types";
import { formatCount, plural } from "../../design/format";
import type { IconName } from "../../design/icons";
import { BlindSpots, EntityLink, LinkedText, Loaded, Owners, Prose, Table } from "../../design/page";
import { Badge, Button, Panel, type Tone } from "../../design/parts";
import styles from "./trust.module.css";

const SEVERITIES: Record<CheckViolation["severity"], { tone: Tone; icon: IconName }> = {
  error: { tone: "breaking", icon: "breaking" },
  warning: { tone: "warning", icon: "warning" },
  info: { tone: "info", icon: "change" },
};

const SHOWN = 25;

/** The rules of lineage, and their violations. */
export function ChecksPanel() {
  const checks = useGet<LineageChecks>("/v1/checks");
  const [rule, setRule] = useState<string | null>(null);
  return (
    <Loaded query={checks} height={320}>
      {(data) => (
        <>
          <Panel title="Rules" actions={<Badge tone={data.passed ? "safe" : "breaking"} icon={data.passed ? "check" : "breaking"}>{data.passed ? "passed" : "failed"}</Badge>} flush label="Rules">
            <p className={styles.note}>
              {plural(data.violations.length, "violation")} in {plural(data.datasets, "dataset")} and {plural(data.jobs, "job")}{data.ignored ? `, ${data.ignored} ignored by configuration` : ""}. The same as <code>downriver check</code>.
            </p>
            <Table label="Rules" head={["Rule", "Severity", "Meaning", "Violations"]} numeric={[3]}>
              {data.rules.map((one) => (
                <tr key={one.rule}>
                  <td><code>{one.rule}</code></td>
                  <td>{one.violations ? <Badge {...SEVERITIES[one.severity]}>{one.severity}</Badge> : <span className={styles.passed}>{one.severity}</span>}</td>
                  <td><Prose text={one.meaning} /></td>
                  <td data-numeric>
                    {one.violations === 0 ? <Badge tone="safe" icon="check">none</Badge> : (
                      <Button className={styles.count} aria-pressed={rule === one.rule} title="Show only these" onClick={() => setRule(rule === one.rule ? null : one.rule)}>{formatCount(one.violations)}<span className="visually-hidden"> violations of {one.rule}: show only these</span></Button>
                    )}
                  </td>
                </tr>
              ))}
            </Table>
          </Panel>
          <BlindSpots spots={data.blind_spots} />
          <Violations key={rule} of={rule === null ? data.violations : data.violations.filter((one) => one.rule === rule)} rule={rule} />
        </>
      )}
    </Loaded>
  );
}

function Violations({ of, rule }: { of: readonly CheckViolation[]; rule: string | null }) {
  const [all, setAll] = useState(false);
  if (of.length === 0) return null;
  return (
    <Panel title={rule === null ? "Violations" : `Violations of ${rule}`} flush label="Violations">
      <Table label="Violations" head={["Rule", "Entity", "Violation", "Owners"]}>
        {(all ? of : of.slice(0, SHOWN)).map((one, at) => (
          <tr key={at}>
            <td><Badge {...SEVERITIES[one.severity]}>{one.rule}</Badge></td>
            <td><EntityLink id={one.entity} /></td>
            <td className={styles.message}><LinkedText text={one.message} ids={[one.entity, ...(one.related ?? [])]} />{one.path ? <div><code>{one.path}</code></div> : null}</td>
            <td><Owners owners={one.owners ?? []} /></td>
          </tr>
        ))}
      </Table>
      {!all && of.length > SHOWN ? <div className={styles.more}><Button onClick={() => setAll(true)}>Show all {formatCount(of.length)}</Button></div> : null}
    </Panel>
  );
}
