import { Link } from "wouter";
import { EntityLink, TagBadge } from "../../design/page";
import { Badge, type Tone } from "../../design/parts";
import { formatTime } from "../../design/format";
import { Icon, type IconName } from "../../design/icons";
import { runStateText } from "../../design/run_states";
import type { PickedEdge } from "../../graph/edge_overlay";
import type { BlindSpot, GraphEdge, GraphNode } from "../../graph/graph_types";
import { Mark, markText, nodeIcon, typeText } from "../../graph/cards/marks";
import { changePath, entityPath, lineagePath } from "../../shell/routes";
import { Confidence, Fact } from "./evidence";
import styles from "./side_panel.module.css";

interface Props {
  node: GraphNode;
  edges: readonly GraphEdge[];
  blindSpots: readonly BlindSpot[];
  label: (id: string) => string;
  onPick: (picked: PickedEdge) => void;
  asOf: string | undefined;
}

/** The selected node: its type, its blind spots, and its edges with their evidence. */
export function NodeDetails({ node, edges, blindSpots, label, onPick, asOf }: Props) {
  const own = blindSpots.filter((spot) => spot.entity === node.id || spot.entity === node.name);
  return (
    <section aria-label={`Details of ${node.label}`} className={styles.section}>
      <h2 className={styles.path}><Icon name={nodeIcon(node)} /> {node.label}</h2>
      <p className={styles.muted} title={node.namespace}>{node.members !== undefined ? `${node.members} nodes` : `${typeText(node)} · ${node.namespace} · ${node.name}`}</p>
      {node.description ? <p>{node.description}</p> : null}
      <div className={styles.badges}>
        {node.marks.map((mark) => <span key={mark} className={styles.mark}><Mark mark={mark} />{markText(mark)}</span>)}
        {node.tags.map((tag) => <Badge key={tag} icon="tag">{tag}</Badge>)}
      </div>
      {node.members === undefined ? (
        <nav className={styles.links} aria-label="Pages of this node">
          <Link href={entityPath(node.id, asOf)}>Open page</Link>
          <Link href={lineagePath(node.id, undefined, asOf)}>Start here</Link>
          {node.kind === "dataset" ? <Link href={changePath(node.id, undefined, asOf)}>What if it changes?</Link> : null}
        </nav>
      ) : null}
      {node.change ? <Change node={node} /> : null}
      <dl className={styles.facts}>
        {node.owners.length ? <Fact name="Owners">{node.owners.join(", ")}</Fact> : null}
        {node.column_total ? <Fact name="Columns">{node.column_total}</Fact> : null}
        {node.last_run ? <Fact name="Last run">{runStateText(node.last_run.state)}{node.last_run.ended_at ? `, ${formatTime(node.last_run.ended_at)}` : ""}</Fact> : null}
        <Fact name="Neighbours">{node.upstream_total} upstream, {node.downstream_total} downstream</Fact>
      </dl>
      {node.reaching ? <Reaching columns={node.reaching} /> : null}
      {own.length ? <BlindSpots spots={own} /> : null}
      <EdgeList title="Upstream" edges={edges.filter((edge) => edge.target === node.id)} end="source" label={label} onPick={onPick} />
      <EdgeList title="Downstream" edges={edges.filter((edge) => edge.source === node.id)} end="target" label={label} onPick={onPick} />
    </section>
  );
}

const CHANGE_TONES: Record<NonNullable<GraphNode["change"]>, { tone: Tone; icon: IconName }> = {
  added: { tone: "safe", icon: "plus" },
  removed: { tone: "breaking", icon: "minus" },
  changed: { tone: "warning", icon: "change" },
};

/** The differences of the node between the two compared moments. */
function Change({ node }: { node: GraphNode }) {
  const columns = (node.columns ?? []).filter((column) => column.change);
  return (
    <div>
      <h3>Since the earlier moment: {node.change}</h3>
      <div className={styles.badges}>
        {columns.map((column) => <Badge key={column.name} {...CHANGE_TONES[column.change!]}>{column.name}{column.change === "changed" && column.type ? `: ${column.type}` : ""}</Badge>)}
        {columns.length === 0 && node.change === "changed" ? <span className={styles.muted}>Its columns are the same; tags, owners or the description changed.</span> : null}
      </div>
    </div>
  );
}

/** Columns to which a tag of another column propagates. */
function Reaching({ columns }: { columns: NonNullable<GraphNode["reaching"]> }) {
  return (
    <div>
      <h3>Tags that propagate to it</h3>
      <ul className={styles.reaching}>
        {[...columns].flatMap(([column, tags]) => tags.map(({ tag, origin }) => (
          <li key={`${column} ${tag}`}><code>{column}</code> <TagBadge tag={tag} /> from <EntityLink id={origin} type="column" /></li>
        )))}
      </ul>
    </div>
  );
}

function EdgeList({ title, edges, end, label, onPick }: { title: string; edges: readonly GraphEdge[]; end: "source" | "target"; label: Props["label"]; onPick: Props["onPick"] }) {
  if (!edges.length) return null;
  return (
    <div>
      <h3>{title}</h3>
      <ul className={styles.edges}>
        {edges.map((edge) => (
          <li key={`${edge.source} ${edge.target} ${edge.kind}`}>
            <button type="button" onClick={() => onPick({ kind: "edge", edge })} title="Show the evidence of this edge">
              <span>{label(edge[end])}</span>
              <Confidence level={edge.confidence} />
            </button>
          </li>
        ))}
      </ul>
    </div>
  );
}

export function BlindSpots({ spots }: { spots: readonly BlindSpot[] }) {
  return (
    <div className={styles.blind}>
      <h3><Icon name="blind" size={14} /> {spots.length === 1 ? "1 blind spot" : `${spots.length} blind spots`}</h3>
      <ul>
        {spots.map((spot) => (
          <li key={spot.kind + spot.entity + spot.message}>
            <code>{spot.kind.replaceAll("_", " ")}</code>
            <p>{spot.message}</p>
          </li>
        ))}
      </ul>
    </div>
  );
}
