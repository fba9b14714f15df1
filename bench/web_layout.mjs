// Lays one graph out with one library and prints CPU milliseconds and crossings as JSON.
// node web_layout.mjs LIBRARY GRAPH.json ROUNDS OUR_LAYOUT.mjs PEERS_FOLDER
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [library, file, rounds, ours, peers] = process.argv.slice(2);
const { count, links } = JSON.parse(readFileSync(file, "utf8"));
const ids = Array.from({ length: count }, (_, i) => `n${i}`);
const [WIDTH, HEIGHT] = [224, 60];
const require = createRequire(pathToFileURL(`${peers}/`));

const LIBRARIES = {
  async downriver() {
    const { layout } = await import(pathToFileURL(ours));
    const boxes = ids.map((id) => ({ id, width: WIDTH, height: HEIGHT }));
    const edges = links.map(([source, target]) => ({ source: ids[source], target: ids[target] }));
    return () => {
      const { spots } = layout(boxes, edges);
      return ids.map((id) => [spots.get(id).x, spots.get(id).y]);
    };
  },
  async dagre() {
    const dagre = require("@dagrejs/dagre");
    return () => {
      const graph = new dagre.graphlib.Graph();
      graph.setGraph({ rankdir: "LR" });
      graph.setDefaultEdgeLabel(() => ({}));
      for (const id of ids) graph.setNode(id, { width: WIDTH, height: HEIGHT });
      for (const [source, target] of links) graph.setEdge(ids[source], ids[target]);
      dagre.layout(graph);
      return ids.map((id) => [graph.node(id).x - WIDTH / 2, graph.node(id).y - HEIGHT / 2]);
    };
  },
  async elkjs() {
    const ELK = require("elkjs/lib/elk.bundled.js");
    const elk = new ELK();
    return async () => {
      const result = await elk.layout({
        id: "root",
        layoutOptions: { "elk.algorithm": "layered", "elk.direction": "RIGHT" },
        children: ids.map((id) => ({ id, width: WIDTH, height: HEIGHT })),
        edges: links.map(([source, target], i) => ({ id: `e${i}`, sources: [ids[source]], targets: [ids[target]] })),
      });
      const places = new Map(result.children.map((child) => [child.id, [child.x, child.y]]));
      return ids.map((id) => places.get(id));
    };
  },
};

/** Pairs of straight lines between the sides of boxes that cross. */
function countCrossings(places) {
  const lines = links.map(([source, target]) => {
    const [x1, y1, x2, y2] = [places[source][0] + WIDTH, places[source][1] + HEIGHT / 2, places[target][0], places[target][1] + HEIGHT / 2];
    return { x1, y1, x2, y2, left: Math.min(x1, x2), right: Math.max(x1, x2) };
  });
  lines.sort((a, b) => a.left - b.left);
  const side = (a, x, y) => Math.sign((a.x2 - a.x1) * (y - a.y1) - (a.y2 - a.y1) * (x - a.x1));
  let crossings = 0;
  for (let i = 0; i < lines.length; i++) {
    for (let k = i + 1; k < lines.length && lines[k].left < lines[i].right; k++) {
      const [a, b] = [lines[i], lines[k]];
      if (side(a, b.x1, b.y1) * side(a, b.x2, b.y2) < 0 && side(b, a.x1, a.y1) * side(b, a.x2, a.y2) < 0) crossings++;
    }
  }
  return crossings;
}

const run = await LIBRARIES[library]();
const times = [];
let places;
for (let round = 0; round < Number(rounds); round++) {
  const before = process.cpuUsage();
  places = await run();
  const { user, system } = process.cpuUsage(before);
  times.push((user + system) / 1000);
}
const ys = places.map(([, y]) => y);
console.log(JSON.stringify({ times, crossings: countCrossings(places), height: Math.max(...ys) - Math.min(...ys) + HEIGHT }));
