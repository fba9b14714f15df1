// Reads drawings with Mermaid's own parser: `node parse_mermaid.mjs MODULES FILE…`
import fs from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import { pathToFileURL } from "node:url";

const [modules, ...files] = process.argv.slice(2);
const require = createRequire(path.join(path.resolve(modules), "package.json"));
const { JSDOM } = require("jsdom");
const { window } = new JSDOM("<!doctype html><body></body>");
globalThis.window = window;
globalThis.document = window.document;
const entry = path.join(path.resolve(modules), "node_modules/mermaid/dist/mermaid.core.mjs");
const mermaid = (await import(pathToFileURL(entry))).default;
mermaid.initialize({ startOnLoad: false, maxEdges: 100000, maxTextSize: 10000000 });
for (const file of files) {
  const found = await mermaid.parse(fs.readFileSync(file, "utf8"));
  console.log(found.diagramType);
}
