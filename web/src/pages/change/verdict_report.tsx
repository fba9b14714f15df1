import { useMemo } from "react";
import type { Preview, RuleFinding, Unread, Verdict } from "../../api/types";
import { asWords, plural } from "../../design/format";
import { Icon, type IconName } from "../../design/icons";
import { BlindSpots, EntityLink, Prose } from "../../design/page";
import { Badge, CopyButton, Panel, type Tone } from "../../design/parts";
import { ConsumerList } from "./consumer_list";
import { groupEffects, placeOf, severityById } from "./effects";
import { ImpactGraph } from "./impact_graph";
import { PatchPanel } from "./patch_panel";
import styles from "./change.module.css";

const DECISIONS: Record<Verdict["decision"], { tone: Tone; icon: IconName; words: string }> = {
  APPROVED: { tone: "safe", icon: "check", words: "Approved" },
  CAUTION: { tone: "warning", icon: "warning", words: "Caution" },
  BLOCKED: { tone: "breaking", icon: "breaking", words: "Blocked" },
};

/** The report on a proposal: the verdict, its reasons, the affected consumers, and the steps of the change. */
export function VerdictReport({ preview, stale, editable, asOf }: { preview: Preview; stale: boolean; editable: boolean; asOf?: string | undefined }) {
  const { verdict } = preview;
  const { impact } = verdict;
  const severity = useMemo(() => severityById(impact), [impact]);
  const groups = useMemo(() => groupEffects(impact.effects), [impact]);
  const hops = Math.max(1, ...impact.effects.map((effect) => effect.hops ?? 1));
  return (
    <div className={styles.report} data-stale={stale || undefined}>
      <Banner preview={preview} />
      {impact.targets[0] !== undefined && impact.effects.length > 0 ? <ImpactGraph target={impact.targets[0]} severity={severity} depth={hops} asOf={asOf} /> : null}
      <ConsumerList groups={groups} untouched={impact.untouched} />
      {editable && preview.changes.length > 0 ? <PatchPanel changes={preview.changes} /> : null}
      <Rules verdict={verdict} />
    </div>
  );
}

function Banner({ preview }: { preview: Preview }) {
  const { verdict } = preview;
  const { impact } = verdict;
  const { tone, icon, words } = DECISIONS[verdict.decision];
  const unread = impact.unread ?? [];
  return (
    <section className={`${styles.banner} ${styles[`banner_${tone}`]}`} aria-label="Verdict">
      <div className={styles.bannerHead}>
        <span className={styles.bannerIcon}><Icon name={icon} size={22} /></span>
        <div>
          <h2>
            {words} <span className={styles.risk}>{verdict.risk.toLowerCase()} risk</span>
          </h2>
          <p><Prose text={verdict.reason} /></p>
        </div>
        <CopyButton text={preview.comment} label="Copy as PR comment" />
      </div>
      <p className={styles.next}><Prose text={verdict.recommendation} /></p>
      <div className={styles.facts}>
        <Badge tone={impact.complete ? "safe" : "warning"} icon={impact.complete ? "check" : "blind"}>
          {impact.complete ? "Complete: everything downstream is known" : `Not complete: ${missing(impact.blind_spots.length, unread.length)}`}
        </Badge>
        <span>Decided by <code>{verdict.decided_by}</code></span>
        {verdict.ask.length ? <span>Owners to ask: {verdict.ask.join(", ")}</span> : null}
      </div>
      <BlindSpots spots={impact.blind_spots} />
      {unread.length ? <UnreadList unread={unread} /> : null}
    </section>
  );
}

function missing(spots: number, unread: number): string {
  const parts = [spots ? plural(spots, "blind spot") : "", unread ? `${plural(unread, "place")} not read` : ""];
  return parts.filter(Boolean).join(", ");
}

function UnreadList({ unread }: { unread: readonly Unread[] }) {
  return (
    <ul className={styles.unread} aria-label="Not read">
      {unread.map((place, at) => (
        <li key={at}>
          <Badge tone="warning">{asWords(place.reason)}</Badge> <code>{placeOf(place)}</code> {place.detail}
        </li>
      ))}
    </ul>
  );
}

function Rules({ verdict }: { verdict: Verdict }) {
  return (
    <Panel title="Rules of the policy" flush label="Rules of the policy">
      {verdict.findings.length === 0 ? (
        <p className={styles.quiet}>No rule found anything: the change is approved.</p>
      ) : (
        <ul className={styles.rules}>
          {verdict.findings.map((finding) => <Rule key={finding.rule} finding={finding} decided={finding.rule === verdict.decided_by} />)}
        </ul>
      )}
    </Panel>
  );
}

function Rule({ finding, decided }: { finding: RuleFinding; decided: boolean }) {
  const { tone, icon, words } = DECISIONS[finding.decision];
  return (
    <li>
      <Badge tone={tone} icon={icon}>{words}</Badge>
      <div>
        <p><code>{finding.rule}</code>{decided ? <strong> decided the verdict</strong> : null}{finding.waived ? <Badge>waived: {finding.waived}</Badge> : null}</p>
        <p><Prose text={finding.message} /></p>
        {finding.entities?.length ? (
          <div className={styles.entities}>{finding.entities.map((id) => <EntityLink key={id} id={id} />)}</div>
        ) : null}
      </div>
    </li>
  );
}
