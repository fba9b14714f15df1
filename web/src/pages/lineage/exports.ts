/** The view as a file. The server renders exactly what the canvas draws, whatever part of it is in view. */

import { post } from "../../api/client";
import type { DrawnEdge, DrawnNode, DrawnView, ExportAnswer } from "../../api/types";
import { save, saveText } from "../../design/download";
import { countNeighbours } from "../../graph/cards/cards";
import { reachingNode } from "../../graph/cards/marks";
import type { ReachingTag } from "../../graph/graph_types";
import type { Drawn } from "../../graph/lineage_canvas";
import type { SceneNode } from "../../graph/scene/scene";
import { countShown, type Merged } from "./graph_view";
import type { LineageState } from "./url_state";

export type ExportFormat = "svg" | "png" | "mermaid";

const PNG_SCALE = 2;
const PNG_MOST = { side: 16_000, pixels: 120_000_000 }; // beyond, browsers draw nothing

export async function exportView(format: ExportFormat, state: LineageState, merged: Merged, drawn: Drawn): Promise<void> {
  const { diagram } = await post<ExportAnswer>("/v1/export", viewOf(format, state, merged, drawn));
  if (format === "mermaid") saveText("lineage.mmd", diagram, "text/plain");
  else if (format === "svg") saveText("lineage.svg", diagram, "image/svg+xml");
  else save("lineage.png", await rasterise(diagram));
}

/** Groups, rows, marks, propagated tags, faded nodes and numbers as the screen shows them. */
export function viewOf(format: ExportFormat, state: LineageState, merged: Merged, { scene, path, onPath }: Drawn): DrawnView {
  const known = countNeighbours(merged.edges);
  const nodes = scene.nodes.map((placed): DrawnNode => {
    const { node } = placed;
    return {
      ...nodeOf(placed, state),
      place: [placed.layer, placed.y + placed.height / 2],
      upstream_rest: Math.max(0, node.upstream_total - (known.upstream.get(node.id) ?? 0)),
      downstream_rest: Math.max(0, node.downstream_total - (known.downstream.get(node.id) ?? 0)),
      faded: onPath !== null && !onPath.nodes.has(node.id),
    };
  });
  const edges = scene.edges.map(({ key, edge }): DrawnEdge => ({
    source: edge.source,
    target: edge.target,
    kind: edge.kind,
    status: edge.status,
    confidence: edge.confidence,
    job: edge.job ?? null,
    members: edge.members ?? 1,
    change: edge.change ?? null,
    faded: onPath !== null && !onPath.edges.has(key),
  }));
  const columnEdges = path.map((edge): DrawnEdge => ({
    source: edge.source.dataset,
    source_column: edge.source.column,
    target: edge.target.dataset,
    target_column: edge.target.column,
    type: edge.type,
    subtype: edge.subtype,
    status: edge.status,
    confidence: edge.confidence,
    masking: edge.masking,
    job: edge.job ?? null,
    change: edge.change ?? null,
  }));
  return {
    format: format === "mermaid" ? "mermaid" : "svg",
    title: state.selector ?? state.entity ?? "",
    root: merged.root,
    nodes,
    edges: [...edges, ...columnEdges],
    total: merged.total,
    hidden: countShown(scene.nodes.map(({ node }) => node), merged).hidden,
    blind_spots: merged.blindSpots,
    as_of: state.asOf ?? null,
    diff: state.diff ?? null,
  };
}

function nodeOf({ node, rows }: SceneNode, { locked }: LineageState): DrawnNode {
  return {
    id: node.id,
    kind: node.members === undefined ? node.kind : "group",
    namespace: node.namespace,
    name: node.members === undefined ? node.name : node.label,
    members: node.members ?? 0,
    marks: node.marks,
    reaching: tagsOf(reachingNode(node)),
    columns: (rows?.columns ?? []).map((column) => ({
      name: column.name,
      marks: column.marks,
      reaching: tagsOf(node.reaching?.get(column.name) ?? []),
      change: column.change ?? null,
      locked: locked?.dataset === node.id && locked.column === column.name,
    })),
    column_rest: rows?.hidden ?? 0,
    blind_spot_count: node.blind_spot_count,
    change: node.change ?? null,
  };
}

function tagsOf(reaching: readonly ReachingTag[]): string[] {
  return [...new Set(reaching.map(({ tag }) => tag))];
}

async function rasterise(svg: string): Promise<Blob> {
  const url = URL.createObjectURL(new Blob([svg], { type: "image/svg+xml" }));
  try {
    const image = new Image();
    image.src = url;
    await image.decode();
    const canvas = document.createElement("canvas");
    const { naturalWidth: width, naturalHeight: height } = image;
    const scale = Math.min(PNG_SCALE, PNG_MOST.side / Math.max(width, height), Math.sqrt(PNG_MOST.pixels / (width * height)));
    canvas.width = Math.floor(width * scale);
    canvas.height = Math.floor(height * scale);
    canvas.getContext("2d")!.drawImage(image, 0, 0, canvas.width, canvas.height);
    return await new Promise((done, fail) => canvas.toBlob((blob) => (blob ? done(blob) : fail(new Error("The picture is too large for a PNG."))), "image/png"));
  } finally {
    URL.revokeObjectURL(url);
  }
}
