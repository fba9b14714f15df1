import { useStore, type Node, type NodeProps } from "@xyflow/react";
import { memo } from "react";
import { Icon } from "../../design/icons";
import { useActions } from "./canvas_actions";
import { LETTERS, OF_A_MARK, labelLines, labelOnCard } from "./labels";
import { FOOT_HEIGHT, ROW_HEIGHT, SEARCH_HEIGHT, type ColumnRows } from "./column_rows";
import { headHeight } from "../scene/scene";
import type { ColumnPlace, GraphColumn, GraphNode, Severity, Side } from "../graph_types";
import { Mark, ReachMark, markText, nodeIcon, reachingNode, typeColour, typeText } from "./marks";
import { fittedParts, systemOf } from "../../design/short_name";
import { runStateText } from "../../design/run_states";
import styles from "./node_card.module.css";

export interface CardData extends Record<string, unknown> {
  node: GraphNode;
  rows: ColumnRows | null;
  active: boolean;
  focus: boolean;
  faded: boolean;
  severity: Severity | undefined;
  locked: ColumnPlace | undefined;
  onPath: ReadonlySet<string> | undefined;
  shownUpstream: number;
  shownDownstream: number;
  tabStop: boolean;
  blindSpots: readonly string[];
}

export type CardNode = Node<CardData, "card">;

const DETAILS_FROM_ZOOM = 0.7;
const SMALL_FROM_ZOOM = 0.62;
const EXPAND_SIZE = 11; // pixels on the screen that the text of an expand button has at least

/** The size of the text of an expand button, which grows as the view is zoomed out. In steps, so that it seldom changes. */
export function expandSize(zoom: number): number {
  return Math.max(EXPAND_SIZE, Math.ceil((EXPAND_SIZE / Math.max(zoom, 0.1)) * 2) / 2);
}

/** A dataset or a job with its marks, its columns on demand, and buttons for hidden neighbours. */
export const NodeCard = memo(function NodeCard({ data }: NodeProps<CardNode>) {
  const { node, rows, severity } = data;
  const actions = useActions();
  const detailed = useStore((state) => state.transform[2] >= DETAILS_FROM_ZOOM);
  const tiny = useStore((state) => state.transform[2] < SMALL_FROM_ZOOM);
  const hidden = { upstream: node.upstream_total - data.shownUpstream, downstream: node.downstream_total - data.shownDownstream };
  const classes = [styles.card, node.kind === "job" ? styles.job : styles.dataset];
  for (const name of ["active", "focus", "faded"] as const) if (data[name]) classes.push(styles[name]);
  if (node.marks.includes("stale")) classes.push(styles.stale);
  if (node.marks.includes("dropped")) classes.push(styles.dropped);
  if (severity) classes.push(styles[severity]);
  if (node.change) classes.push(styles[`is_${node.change}`]);
  if (!detailed) classes.push(styles.small);
  if (tiny) classes.push(styles.tiny);
  return (
    <div
      className={classes.join(" ")}
      style={{ "--type": `var(${typeColour(node)})`, "--head": `${headHeight(node)}px` } as React.CSSProperties}
      role="group"
      aria-label={describe(node, hidden, severity)}
      aria-current={data.active ? "true" : undefined}
      tabIndex={data.tabStop ? 0 : -1}
      data-node={node.id}
    >
      <div className={styles.head}>
        {tiny ? null : <span className={styles.icon}><Icon name={nodeIcon(node)} size={detailed ? 14 : 19} /></span>}
        <span className={styles.label} title={`${node.namespace} ${node.name}`}><Label node={node} small={!detailed} /></span>
        <span className={styles.marks}>
          {node.change ? <ChangeMark change={node.change} /> : null}
          {node.marks.map((mark) => <Mark key={mark} mark={mark} />)}
          <ReachMark tags={reachingNode(node)} />
          {node.blind_spot_count ? <BlindMark node={node} texts={data.blindSpots} /> : null}
        </span>
      </div>
      {detailed ? <Details node={node} rows={rows} /> : null}
      {rows !== null ? <Columns data={data} rows={rows} /> : null}
      {actions.expand ? <ExpandButton id={node.id} side="upstream" hidden={hidden.upstream} total={node.upstream_total} /> : null}
      {actions.expand ? <ExpandButton id={node.id} side="downstream" hidden={hidden.downstream} total={node.downstream_total} /> : null}
    </div>
  );
});

