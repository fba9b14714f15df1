/** Findings of the monitor, the same on every page. */

import type { Finding } from "../api/types";
import { asWords, formatAge, formatTime, plural, withTimes } from "./format";
import type { IconName } from "./icons";
import { EntityLink, Owners } from "./page";
import { Badge, type Tone } from "./parts";
import styles from "./findings.module.css";

const SEVERITIES: Record<Finding["severity"], { tone: Tone; icon: IconName }> = {
  critical: { tone: "breaking", icon: "breaking" },
  warning: { tone: "warning", icon: "warning" },
  info: { tone: "info", icon: "change" },
};

export function FindingList({ findings }: { findings: readonly Finding[] }) {
  return (
    <ul className={styles.findings}>
      {findings.map((finding) => (
        <li key={finding.id || `${finding.kind} ${finding.entity} ${finding.subject}`}>
          <Badge {...SEVERITIES[finding.severity]}>{asWords(finding.kind)}</Badge>
          <div>
            <p>{withTimes(finding.message)}</p>
            <p className={styles.line}>
              <EntityLink id={finding.entity} />
              {finding.affected_count ? <span>{plural(finding.affected_count, "entity", "entities")} downstream</span> : null}
              <Owners owners={finding.owners ?? []} />
            </p>
          </div>
          <div className={styles.when} title={formatTime(finding.first_seen)}>
            {formatAge(finding.first_seen)}
            {finding.status === "resolved" ? <Badge tone="safe" icon="check">resolved</Badge> : null}
          </div>
        </li>
      ))}
    </ul>
  );
}
