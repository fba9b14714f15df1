/** The view as a file: pictures and diagrams are rendered by the server, equal to what is shown. */

import { get } from "../../api/client";
import { save, saveText } from "../../design/download";
import type { Merged } from "./graph_view";
import type { LineageState } from "./url_state";

export type ExportFormat = "svg" | "png" | "mermaid";

interface Diagram {
  diagram: string;
}

const PNG_SCALE = 2;

/** Downloads what the view shows. Groups are exported as the nodes they stand for. */
export async function exportView(format: ExportFormat, state: LineageState, merged: Merged): Promise<void> {
  const { diagram } = await get<Diagram>("/v1/export", {
    format: format === "png" ? "svg" : format,
    ...(merged.root === null ? { q: state.selector } : { ids: merged.nodes.map((node) => node.id) }),
    as_of: state.asOf,
    diff: state.diff,
    ...(state.locked && state.locked.dataset === merged.root ? { focus: state.locked.column } : {}),
  });
  if (format === "mermaid") saveText("lineage.mmd", diagram, "text/plain");
  else if (format === "svg") saveText("lineage.svg", diagram, "image/svg+xml");
  else save("lineage.png", await rasterise(diagram));
}

async function rasterise(svg: string): Promise<Blob> {
  const url = URL.createObjectURL(new Blob([svg], { type: "image/svg+xml" }));
  try {
    const image = new Image();
    image.src = url;
    await image.decode();
    const canvas = document.createElement("canvas");
    canvas.width = image.naturalWidth * PNG_SCALE;
    canvas.height = image.naturalHeight * PNG_SCALE;
    canvas.getContext("2d")!.drawImage(image, 0, 0, canvas.width, canvas.height);
    return await new Promise((done, fail) => canvas.toBlob((blob) => (blob ? done(blob) : fail(new Error("The picture is too large for a PNG."))), "image/png"));
  } finally {
    URL.revokeObjectURL(url);
  }
}