/** A name that is too long is cut at its front or middle, because users search for its last part. */
function Label({ node, small }: { node: GraphNode; small: boolean }) {
  const marks = node.marks.length + (node.change ? 1 : 0) + (node.blind_spot_count ? 1 : 0) + (reachingNode(node).length ? 2 : 0);
  if (!small && labelLines(node) === 1) {
    const { front, tail } = fittedParts(node.label, LETTERS[node.kind === "job" ? "job" : "dataset"] - OF_A_MARK * marks);
    return <><span className={styles.front}>{front}</span><span className={styles.tail}>{tail}</span></>;
  }
  return <span className={styles.lines}>{labelOnCard(node, marks, small).map((line, at) => <span key={at}>{line}</span>)}</span>;
}

function Details({ node, rows }: { node: GraphNode; rows: ColumnRows | null }) {
  const actions = useActions();
  const place = node.members !== undefined ? `${node.members} nodes` : node.kind === "job" ? typeText(node) : [...new Set([typeText(node), systemOf(node.namespace)])].join(" · ");
  const title = [typeText(node), node.namespace, node.owners.length ? `owned by ${node.owners.join(", ")}` : ""].filter(Boolean).join(" · ");
  return (
    <div className={styles.details}>
      <span className={styles.place} title={title}>{place}</span>
      {node.kind === "job" && node.last_run ? <RunState state={node.last_run.state} /> : null}
      {node.kind === "dataset" && node.column_total ? (
        <button
          type="button"
          className={`${styles.columnsButton} nopan`}
          aria-expanded={rows?.open ?? false}
          onClick={(event) => {
            event.stopPropagation();
            actions.toggleColumns(node.id);
          }}
        >
          {node.column_total} {node.column_total === 1 ? "column" : "columns"}
          <Icon name="chevron" size={10} />
        </button>
      ) : null}
    </div>
  );
}

function RunState({ state }: { state: string }) {
  const failed = state === "FAIL" || state === "ABORT";
  return (
    <span className={failed ? styles.runFailed : styles.run} title="The last run">
      <Icon name={failed ? "breaking" : state === "COMPLETE" ? "check" : "clock"} size={11} />
      {runStateText(state).toLowerCase()}
    </span>
  );
}

function Columns({ data, rows }: { data: CardData; rows: ColumnRows }) {
  const actions = useActions();
  const { node } = data;
  return (
    <div className={`${styles.columns} nowheel nopan`} onMouseLeave={() => actions.hoverColumn(null)}>
      {rows.searchable ? (
        <div className={styles.search} style={{ height: SEARCH_HEIGHT }}>
          <input
            type="search"
            value={rows.search}
            placeholder={`Search ${node.column_total} columns`}
            aria-label={`Search the columns of ${node.label}`}
            onChange={(event) => actions.search(node.id, event.target.value)}
            onClick={(event) => event.stopPropagation()}
          />
        </div>
      ) : null}
      {rows.columns.map((column) => (
        <ColumnRow key={column.name} dataset={node.id} column={column} data={data} />
      ))}
      {rows.hidden ? <div className={styles.foot} style={{ height: FOOT_HEIGHT }}>{rows.hidden} more not shown</div> : null}
    </div>
  );
}

