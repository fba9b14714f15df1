import { useMemo } from "react";
import { useAnswer } from "../../api/queries";
import type { ColumnEdges, GraphColumnEdge } from "../../api/types";
import { nameOf, plural } from "../../design/format";
import { Badge } from "../../design/parts";
import type { Merged } from "./graph_view";
import type { LineageState } from "./url_state";
import styles from "./lineage.module.css";

const SHOWN = 30;

/** The column edges between the shown datasets that differ between the two moments. */
export function ColumnChanges({ state, merged }: { state: LineageState; merged: Merged }) {
  const datasets = useMemo(() => merged.nodes.filter((node) => node.kind === "dataset").map((node) => node.id), [merged.nodes]);
  const answer = useAnswer<ColumnEdges>("/v1/column-edges", { datasets, as_of: state.asOf ?? null, diff: state.diff }, state.diff !== undefined);
  if (state.diff === undefined || answer.data === undefined) return null;
  const changed = changedEdges(answer.data.edges);
  if (changed.length === 0) return <span className={styles.sameColumns}>no column edge changed</span>;
  return (
    <details className={styles.columnChanges}>
      <summary>{plural(changed.length, "column edge")} changed</summary>
      <ul>
        {changed.slice(0, SHOWN).map((edge, at) => (
          <li key={at}>
            <Badge tone={edge.change === "added" ? "safe" : "breaking"} icon={edge.change === "added" ? "plus" : "minus"}>{edge.change}</Badge>
            <span>{nameOf(edge.source.dataset)}.{edge.source.column} → {nameOf(edge.target.dataset)}.{edge.target.column}</span>
          </li>
        ))}
        {changed.length > SHOWN ? <li>and {changed.length - SHOWN} more</li> : null}
      </ul>
    </details>
  );
}

/** The edges that were added or removed, without edges between a column and its own dataset. */
export function changedEdges(edges: readonly GraphColumnEdge[]): GraphColumnEdge[] {
  return edges.filter((edge) => edge.change && edge.subtype !== "CONTAINS");
}
