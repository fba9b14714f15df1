import { describe, expect, test } from "vitest";
import { reachingNode } from "../../graph/cards/marks";
import type { Graph } from "../../graph/graph_types";
import { columnEdge, dataset, edge, job } from "../../graph/test_graph";
import { lineagePath } from "../../shell/routes";
import { changedEdges } from "./column_changes";
import { collapse, hide, isTemporary, merge } from "./graph_view";
import { reachingOf, withReaching } from "./reaching_tags";
import { filterRows, renderCsv, sortRows } from "./table_rows";
import { nearestTick } from "./time_slider";
import { parseState, renderState, withRoot, type LineageState, withIds } from "./url_state";

describe("the URL", () => {
  test("holds everything that is shown", () => {
    const state: LineageState = {
      entity: "dataset:pg://db:a&b=c",
      selector: undefined,
      expanded: [{ id: "dataset:x:u:y", side: "upstream" }, { id: "job:z", side: "both" }],
      openColumns: new Set(["a", "b"]),
      locked: { dataset: "a", column: "x,y" },
      asOf: "2026-01-01T00:00:00Z",
      diff: "2025-01-01T00:00:00Z",
      grouping: "schema",
      openGroups: new Set(["db public"]),
      hidden: new Set(["jobs", "temporary"]),
      active: "b",
      panel: "details",
    };
    expect(parseState(new URLSearchParams(renderState(state).toString()))).toEqual(state);
  });

  test("that is damaged gives a view without the damaged part", () => {
    const state = parseState(new URLSearchParams("entity=a&x=&x=q:b&x=u:&locked=only&group=weird&hide=nothing,jobs&panel=x"));
    expect(state).toMatchObject({ entity: "a", expanded: [], locked: undefined, grouping: "none" });
    expect([...state.hidden]).toEqual(["jobs"]);
  });

  test("a new root forgets expansions and the locked column, not the filters", () => {
    const before = parseState(new URLSearchParams("entity=a&x=u:b&locked=a&column=c&hide=jobs"));
    expect(renderState(withRoot(before, { entity: "z" })).toString()).toBe("entity=z&hide=jobs");
  });
});

describe("the shown graph", () => {
  const answer = (root: string, ids: string[], links: [string, string][], total: number): Graph => ({
    root, nodes: ids.map((id) => dataset(id)), edges: links.map(([a, b]) => edge(a, b)), complete: true, blind_spots: [], shown: ids.length, total, as_of: null,
  });

  test("merges an expansion without repeating nodes, edges or blind spots", () => {
    const spot = { kind: "opaque", entity: "b", message: "unknown" };
    const first = { ...answer("a", ["a", "b"], [["a", "b"]], 9), blind_spots: [spot] };
    const merged = merge([first, { ...answer("b", ["b", "c"], [["a", "b"], ["b", "c"]], 5), blind_spots: [spot] }]);
    expect(merged.nodes.map((node) => node.id)).toEqual(["a", "b", "c"]);
    expect([merged.edges.length, merged.total, merged.blindSpots.length, merged.root]).toEqual([2, 9, 1, "a"]);
  });

  const graph = {
    nodes: [dataset("raw"), job("load"), dataset("tmp_x", { name: "s.tmp_x" }), job("clean"), dataset("out"), job("look", { downstream_total: 0 })],
    edges: [edge("raw", "load"), edge("load", "tmp_x"), edge("tmp_x", "clean", { confidence: "inferred" }), edge("clean", "out"), edge("out", "look")],
  };
  const links = (shown: { edges: { source: string; target: string }[] }) => shown.edges.map(({ source, target }) => `${source}>${target}`).sort();

  test("joins datasets directly when jobs are hidden, and is as sure as the weaker edge", () => {
    const shown = hide(graph, new Set(["jobs"]), "raw");
    expect(links(shown)).toEqual(["raw>tmp_x", "tmp_x>out"]);
    expect(shown.edges.find(({ target }) => target === "out")).toMatchObject({ confidence: "inferred", job: "clean", kind: "derives" });
  });

  test("hides jobs that only read, and temporary tables without cutting the path", () => {
    expect(links(hide(graph, new Set(["readers"]), null))).toEqual(["clean>out", "load>tmp_x", "raw>load", "tmp_x>clean"]);
    expect(links(hide(graph, new Set(["temporary"]), null))).toEqual(["clean>out", "load>clean", "out>look", "raw>load"]);
    expect(links(hide(graph, new Set(["jobs", "temporary"]), null))).toEqual(["raw>out"]);
  });

  test("never hides the root", () => {
    expect(hide(graph, new Set(["jobs"]), "clean").nodes.map((node) => node.id)).toContain("clean");
  });

  test("knows temporary tables by their name, and no others", () => {
    const names = ["tmp_orders", "stage.temp", "a.scratch.b", "orders_tmp", "temperature", "attempts", "template"];
    expect(names.map((name) => isTemporary(dataset(name)))).toEqual([true, true, true, true, false, false, false]);
  });

  test("collapses groups, counts their edges, and leaves the root and open groups", () => {
    const nodes = ["s.a", "s.b", "s.c", "t.x", "t.y"].map((name) => dataset(name));
    const shown = collapse({ nodes, edges: [edge("s.a", "t.x"), edge("s.b", "t.x"), edge("s.b", "t.y"), edge("s.c", "s.b")] }, "schema", new Set(), "s.c");
    expect(shown.nodes.map((node) => node.id).sort()).toEqual(["group:db s", "group:db t", "s.c"]);
    expect(shown.edges.find(({ source }) => source === "group:db s")).toMatchObject({ target: "group:db t", members: 3 });
    expect(collapse({ nodes, edges: [] }, "schema", new Set(["db t"]), "s.c").nodes.map((node) => node.id).sort()).toEqual(["group:db s", "s.c", "t.x", "t.y"]);
  });
});

