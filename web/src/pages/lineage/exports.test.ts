import { describe, expect, test } from "vitest";
import type { GraphEdge, GraphNode } from "../../graph/graph_types";
import type { Drawn } from "../../graph/lineage_canvas";
import { columnsOnPath, highlightPath, pathThrough } from "../../graph/scene/highlight";
import { buildScene } from "../../graph/scene/scene";
import { columnEdge, dataset, edge, job } from "../../graph/test_graph";
import { viewOf } from "./exports";
import { collapse, hide, merge } from "./graph_view";
import { parseState } from "./url_state";

const NODES: GraphNode[] = [
  dataset("raw", { namespace: "s3", columns: [{ name: "zip", tags: ["pii"], marks: ["pii"] }, { name: "id", tags: [], marks: [] }], column_total: 2, downstream_total: 3 }),
  job("load"),
  dataset("orders", { columns: [{ name: "zip", tags: [], marks: [] }], column_total: 1, reaching: new Map([["zip", [{ tag: "pii", origin: "column:s3:raw:zip" }]]]) }),
  dataset("a", { namespace: "wh", change: "added" }),
  dataset("b", { namespace: "wh" }),
  job("read", { downstream_total: 0 }),
];
const EDGES: GraphEdge[] = [
  edge("raw", "load"),
  edge("load", "orders", { kind: "writes", change: "removed" }),
  edge("raw", "a", { kind: "derives" }),
  edge("raw", "b", { kind: "derives" }),
  edge("raw", "read"),
];
const PATH = [columnEdge("raw.zip", "orders.zip", { job: "load", type: "INDIRECT", subtype: "JOIN" })];

/** What the page gives to the canvas and the canvas draws, for an address of the page. */
function view(address: string) {
  const state = parseState(new URLSearchParams(address));
  const answer = { root: "raw", nodes: NODES, edges: EDGES, complete: true, blind_spots: [], shown: 6, total: 9, as_of: null };
  const merged = merge([answer]);
  const shown = collapse(hide(merged, state.hidden, merged.root), state.grouping, state.openGroups, merged.root);
  const spots = new Map(shown.nodes.map((node, layer) => [node.id, { x: layer * 300, y: 0, layer }]));
  const path = state.locked ? pathThrough(PATH, state.locked) : [];
  const onPath = state.locked ? columnsOnPath(path, state.locked) : new Map<string, Set<string>>();
  const scene = buildScene(shown.nodes, shown.edges, { spots, bends: new Map(), lanes: new Map() }, { open: state.openColumns, searches: new Map(), onPath });
  const drawn: Drawn = { scene, path, onPath: state.locked ? highlightPath(path, state.locked, shown.edges) : null };
  return viewOf("svg", state, merged, drawn);
}

const ids = (exported: ReturnType<typeof view>) => exported.nodes.map(({ id }) => id).toSorted();
const pairs = (exported: ReturnType<typeof view>) => exported.edges.map(({ source, target }) => `${source} ${target}`).toSorted();

describe("an exported view", () => {
  test("has the groups of the screen, and opened groups as their nodes", () => {
    const closed = view("entity=raw&group=namespace");
    expect(ids(closed)).toEqual(["group:db", "group:wh", "raw"]);
    expect(closed.nodes.find(({ id }) => id === "group:wh")).toMatchObject({ kind: "group", name: "wh", members: 2 });
    expect(closed.edges.find(({ target }) => target === "group:wh")).toMatchObject({ source: "raw", members: 2 });
    expect(ids(view("entity=raw&group=namespace&open=wh"))).toEqual(["a", "b", "group:db", "raw"]);
  });

  test("leaves out hidden kinds, with edges in place of hidden jobs", () => {
    const exported = view("entity=raw&hide=jobs");
    expect(ids(exported)).toEqual(["a", "b", "orders", "raw"]);
    expect(pairs(exported)).toEqual(["raw a", "raw b", "raw orders"]);
    expect(exported.hidden).toBe(2);
    expect(ids(view("entity=raw&hide=readers"))).not.toContain("read");
  });

  test("has the path of a locked column, and fades the rest", () => {
    const exported = view("entity=raw&locked=raw&column=zip");
    expect(exported.nodes.filter(({ faded }) => !faded).map(({ id }) => id)).toEqual(["raw", "load", "orders"]);
    expect(exported.nodes[0]!.columns).toMatchObject([{ name: "zip", locked: true, marks: ["pii"] }]);
    expect(exported.edges.at(-1)).toMatchObject({ source_column: "zip", target_column: "zip", type: "INDIRECT", subtype: "JOIN" });
    expect(exported.edges.filter(({ faded }) => faded)).toHaveLength(3);
  });

  test("has open rows, propagated tags, changes, moments and what is not shown", () => {
    const exported = view("entity=raw&columns=orders&as_of=2026-03-01&diff=2026-02-01");
    const orders = exported.nodes.find(({ id }) => id === "orders")!;
    expect(orders.reaching).toEqual(["pii"]);
    expect(orders.columns).toMatchObject([{ name: "zip", reaching: ["pii"], locked: false }]);
    expect(exported.nodes.find(({ id }) => id === "a")!.change).toBe("added");
    expect(exported.edges.find(({ target }) => target === "orders")!.change).toBe("removed");
    expect(exported).toMatchObject({ as_of: "2026-03-01", diff: "2026-02-01", total: 9, hidden: 0, root: "raw" });
    expect(exported.nodes.every(({ faded }) => faded === false)).toBe(true);
  });
});