function ColumnRow({ dataset, column, data }: { dataset: string; column: GraphColumn; data: CardData }) {
  const actions = useActions();
  const isLocked = data.locked?.dataset === dataset && data.locked.column === column.name;
  const onPath = data.onPath?.has(column.name) ?? false;
  const place = { dataset, column: column.name };
  return (
    <button
      type="button"
      className={[styles.row, isLocked ? styles.rowLocked : "", onPath ? styles.rowOnPath : "", column.change ? styles[`is_${column.change}`] : ""].join(" ")}
      style={{ height: ROW_HEIGHT }}
      title={[column.name, column.type, column.description].filter(Boolean).join("\n")}
      aria-pressed={isLocked}
      onMouseEnter={() => actions.hoverColumn(place)}
      onFocus={() => actions.hoverColumn(place)}
      onBlur={() => actions.hoverColumn(null)}
      onClick={(event) => {
        event.stopPropagation();
        actions.lock(isLocked ? null : place);
      }}
    >
      <span className="visually-hidden">Column </span>
      <span className={styles.rowName}>{column.name}</span>
      {column.marks.map((mark) => <Mark key={mark} mark={mark} />)}
      <ReachMark tags={data.node.reaching?.get(column.name) ?? []} />
      {isLocked ? <Icon name="lock" size={11} /> : null}
      <span className={styles.rowType}>{column.type?.toLowerCase()}</span>
    </button>
  );
}

function ExpandButton({ id, side, hidden, total }: { id: string; side: Exclude<Side, "both">; hidden: number; total: number }) {
  const actions = useActions();
  const size = useStore((state) => expandSize(state.transform[2]));
  const tiny = useStore((state) => state.transform[2] < SMALL_FROM_ZOOM);
  if (hidden <= 0) return null;
  return (
    <button
      type="button"
      tabIndex={-1}
      className={`${styles.expand} ${styles[side]} nopan`}
      style={{ fontSize: size, lineHeight: `${Math.round(size * 1.6)}px` }}
      title={`Show ${hidden} of ${total} direct ${side} neighbours that are not shown`}
      aria-label={`+${hidden} of ${total} ${side}: show`}
      onClick={(event) => {
        event.stopPropagation();
        actions.expand?.(id, side);
      }}
    >
      {tiny ? `+${hidden}` : `+${hidden} of ${total}`}
    </button>
  );
}

function BlindMark({ node, texts }: { node: GraphNode; texts: readonly string[] }) {
  const actions = useActions();
  const summary = `${node.blind_spot_count} blind ${node.blind_spot_count === 1 ? "spot" : "spots"}: lineage of ${node.label} is incomplete`;
  const text = [summary, ...texts].join("\n");
  return (
    <button
      type="button"
      tabIndex={-1}
      className={`${styles.blind} nopan`}
      title={text}
      aria-label={summary}
      onClick={(event) => {
        event.stopPropagation();
        actions.showBlindSpots?.(node.id);
      }}
    >
      <Icon name="blind" size={12} />
      {node.blind_spot_count}
    </button>
  );
}

const CHANGE_SIGNS = { added: "+", removed: "−", changed: "~" } as const;

function ChangeMark({ change }: { change: keyof typeof CHANGE_SIGNS }) {
  return <span className={`${styles.sign} ${styles[`sign_${change}`]}`} title={`${change} between the two moments`} role="img" aria-label={change}>{CHANGE_SIGNS[change]}</span>;
}

/** The text of a node for screen readers. */
function describe(node: GraphNode, hidden: { upstream: number; downstream: number }, severity: Severity | undefined): string {
  const parts = [`${node.label}, ${node.kind === "job" ? `${typeText(node)} job` : typeText(node)}`];
  if (node.change) parts.push(node.change);
  if (severity) parts.push(severity);
  parts.push(...node.marks.map(markText));
  parts.push(...reachingNode(node).map(({ tag }) => `${tag} propagates to it`));
  parts.push(`${node.upstream_total} upstream${hidden.upstream > 0 ? `, ${hidden.upstream} not shown` : ""}`);
  parts.push(`${node.downstream_total} downstream${hidden.downstream > 0 ? `, ${hidden.downstream} not shown` : ""}`);
  if (node.blind_spot_count) parts.push(`${node.blind_spot_count} blind spots`);
  return parts.join("; ");
}
