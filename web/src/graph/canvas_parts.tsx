import { formatTime } from "../design/format";
import { Icon, type IconName } from "../design/icons";
import type { HoveredEdge } from "./canvas_state";
import { useStore } from "@xyflow/react";
import { markText, typeText } from "./cards/marks";
import type { Scene, SceneNode } from "./scene/scene";
import styles from "./lineage_canvas.module.css";

export function ControlButton({ icon, label, onClick }: { icon: IconName; label: string; onClick: () => void }) {
  return (
    <button type="button" aria-label={label} title={label} onClick={onClick}>
      <Icon name={icon} size={14} />
    </button>
  );
}

/** The whole name of a node of the map, beside the node: there its label may be shortened. */
export function NodeTip({ placed }: { placed: SceneNode }) {
  const [x, y, zoom] = useStore((state) => state.transform);
  const { node } = placed;
  return (
    <div className={styles.tip} style={{ left: placed.x * zoom + x, top: (placed.y + placed.height) * zoom + y + 6 }}>
      <strong>{node.name}</strong>
      <br />
      {[typeText(node), node.namespace, ...node.marks.map(markText)].join(" · ")}
    </div>
  );
}

/** The description of an edge, beside the pointer. A click on the edge shows its evidence. */
export function EdgeTip({ hovered, scene, frame }: { hovered: HoveredEdge; scene: Scene | null; frame: HTMLElement | null }) {
  const { edge } = hovered;
  const box = frame?.getBoundingClientRect();
  const label = (id: string) => scene?.byId.get(id)?.node.label ?? id;
  return (
    <div className={styles.tip} style={{ left: hovered.x - (box?.left ?? 0) + 14, top: hovered.y - (box?.top ?? 0) + 14 }}>
      <strong>{label(edge.source)} → {label(edge.target)}</strong>
      <br />
      {[edge.kind, edge.confidence, edge.status === "stale" ? "stale" : null, edge.change].filter(Boolean).join(" · ")}
      {edge.last_seen ? ` · last seen ${formatTime(edge.last_seen)}` : ""}
    </div>
  );
}
