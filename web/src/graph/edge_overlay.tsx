/** Edges drawn above the canvas: selected, hovered, or on the path of a locked column. */

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
              className={`${styles.column} ${styles[edge.confidence] ?? ""} ${edge.type === "INDIRECT" ? styles.indirect : ""} ${edge.change ? styles[edge.change] : ""}`}
              d={svgPath(anchors)}
              markerEnd="url(#lineage-arrow)"
              data-type={edge.type}
            />
          </g>
        ))}
      </svg>
      {labelled(columns).map(({ key, edge, anchors, share, count }) => {
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
            {count > 1 ? ` ×${count}` : null}
          </button>
        );
      })}
    </ViewportPortal>
  );
});

interface LabelledEdge extends SceneColumnEdge {
  share: number; // where on the line
  count: number; // of edges that the label stands for
}

/**
 * Clauses of indirect edges, and confidence where it is not exact. Edges between two datasets that say
 * the same have one label, on the line in their middle; labels of one target are at different places.
 */
export function labelled(columns: readonly SceneColumnEdge[]): LabelledEdge[] {
  const groups = new Map<string, SceneColumnEdge[]>();
  for (const line of columns) {
    const { source, target, type, subtype, confidence } = line.edge;
    if (type !== "INDIRECT" && confidence === "exact") continue;
    const key = [source.dataset, target.dataset, subtype, confidence].join("\u0000");
    groups.set(key, [...(groups.get(key) ?? []), line]);
  }
  const perTarget = new Map<string, number>();
  return [...groups.values()].map((lines) => {
    const line = lines[Math.floor(lines.length / 2)]!;
    const nth = perTarget.get(line.edge.target.dataset) ?? 0;
    perTarget.set(line.edge.target.dataset, nth + 1);
    return { ...line, share: 0.62 - 0.18 * (nth % 3), count: lines.length };
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
