import { useVirtualizer } from "@tanstack/react-virtual";
import { useEffect, useMemo, useRef, useState } from "react";
import { Icon } from "../../design/icons";
import { Name } from "../../design/page";
import { Button } from "../../design/parts";
import { runStateText } from "../../design/run_states";
import type { GraphNode } from "../../graph/graph_types";
import { Mark, ReachMark, nodeIcon, reachingNode, typeText } from "../../graph/cards/marks";
import { COLUMNS, filterRows, renderCsv, sortRows, type ColumnKey, type SortOrder } from "./table_rows";
import { saveText } from "../../design/download";
import styles from "./node_table.module.css";

interface Props {
  nodes: readonly GraphNode[];
  active: string | undefined;
  onActive: (id: string) => void;
  onOpen: (id: string) => void;
}

const ROW_HEIGHT = 34;

/** The nodes of the graph as a table: the form of the graph for a screen reader, a keyboard and a spreadsheet. */
export function NodeTable({ nodes, active, onActive, onOpen }: Props) {
  const [order, setOrder] = useState<SortOrder>({ by: "depth", descending: false });
  const [wanted, setWanted] = useState("");
  const rows = useMemo(() => sortRows(filterRows(nodes, wanted), order), [nodes, wanted, order]);
  const box = useRef<HTMLDivElement>(null);
  const virtual = useVirtualizer({ count: rows.length, getScrollElement: () => box.current, estimateSize: () => ROW_HEIGHT, overscan: 8 });
  const at = rows.findIndex((node) => node.id === active);
  useEffect(() => {
    if (at !== -1) virtual.scrollToIndex(at, { align: "auto" });
  }, [at]); // eslint-disable-line -- follow the graph, not every scroll
  return (
    <div className={styles.wrapper}>
      <div className={styles.tools}>
        <input type="search" value={wanted} placeholder="Filter by name, type, owner, tag" aria-label="Filter the table" onChange={(event) => setWanted(event.target.value)} />
        <Button icon="download" onClick={() => saveText("lineage.csv", renderCsv(rows), "text/csv")}>CSV</Button>
      </div>
      <div ref={box} className={styles.scroll} role="table" aria-label="Nodes of the graph" aria-rowcount={rows.length + 1} tabIndex={0}>
        <div role="rowgroup" className={styles.headGroup}>
          <div role="row" className={styles.row} aria-rowindex={1}>
            {COLUMNS.map(({ key, title }) => (
              <HeadCell key={key} name={key} title={title} order={order} setOrder={setOrder} />
            ))}
          </div>
        </div>
        <div role="rowgroup" style={{ height: virtual.getTotalSize(), position: "relative" }}>
          {virtual.getVirtualItems().map((item) => {
            const node = rows[item.index]!;
            return (
              <div
                key={node.id}
                role="row"
                aria-rowindex={item.index + 2}
                aria-selected={node.id === active}
                className={`${styles.row} ${styles.bodyRow}`}
                style={{ transform: `translateY(${item.start}px)`, height: ROW_HEIGHT }}
                onClick={() => onActive(node.id)}
                onDoubleClick={() => onOpen(node.id)}
              >
                <span role="cell" className={styles.name}>
                  <Icon name={nodeIcon(node)} size={13} />
                  <button type="button" aria-label={node.label} title={`${node.namespace} ${node.name}`} onKeyDown={(event) => event.key === "Enter" && node.id === active && onOpen(node.id)}><Name text={node.label} /></button>
                </span>
                <span role="cell">{typeText(node)}</span>
                <span role="cell" className={styles.depth}>{depthText(node.depth)}</span>
                <span role="cell" className={styles.marks}>{node.marks.map((mark) => <Mark key={mark} mark={mark} />)}<ReachMark tags={reachingNode(node)} /></span>
                <span role="cell" title={node.owners.join(", ")}>{node.owners.join(", ")}</span>
                <span role="cell">{node.last_run ? runStateText(node.last_run.state) : ""}</span>
              </div>
            );
          })}
        </div>
        {rows.length ? null : <p className={styles.none}>No node matches “{wanted}”.</p>}
      </div>
    </div>
  );
}

function depthText(depth: number): string {
  if (depth === 0) return "here";
  return depth < 0 ? `${-depth} up` : `${depth} down`;
}

function HeadCell({ name, title, order, setOrder }: { name: ColumnKey; title: string; order: SortOrder; setOrder: (order: SortOrder) => void }) {
  const sorted = order.by === name;
  return (
    <span role="columnheader" aria-sort={sorted ? (order.descending ? "descending" : "ascending") : "none"}>
      <button type="button" onClick={() => setOrder({ by: name, descending: sorted && !order.descending })}>
        {title}
        {sorted ? <i aria-hidden="true">{order.descending ? "↓" : "↑"}</i> : null}
      </button>
    </span>
  );
}
