/** Navigation by arrow keys: left and right along edges, up and down inside a layer. */

import type { Scene, SceneNode } from "./scene";

export type ArrowKey = "ArrowLeft" | "ArrowRight" | "ArrowUp" | "ArrowDown";

export function isArrowKey(key: string): key is ArrowKey {
  return key === "ArrowLeft" || key === "ArrowRight" || key === "ArrowUp" || key === "ArrowDown";
}

/** The next node in the direction of a key; undefined if there is none. */
export function nodeInDirection(scene: Scene, from: string, key: ArrowKey): string | undefined {
  const start = scene.byId.get(from);
  if (start === undefined) return scene.nodes[0]?.node.id;
  const candidates = key === "ArrowLeft" || key === "ArrowRight" ? linked(scene, start, key === "ArrowRight") : sameLayer(scene, start, key === "ArrowDown");
  return candidates.sort((a, b) => Math.abs(a.y - start.y) - Math.abs(b.y - start.y) || a.y - b.y)[0]?.node.id;
}

function linked(scene: Scene, { node }: SceneNode, downstream: boolean): SceneNode[] {
  return scene.edges.flatMap(({ edge }) => {
    const other = downstream ? (edge.source === node.id ? edge.target : null) : edge.target === node.id ? edge.source : null;
    const placed = other === null ? undefined : scene.byId.get(other);
    return placed === undefined ? [] : [placed];
  });
}

function sameLayer(scene: Scene, start: SceneNode, down: boolean): SceneNode[] {
  return scene.nodes.filter((placed) => placed.layer === start.layer && (down ? placed.y > start.y : placed.y < start.y));
}
