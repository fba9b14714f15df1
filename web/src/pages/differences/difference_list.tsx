import { useMemo, useState } from "react";
import { useGet } from "../../api/queries";
import type { GraphDiff, GraphDifference } from "../../api/types";
import { Choice } from "../../design/fields";
import { formatTime, parseId, plural } from "../../design/format";
import type { IconName } from "../../design/icons";
import { BlindSpots, LinkedText, Loaded } from "../../design/page";
import { Badge, Button, Empty, Panel, type Tone } from "../../design/parts";
import styles from "./differences.module.css";

const CHANGES: Record<GraphDifference["change"], { tone: Tone; icon: IconName }> = {
  added: { tone: "safe", icon: "plus" },
  removed: { tone: "breaking", icon: "minus" },
  changed: { tone: "warning", icon: "change" },
};

const PERIODS = { "1d": "the last day", "7d": "the last 7 days", "30d": "the last 30 days", "90d": "the last 90 days", "365d": "the last year" } as const;
type Period = keyof typeof PERIODS;

const DAY = 86_400_000;
const FEW = 20;

/** The differences between a moment and now, as sentences; for an entity, only its own. */
export function Differences({ entity }: { entity?: string }) {
  const [period, setPeriod] = useState<Period>("30d");
  const [all, setAll] = useState(false);
  const from = useMemo(() => startOf(period, Date.now()), [period]);
  const diff = useGet<GraphDiff>("/v1/diff", { from });
  return (
    <Panel title="What changed" actions={<div className={styles.period}><Choice label="In" value={period} change={setPeriod} options={PERIODS} /></div>} flush label="What changed">
      <Loaded query={diff} height={160}>
        {(data) => {
          const found = entity === undefined ? data.differences : data.differences.filter((difference) => concerns(difference, entity));
          if (found.length === 0) return <Empty title={`Nothing changed in ${PERIODS[period]}`}>Since {formatTime(data.from)} the lineage is the same.</Empty>;
          return (
            <>
              <p className={styles.summary}>{countsOf(found)} since {formatTime(data.from)}.</p>
              <ul className={styles.differences}>
                {(all ? found : found.slice(0, FEW)).map((difference, at) => (
                  <li key={at}><Badge {...CHANGES[difference.change]}>{difference.change}</Badge><Sentence of={difference} /></li>
                ))}
              </ul>
              {!all && found.length > FEW ? <div className={styles.more}><Button onClick={() => setAll(true)}>Show all {found.length}</Button></div> : null}
              <div className={styles.spots}><BlindSpots spots={data.blind_spots} /></div>
            </>
          );
        }}
      </Loaded>
    </Panel>
  );
}

/** The first second of a period, so that a repeated request is the same request. */
function startOf(period: Period, now: number): string {
  const days = Number.parseInt(period, 10);
  return `${new Date(now - days * DAY).toISOString().slice(0, 16)}:00Z`;
}

function countsOf(differences: readonly GraphDifference[]): string {
  const counts = new Map<string, number>();
  for (const { change } of differences) counts.set(change, (counts.get(change) ?? 0) + 1);
  return [...counts].map(([change, count]) => `${count} ${change}`).join(", ").replace(/^/, `${plural(differences.length, "difference")}: `);
}

/** Whether a difference is of an entity, of one of its columns, or of an edge that touches it. */
export function concerns(difference: GraphDifference, entity: string): boolean {
  return idsOf(difference).some((id) => id === entity || datasetOf(id) === entity);
}

function idsOf({ entity, source, job }: GraphDifference): string[] {
  return [entity, source, job].filter((id): id is string => Boolean(id));
}

function datasetOf(id: string): string | undefined {
  const { kind, namespace, name } = parseId(id);
  return kind === "column" ? `dataset:${namespace}:${name}` : undefined;
}

function Sentence({ of }: { of: GraphDifference }) {
  return <span className={styles.sentence}><LinkedText text={of.sentence} ids={idsOf(of).flatMap((id) => [id, datasetOf(id) ?? id])} /></span>;
}
