import type { Effect } from "../../api/types";
import { asWords, formatAge, plural } from "../../design/format";
import { Icon, type IconName } from "../../design/icons";
import { EntityLink, Owners, Tags } from "../../design/page";
import { Badge, Empty, Panel, type Tone } from "../../design/parts";
import { placeOf, type EffectGroup } from "./effects";
import styles from "./change.module.css";

const TONES: Record<EffectGroup["severity"], { tone: Tone; icon: IconName }> = {
  breaking: { tone: "breaking", icon: "breaking" },
  warning: { tone: "warning", icon: "warning" },
  changed: { tone: "info", icon: "change" },
  safe: { tone: "safe", icon: "check" },
};

/** Every consumer that the changes affect, the worst first. */
export function ConsumerList({ groups, untouched }: { groups: readonly EffectGroup[]; untouched: number }) {
  const counts = (
    <div className={styles.counts}>
      {groups.map((group) => (
        <Badge key={group.id} {...TONES[group.severity]}>{group.effects.length} {group.title.toLowerCase()}</Badge>
      ))}
      <Badge tone="safe" icon="check">{untouched} safe</Badge>
    </div>
  );
  return (
    <Panel title="Consumers" actions={counts} flush label="Consumers">
      {groups.length === 0 ? (
        <Empty title="No consumer is affected">{untouched ? `${plural(untouched, "consumer")} read the dataset, but not the part that changes.` : "No known consumer reads it."}</Empty>
      ) : (
        groups.map((group) => (
          <section key={group.id} className={styles.group} aria-label={group.title}>
            <h3><Icon name={TONES[group.severity].icon} size={14} /> {group.title} <small>{group.meaning}</small></h3>
            <ul>
              {group.effects.map((effect) => <Consumer key={`${effect.consumer} ${effect.reason}`} effect={effect} tone={TONES[group.severity].tone} />)}
            </ul>
          </section>
        ))
      )}
    </Panel>
  );
}

function Consumer({ effect, tone }: { effect: Effect; tone: Tone }) {
  const places = (effect.references ?? []).filter((reference) => placeOf(reference) || reference.text);
  return (
    <li className={styles.consumer} data-tone={tone}>
      <div className={styles.consumerHead}>
        <EntityLink id={effect.consumer} label={effect.name} type="job" />
        <span className={styles.muted}>{asWords(effect.asset_type)}</span>
        <Tags tags={effect.tags ?? []} />
        <span className={styles.right}><Icon name="owner" size={13} /> <Owners owners={effect.owners ?? []} /></span>
      </div>
      <p>{effect.reason}</p>
      {places.map((reference, at) => (
        <p key={at} className={styles.reference}>
          {placeOf(reference) ? <code className={styles.place}>{placeOf(reference)}</code> : null}
          {reference.clause && reference.clause !== "other" ? <span className={styles.muted}>{reference.clause.replaceAll("_", " ")}</span> : null}
          {reference.text ? <code className={styles.snippet} title={reference.text}>{reference.text}</code> : null}
        </p>
      ))}
      <p className={styles.path}>
        {(effect.path ?? []).map((step, at) => (
          <span key={at}>{at ? <Icon name="arrow" size={12} /> : null}{step}</span>
        ))}
        {(effect.path ?? []).length ? <Icon name="arrow" size={12} /> : null}
        <span>{effect.name}</span>
        <span className={styles.muted}>· {plural(effect.hops ?? 1, "hop")} · {asWords(effect.basis).toLowerCase()}{effect.last_run ? ` · last run ${formatAge(effect.last_run)}` : ""}</span>
      </p>
    </li>
  );
}
