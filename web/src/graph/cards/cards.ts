/** Nodes of the scene in the format of React Flow. Their sizes and handles are set, so it measures nothing. */

import { Position } from "@xyflow/react";
import { useMemo } from "react";
import type { CanvasState } from "../canvas_state";
import type { BlindSpot, GraphEdge } from "../graph_types";
import type { Highlight } from "../scene/highlight";
import type { LineageCanvasProps } from "../lineage_canvas";
import type { CardNode } from "./node_card";
import { headHeight, type Scene, type SceneNode } from "../scene/scene";

export function useCards(
  scene: Scene | null,
  props: LineageCanvasProps,
  { active }: CanvasState,
  fading: Highlight | null,
  onPath: ReadonlyMap<string, ReadonlySet<string>>,
): CardNode[] {
  const { edges, blindSpots, focus, severity, locked } = props;
  const known = props.knownEdges ?? edges;
  const shown = useMemo(() => countNeighbours(known), [known]);
  const texts = useMemo(() => textsByEntity(blindSpots ?? []), [blindSpots]);
  return useMemo(() => {
    if (scene === null) return [];
    const tabStop = active ?? (focus && scene.byId.has(focus) ? focus : scene.nodes[0]?.node.id);
    return scene.nodes.map((placed) => {
      const { node, rows } = placed;
      return {
        ...frame(placed),
        data: {
          node,
          rows,
          active: node.id === active,
          tabStop: node.id === tabStop,
          focus: node.id === focus,
          faded: fading !== null && !fading.nodes.has(node.id),
          severity: severity?.[node.id],
          locked,
          onPath: onPath.get(node.id),
          shownUpstream: shown.upstream.get(node.id) ?? 0,
          shownDownstream: shown.downstream.get(node.id) ?? 0,
          blindSpots: texts.get(node.id) ?? texts.get(node.name) ?? NO_TEXTS,
        },
      };
    });
  }, [scene, active, focus, fading, severity, locked, onPath, shown, texts]);
}

const NO_TEXTS: readonly string[] = [];

function frame({ node, x, y, width, height }: SceneNode) {
  const middle = headHeight(node) / 2;
  const handle = { y: middle, width: 1, height: 1 };
  return {
    id: node.id,
    type: "card" as const,
    position: { x, y },
    width,
    height,
    measured: { width, height },
    handles: [
      { ...handle, type: "target" as const, position: Position.Left, x: 0 },
      { ...handle, type: "source" as const, position: Position.Right, x: width },
    ],
  };
}

export function countNeighbours(edges: readonly GraphEdge[]): { upstream: Map<string, number>; downstream: Map<string, number> } {
  const upstream = new Map<string, number>();
  const downstream = new Map<string, number>();
  const seen = new Set<string>();
  for (const { source, target } of edges) {
    const pair = `${source}\u0000${target}`;
    if (seen.has(pair)) continue;
    seen.add(pair);
    upstream.set(target, (upstream.get(target) ?? 0) + 1);
    downstream.set(source, (downstream.get(source) ?? 0) + 1);
  }
  return { upstream, downstream };
}

function textsByEntity(blindSpots: readonly BlindSpot[]): Map<string, string[]> {
  const texts = new Map<string, string[]>();
  for (const { entity, message } of blindSpots) {
    const known = texts.get(entity);
    if (known) known.push(message);
    else texts.set(entity, [message]);
  }
  return texts;
}
