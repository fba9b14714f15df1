// Reads drawings with Mermaid's own parser, and tells what it found in each, a line of JSON a file:
// `node parse.mjs FILE…`
import fs from "node:fs";
import { JSDOM } from "jsdom";

// Mermaid cleans labels with a browser's help.
const { window } = new JSDOM("<!doctype html><body></body>");
globalThis.window = window;
globalThis.document = window.document;

const { default: mermaid } = await import("mermaid");
mermaid.initialize({ startOnLoad: false, maxEdges: 100000, maxTextSize: 10000000 });

const values = (found) => [...(found.values?.() ?? Object.values(found))];

for (const file of process.argv.slice(2)) {
  const { type, db } = await mermaid.mermaidAPI.getDiagramFromText(fs.readFileSync(file, "utf8"));
  console.log(
    JSON.stringify({
      type,
      nodes: Object.fromEntries(values(db.getVertices()).map(({ id, classes }) => [id, classes])),
      edges: db.getEdges().map(({ start, end }) => [start, end]),
      boxes: db.getSubGraphs().length,
      classes: values(db.getClasses()).map(({ id }) => id),
    }),
  );
}
