/** Edges that matter now, above the canvas: selected, pointed at, or on the path of a locked column. */

import { ViewportPortal } from "@xyflow/react";
import { memo } from "react";
import { pointAt, svgPath } from "./scene/edge_paths";
import type { SceneColumnEdge, SceneEdge } from "./scene/scene";
import styles from "./edge_overlay.module.css";

export type PickedEdge = { kind: "edge"; edge: SceneEdge["edge"] } | { kind: "column"; edge: SceneColumnEdge["edge"] };

interface Props {
  edges: readonly SceneEdge[];
  columns: readonly SceneColumnEdge[];
  picked: string | undefined;
  onPick: (picked: PickedEdge) => void;
}

export const EdgeOverlay = memo(function EdgeOverlay({ edges, columns, picked, onPick }: Props) {
  return (
    <ViewportPortal>
      <svg className={styles.layer} aria-hidden="true">
        <defs>
          <marker id="lineage-arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">
            <path d="M0.5 0.5 7.5 4 0.5 7.5z" fill="context-stroke" />
          </marker>
        </defs>
        {edges.map(({ key, edge, anchors }) => (
          <g key={key} className={key === picked ? styles.picked : undefined} onClick={() => onPick({ kind: "edge", edge })}>
            <path className={styles.hit} d={svgPath(anchors)} />
            <path
              className={`${styles.edge} ${styles[edge.confidence] ?? ""} ${edge.change ? styles[edge.change] : ""}`}
              d={svgPath(anchors)}
              markerEnd="url(#lineage-arrow)"
            />
          </g>
        ))}
        {columns.map(({ key, edge, anchors }) => (
          <g key={key} className={key === picked ? styles.picked : undefined} onClick={() => onPick({ kind: "column", edge })}>
            <title>{columnText(edge)}</title>
            <path className={styles.hit} d={svgPath(anchors)} />
            <path
              className={`${styles.column} ${edge.type === "INDIRECT" ? styles.indirect : ""} ${edge.change ? styles[edge.change] : ""}`}
              d={svgPath(anchors)}
              markerEnd="url(#lineage-arrow)"
              data-type={edge.type}
            />
          </g>
        ))}
      </svg>
      {labelled(columns).map(({ key, edge, anchors, share }) => {
        const [x, y] = pointAt(anchors, share);
        return (
          <button
            key={key}
            type="button"
            tabIndex={-1}
            className={styles.label}
            style={{ transform: `translate(-50%, -50%) translate(${x}px, ${y}px)` }}
            title={columnText(edge)}
            onClick={() => onPick({ kind: "column", edge })}
          >
            {clause(edge.subtype)}
            {edge.confidence === "exact" ? null : <em> {edge.confidence}</em>}
          </button>
        );
      })}
    </ViewportPortal>
  );
});

/** Clauses of indirect edges, and confidence where it is not exact; edges of one target are labelled at different places. */
function labelled(columns: readonly SceneColumnEdge[]): (SceneColumnEdge & { share: number })[] {
  const perTarget = new Map<string, number>();
  return columns
    .filter(({ edge }) => edge.type === "INDIRECT" || edge.confidence !== "exact")
    .map((line) => {
      const nth = perTarget.get(line.edge.target.dataset) ?? 0;
      perTarget.set(line.edge.target.dataset, nth + 1);
      return { ...line, share: 0.62 - 0.18 * (nth % 3) };
    });
}

export function clause(subtype: string): string {
  return subtype.replaceAll("_", " ");
}

export function columnText(edge: SceneColumnEdge["edge"]): string {
  const lines = [`${edge.source.column} → ${edge.target.column}`, `${edge.type} ${clause(edge.subtype)} (${edge.confidence})`];
  if (edge.masking) lines.push("masked");
  if (edge.description) lines.push(edge.description);
  return lines.join("\n");
}
