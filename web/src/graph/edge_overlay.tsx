/** Edges drawn above the canvas: selected, hovered, or on the path of a locked column. */

import { ViewportPortal } from "@xyflow/react";
import { memo } from "react";
import { pointAt, svgPath } from "./scene/edge_paths";
import type { SceneColumnEdge, SceneEdge, SceneNode } from "./scene/scene";
import styles from "./edge_overlay.module.css";

export type PickedEdge = { kind: "edge"; edge: SceneEdge["edge"] } | { kind: "column"; edge: SceneColumnEdge["edge"] };

interface Props {
  edges: readonly SceneEdge[];
  columns: readonly SceneColumnEdge[];
  nodes: readonly SceneNode[]; // labels are placed beside them
  picked: string | undefined;
  onPick: (picked: PickedEdge) => void;
}

export const EdgeOverlay = memo(function EdgeOverlay({ edges, columns, nodes, picked, onPick }: Props) {
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
      {labelled(columns, nodes).map(({ key, edge, place: [x, y], count }) => (
          <button
            key={key}
            type="button"
            tabIndex={-1}
            className={styles.label}
            style={{ transform: `translate(-50%, -50%) translate(${x}px, ${y}px)` }}
            title={columnText(edge)}
            onClick={() => onPick({ kind: "column", edge })}
          >
            {clauseText(edge)}
            {edge.confidence === "exact" ? null : <em>{` ${edge.confidence}`.slice(edge.type === "INDIRECT" ? 0 : 1)}</em>}
            {countText(count)}
          </button>
      ))}
    </ViewportPortal>
  );
});

interface LabelledEdge extends SceneColumnEdge {
  place: [number, number]; // of its middle
  count: number; // of edges that the label stands for
}

/**
 * Clauses of indirect edges, and confidence where it is not exact. Edges between two datasets that say
 * the same have one label, on the line in their middle. A label is where it hides no node and no other label.
 */
export function labelled(columns: readonly SceneColumnEdge[], nodes: readonly SceneNode[]): LabelledEdge[] {
  const groups = new Map<string, SceneColumnEdge[]>();
  for (const line of columns) {
    const { source, target, type, confidence } = line.edge;
    if (type !== "INDIRECT" && confidence === "exact") continue;
    const key = [source.dataset, target.dataset, type, clauseText(line.edge), confidence].join("\u0000");
    groups.set(key, [...(groups.get(key) ?? []), line]);
  }
  const taken: Area[] = nodes.map(({ x, y, width, height }) => [x, y, x + width, y + height]);
  return [...groups.values()].map((lines) => {
    const line = lines[Math.floor(lines.length / 2)]!;
    const { edge } = line;
    const letters = `${clauseText(edge)}${edge.confidence === "exact" ? "" : ` ${edge.confidence}`}${countText(lines.length)}`.length;
    const [place, area] = freePlace(line, letters * LETTER_WIDTH + 14, taken);
    taken.push(area);
    return { ...line, place, count: lines.length };
  });
}

type Area = readonly [left: number, top: number, right: number, bottom: number];

const LETTER_WIDTH = 7;
const LABEL_HEIGHT = 20;
const SHARES = [0.62, 0.5, 0.74, 0.38, 0.82, 0.26, 0.9, 0.16, 0.1]; // of the line, the best first

/** The place on a line that covers the least of what is there. */
function freePlace({ anchors }: SceneColumnEdge, width: number, taken: readonly Area[]): [[number, number], Area] {
  let best: [[number, number], Area] | undefined;
  let least = Infinity;
  for (const share of SHARES) {
    const [x, y] = pointAt(anchors, share);
    const area: Area = [x - width / 2, y - LABEL_HEIGHT / 2, x + width / 2, y + LABEL_HEIGHT / 2];
    let covered = 0;
    for (const other of taken) covered += overlap(area, other);
    if (covered < least) [best, least] = [[[x, y], area], covered];
    if (least === 0) break;
  }
  return best!;
}

function overlap(one: Area, other: Area): number {
  const width = Math.min(one[2], other[2]) - Math.max(one[0], other[0]);
  const height = Math.min(one[3], other[3]) - Math.max(one[1], other[1]);
  return width > 0 && height > 0 ? width * height : 0;
}

/** The clause of an indirect edge. How a direct edge transforms its value is in its title. */
function clauseText({ type, subtype }: SceneColumnEdge["edge"]): string {
  return type === "INDIRECT" ? clause(subtype) : "";
}

function countText(count: number): string {
  return count > 1 ? ` ×${count}` : "";
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