describe("the table", () => {
  const nodes = [dataset("b", { depth: 1, owners: ["Ana"] }), dataset("a", { depth: 1 }), job("z", { depth: -1, tags: ["nightly"] })];

  test("sorts by a column and then by name", () => {
    expect(sortRows(nodes, { by: "depth", descending: false }).map((node) => node.id)).toEqual(["z", "a", "b"]);
    expect(sortRows(nodes, { by: "name", descending: true }).map((node) => node.id)).toEqual(["z", "b", "a"]);
  });

  test("filters by every word", () => {
    expect(filterRows(nodes, "table ana").map((node) => node.id)).toEqual(["b"]);
    expect(filterRows(nodes, "nightly")).toHaveLength(1);
    expect(filterRows(nodes, "")).toHaveLength(3);
  });

  test("writes CSV that no spreadsheet runs as a formula", () => {
    const [, row] = renderCsv([dataset('=HYPERLINK("x")', { namespace: "a,b" })]).split("\r\n");
    expect(row).toContain(`"'=HYPERLINK(""x"")"`);
    expect(row).toContain('"a,b"');
  });
});

test("a moment belongs to the last change before it", () => {
  const ticks = ["2026-01-01T00:00:00Z", "2026-02-01T00:00:00Z"].map((at) => ({ at, added: 1, removed: 0, nodes_added: 0, summary: "" }));
  expect(nearestTick(ticks, "2026-01-15T00:00:00Z")).toBe(0);
  expect(nearestTick(ticks, "2026-03-01T00:00:00+02:00")).toBe(1);
});

test("a link to a column locks its path and opens its dataset", () => {
  const state = parseState(new URLSearchParams(lineagePath("dataset:pg:orders", "total").split("?")[1]));
  expect(state.locked).toEqual({ dataset: "dataset:pg:orders", column: "total" });
  expect([...state.openColumns]).toEqual(["dataset:pg:orders"]);
});

test("short names in an address stand for the nodes that have them", () => {
  const nodes = [dataset("dataset:pg:raw.orders", { name: "raw.orders", label: "orders" }), dataset("dataset:s3:orders", { name: "lake/orders", label: "lake/orders" })];
  const state = withIds(parseState(new URLSearchParams("entity=orders&locked=orders&column=total&columns=raw.orders&at=lake/orders")), nodes);
  expect(state.locked).toEqual({ dataset: "dataset:pg:raw.orders", column: "total" });
  expect([...state.openColumns]).toEqual(["dataset:pg:raw.orders"]);
  expect(state.active).toBe("dataset:s3:orders");
  expect(withIds(state, nodes).locked).toBe(state.locked);
  expect(withIds(parseState(new URLSearchParams("at=nowhere")), nodes).active).toBe("nowhere");
});

test("tags that propagate belong to the columns they reach", () => {
  const reached = [{ column: "column:postgres://h:5432:staging.orders:email", tag: "pii", origin: "column:postgres://h:5432:raw.customers:email", path: [] }];
  const nodes = [dataset("dataset:postgres://h:5432:staging.orders", { marks: [] }), dataset("dataset:x:y")];
  const [orders, other] = withReaching(nodes, reachingOf([{ reached }]));
  expect(orders!.reaching!.get("email")).toEqual([{ tag: "pii", origin: "column:postgres://h:5432:raw.customers:email" }]);
  expect(reachingNode(orders!).map(({ tag }) => tag)).toEqual(["pii"]);
  expect(reachingNode({ ...orders!, marks: ["pii"] })).toEqual([]);
  expect(other).toBe(nodes[1]);
  expect(withReaching(nodes, reachingOf([]))).toBe(nodes);
});

test("only added and removed column edges are changes", () => {
  const same = columnEdge("a.x", "b.y");
  const added = { ...same, change: "added" as const };
  expect(changedEdges([same, added, { ...added, subtype: "CONTAINS" }])).toEqual([added]);
});
