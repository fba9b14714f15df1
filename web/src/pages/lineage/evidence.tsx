import { useState } from "react";
import { useGet } from "../../api/queries";
import type { StoredEvent } from "../../api/types";
import { formatTime } from "../../design/format";
import { Badge, Button, CopyBlock, ErrorState, Skeleton, type Tone } from "../../design/parts";
import { clause, type PickedEdge } from "../../graph/edge_overlay";
import type { ColumnEdge, GraphEdge } from "../../graph/graph_types";
import styles from "./side_panel.module.css";

const CONFIDENCE_TONES: Record<string, Tone> = { exact: "safe", declared: "info", inferred: "warning", ambiguous: "breaking" };
const CONFIDENCE_TEXTS: Record<string, string> = {
  exact: "An event states this edge.",
  inferred: "Derived from other facts; no event states it in full.",
  ambiguous: "Several readings are possible; this is one of them.",
  declared: "A person or a configuration file declared it.",
};

export function Confidence({ level }: { level: string }) {
  return <span title={CONFIDENCE_TEXTS[level]}><Badge tone={CONFIDENCE_TONES[level] ?? "neutral"}>{level}</Badge></span>;
}

type Named = (id: string) => string;

/** The evidence of an edge: its events, code, times and confidence. */
export function Evidence({ picked, label }: { picked: PickedEdge; label: Named }) {
  return picked.kind === "edge" ? <EdgeEvidence edge={picked.edge} label={label} /> : <ColumnEvidence edge={picked.edge} label={label} />;
}

function EdgeEvidence({ edge, label }: { edge: GraphEdge; label: Named }) {
  return (
    <section aria-label="Evidence of the edge" className={styles.section}>
      <h2 className={styles.path}>{label(edge.source)} <span>→</span> {label(edge.target)}</h2>
      <div className={styles.badges}>
        <Badge>{edge.kind}</Badge>
        <Confidence level={edge.confidence} />
        {edge.status === "stale" ? <Badge tone="warning" icon="clock">stale</Badge> : null}
        {edge.change ? <Badge tone={edge.change === "added" ? "safe" : edge.change === "removed" ? "breaking" : "warning"}>{edge.change}</Badge> : null}
      </div>
      {edge.members !== undefined ? <p className={styles.muted}>Stands for {edge.members} edges between collapsed groups. The evidence is that of one of them.</p> : null}
      <dl className={styles.facts}>
        {edge.job ? <Fact name="Job">{label(edge.job)}</Fact> : null}
        <Fact name="First seen">{formatTime(edge.first_seen)}</Fact>
        <Fact name="Last seen">{formatTime(edge.last_seen)}</Fact>
      </dl>
      <Events first={edge.first_event} last={edge.last_event} />
    </section>
  );
}

function ColumnEvidence({ edge, label }: { edge: ColumnEdge; label: Named }) {
  return (
    <section aria-label="Evidence of the column edge" className={styles.section}>
      <h2 className={styles.path}>
        {label(edge.source.dataset)}.{edge.source.column} <span>→</span> {label(edge.target.dataset)}.{edge.target.column}
      </h2>
      <div className={styles.badges}>
        <Badge tone={edge.type === "DIRECT" ? "neutral" : "info"}>{edge.type} {clause(edge.subtype)}</Badge>
        <Confidence level={edge.confidence} />
        {edge.masking ? <Badge tone="certified" icon="lock">masked</Badge> : null}
      </div>
      {edge.description ? <CopyBlock text={edge.description} /> : null}
      <dl className={styles.facts}>
        {edge.job ? <Fact name="Job">{label(edge.job)}</Fact> : null}
        {edge.location ? <Fact name="Source"><code>{edge.location}</code></Fact> : null}
        {edge.first_seen ? <Fact name="First seen">{formatTime(edge.first_seen)}</Fact> : null}
        {edge.last_seen ? <Fact name="Last seen">{formatTime(edge.last_seen)}</Fact> : null}
      </dl>
      <Events first={edge.first_event} last={edge.last_event} />
    </section>
  );
}

export function Fact({ name, children }: { name: string; children: React.ReactNode }) {
  return (
    <>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </>
  );
}

function Events({ first, last }: { first: string; last: string }) {
  const [open, setOpen] = useState<string>();
  const digests = first === last ? [{ digest: first, text: "Event" }] : [{ digest: first, text: "First event" }, { digest: last, text: "Last event" }];
  return (
    <div className={styles.events}>
      {digests.filter(({ digest }) => digest).map(({ digest, text }) => (
        <Button key={digest} icon="link" aria-expanded={open === digest} onClick={() => setOpen(open === digest ? undefined : digest)}>
          {text} <code>{digest.slice(0, 8)}</code>
        </Button>
      ))}
      {open ? <EventView digest={open} /> : null}
    </div>
  );
}

function EventView({ digest }: { digest: string }) {
  const answer = useGet<StoredEvent>(`/v1/events/${encodeURIComponent(digest)}`);
  if (answer.error) return <ErrorState error={answer.error} retry={() => void answer.refetch()} />;
  if (answer.data?.digest !== digest) return <Skeleton height={160} />;
  return (
    <div className={styles.event}>
      <p className={styles.muted}>Received {formatTime(answer.data.received_at)} from {answer.data.producer}</p>
      <CopyBlock text={JSON.stringify(answer.data.event, null, 2)} />
    </div>
  );
}
