import { useStore, type Node, type NodeProps } from "@xyflow/react";
import { Fragment, memo } from "react";
import { Icon } from "../../design/icons";
import { useActions } from "./canvas_actions";
import { FOOT_HEIGHT, ROW_HEIGHT, SEARCH_HEIGHT, type ColumnRows } from "./column_rows";
import type { ColumnPlace, GraphColumn, GraphNode, Severity, Side } from "../graph_types";
import { Mark, markText, nodeIcon, typeColour, typeText } from "./marks";
import { shortened } from "./short_name";
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

/** A dataset or a job with its marks, its columns on demand, and buttons for what is not shown yet. */
export const NodeCard = memo(function NodeCard({ data }: NodeProps<CardNode>) {
  const { node, rows, severity } = data;
  const actions = useActions();
  const detailed = useStore((state) => state.transform[2] >= DETAILS_FROM_ZOOM);
  const hidden = { upstream: node.upstream_total - data.shownUpstream, downstream: node.downstream_total - data.shownDownstream };
  const classes = [styles.card, node.kind === "job" ? styles.job : styles.dataset];
  for (const name of ["active", "focus", "faded"] as const) if (data[name]) classes.push(styles[name]);
  if (node.marks.includes("stale")) classes.push(styles.stale);
  if (node.marks.includes("dropped")) classes.push(styles.dropped);
  if (severity) classes.push(styles[severity]);
  if (node.change) classes.push(styles[`is_${node.change}`]);
  if (!detailed) classes.push(styles.small);
  return (
    <div
      className={classes.join(" ")}
      style={{ "--type": `var(${typeColour(node)})` } as React.CSSProperties}
      role="group"
      aria-label={describe(node, hidden, severity)}
      aria-current={data.active ? "true" : undefined}
      tabIndex={data.tabStop ? 0 : -1}
      data-node={node.id}
    >
      <div className={styles.head}>
        <span className={styles.icon}><Icon name={nodeIcon(node)} size={detailed ? 14 : 19} /></span>
        <span className={styles.label} title={`${node.namespace} ${node.name}`}><Label text={node.label} whole={!detailed} /></span>
        <span className={styles.marks}>
          {node.change ? <ChangeMark change={node.change} /> : null}
          {node.marks.map((mark) => <Mark key={mark} mark={mark} />)}
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

const FITS = 22; // characters on the two lines of a small card, with some room

/** A name that does not fit loses the middle: its last part is what people look for. */
function Label({ text, whole }: { text: string; whole: boolean }) {
  if (whole) return <span className={styles.whole}>{shortened(text, FITS).split(/(?<=[./_])|(?<=[a-z])(?=[A-Z])/).map((part, at) => <Fragment key={at}>{part}<wbr /></Fragment>)}</span>;
  const at = Math.max(text.lastIndexOf("."), text.lastIndexOf("/")) + 1;
  return <><span className={styles.front}>{text.slice(0, at)}</span><span className={styles.tail}>{text.slice(at)}</span></>;
}

function Details({ node, rows }: { node: GraphNode; rows: ColumnRows | null }) {
  const actions = useActions();
  const place = node.members !== undefined ? `${node.members} nodes` : node.kind === "job" ? typeText(node) : `${typeText(node)} · ${node.namespace}`;
  return (
    <div className={styles.details}>
      <span className={styles.place} title={node.owners.length ? `${place} · owned by ${node.owners.join(", ")}` : place}>{place}</span>
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
    <span className={failed ? styles.runFailed : styles.run} title={`Last run: ${state}`}>
      <Icon name={failed ? "breaking" : state === "COMPLETE" ? "check" : "clock"} size={11} />
      {state.toLowerCase()}
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
      {isLocked ? <Icon name="lock" size={11} /> : null}
      <span className={styles.rowType}>{column.type?.toLowerCase()}</span>
    </button>
  );
}

function ExpandButton({ id, side, hidden, total }: { id: string; side: Exclude<Side, "both">; hidden: number; total: number }) {
  const actions = useActions();
  if (hidden <= 0) return null;
  return (
    <button
      type="button"
      tabIndex={-1}
      className={`${styles.expand} ${styles[side]} nopan`}
      title={`Show ${hidden} of ${total} direct ${side} neighbours that are not shown`}
      aria-label={`+${hidden} of ${total} ${side}: show`}
      onClick={(event) => {
        event.stopPropagation();
        actions.expand?.(id, side);
      }}
    >
      +{hidden} of {total}
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
  parts.push(`${node.upstream_total} upstream${hidden.upstream > 0 ? `, ${hidden.upstream} not shown` : ""}`);
  parts.push(`${node.downstream_total} downstream${hidden.downstream > 0 ? `, ${hidden.downstream} not shown` : ""}`);
  if (node.blind_spot_count) parts.push(`${node.blind_spot_count} blind spots`);
  return parts.join("; ");
}
