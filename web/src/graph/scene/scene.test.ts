import { describe, expect, test } from "vitest";
import { fittedParts, onLines, shortened, splitEnd, systemOf } from "../../design/short_name";
import { columnRows, MOST_ROWS } from "../cards/column_rows";
import { layout } from "../layout";
import { columnEdge, dataset, edge, job } from "../test_graph";
import { labelled } from "../edge_overlay";
import { anchorsBetween, eachCurve } from "./edge_paths";
import { columnsOnPath, highlightPath, pathThrough } from "./highlight";
import { nodeInDirection } from "./keyboard";
import { boxesOf, buildScene, columnLines, edgeAt, headHeight, linksOf, nodeAt } from "./scene";

const columns = (count: number) => Array.from({ length: count }, (_, i) => ({ name: `c${i}`, tags: [], marks: [] }));
const nodes = [dataset("a", { columns: columns(4), column_total: 4 }), job("j"), dataset("b", { columns: columns(30), column_total: 30 }), dataset("c")];
const edges = [edge("a", "j"), edge("j", "b"), edge("j", "c")];
const placed = layout(boxesOf(nodes), linksOf(edges));
const nothing = { open: new Set<string>(), searches: new Map<string, string>(), onPath: new Map<string, Set<string>>() };
const scene = buildScene(nodes, edges, placed, nothing);

describe("rows of columns", () => {
  test("a closed dataset shows no rows, an open one a part of a wide table and a search", () => {
    expect(columnRows(nodes[2]!, false, "", undefined)).toBeNull();
    const rows = columnRows(nodes[2]!, true, "", undefined)!;
    expect([rows.columns.length, rows.hidden, rows.searchable]).toEqual([MOST_ROWS, 20, true]);
    expect(columnRows(nodes[0]!, true, "", undefined)!.searchable).toBe(false);
  });

  test("a search finds columns beyond the first rows", () => {
    expect(columnRows(nodes[2]!, true, "C29", undefined)!.columns.map((column) => column.name)).toEqual(["c29"]);
  });

  test("columns of a locked path are shown in a closed dataset, also those that no schema lists", () => {
    const rows = columnRows(nodes[2]!, false, "", new Set(["c29", "unlisted"]))!;
    expect(rows.columns.map((column) => column.name)).toEqual(["c29", "unlisted"]);
  });

  test("open rows push down what is below, and nothing else", () => {
    const grown = buildScene(nodes, edges, placed, { ...nothing, open: new Set(["b"]) });
    const [upper, lower] = ["b", "c"].map((id) => grown.byId.get(id)!).sort((a, b) => a.y - b.y) as [typeof scene.nodes[0], typeof scene.nodes[0]];
    expect(lower.y).toBeGreaterThanOrEqual(upper.y + upper.height);
    for (const id of ["a", "j"]) expect(grown.byId.get(id)!.y).toBe(scene.byId.get(id)!.y);
  });
});

describe("the path of a column", () => {
  const path = [columnEdge("a.c1", "b.c2", { job: "j" }), columnEdge("b.c2", "x.c3"), columnEdge("a.c0", "b.c0", { job: "j" }), columnEdge("a.c1", "c.y", { job: "j" })];

  test("holds what the column is made of and what is made of it, and no other column", () => {
    expect(pathThrough(path, { dataset: "b", column: "c2" })).toEqual([path[0], path[1]]);
    expect(pathThrough(path, { dataset: "a", column: "c1" })).toEqual([path[0], path[1], path[3]]);
  });

  test("keeps the datasets, the jobs and the edges between them", () => {
    const start = { dataset: "b", column: "c2" };
    const kept = highlightPath(pathThrough(path, start), start, edges);
    expect([...kept.nodes].sort()).toEqual(["a", "b", "j", "x"]);
    expect(kept.edges.size).toBe(2);
  });

  test("ends in the rows of its columns", () => {
    const onPath = columnsOnPath([path[0]!], undefined);
    const shown = buildScene(nodes, edges, placed, { ...nothing, onPath });
    const [line] = columnLines([path[0]!], shown);
    const b = shown.byId.get("b")!;
    expect(line!.anchors[2]).toBe(b.x);
    expect(line!.anchors[3]).toBeGreaterThan(b.y + headHeight(nodes[2]!));
  });

  test("survives a cycle", () => {
    const cycle = [columnEdge("a.x", "b.x"), columnEdge("b.x", "a.x")];
    expect(pathThrough(cycle, { dataset: "a", column: "x" })).toHaveLength(2);
  });
});

describe("pointing and keys", () => {
  test("finds the node and the edge under a point", () => {
    const a = scene.byId.get("a")!;
    expect(nodeAt(scene, a.x + 5, a.y + 5)?.node.id).toBe("a");
    const line = scene.edges[0]!;
    expect(edgeAt(scene, line.anchors[0]! + 2, line.anchors[1]! + 1, 5)?.key).toBe(line.key);
    expect(edgeAt(scene, a.x - 500, a.y, 5)).toBeUndefined();
  });

  test("arrow keys follow edges, and move inside a layer", () => {
    expect(nodeInDirection(scene, "a", "ArrowRight")).toBe("j");
    expect(nodeInDirection(scene, "j", "ArrowLeft")).toBe("a");
    expect(nodeInDirection(scene, "a", "ArrowLeft")).toBeUndefined();
    const [upper, lower] = scene.byId.get("b")!.y < scene.byId.get("c")!.y ? ["b", "c"] : ["c", "b"];
    expect(nodeInDirection(scene, upper!, "ArrowDown")).toBe(lower);
    expect(nodeInDirection(scene, lower!, "ArrowUp")).toBe(upper);
  });
});

test("column edges between two datasets that say the same have one label", () => {
  const line = (source: string, more: object) => ({ key: source, edge: columnEdge(source, "b.x", more), anchors: [0, 0, 1, 1] });
  const inferred = { subtype: "TRANSFORMATION", confidence: "inferred" };
  const lines = [line("a.p", inferred), line("a.q", inferred), line("a.r", inferred), line("a.p", { type: "INDIRECT", subtype: "JOIN" }), line("a.s", {})];
  expect(labelled(lines, []).map(({ edge, count }) => [edge.subtype, count])).toEqual([["TRANSFORMATION", 3], ["JOIN", 1]]);
});

test("the label of a column edge is beside the nodes that its line passes", () => {
  const line = { key: "a", edge: columnEdge("a.p", "b.x", { type: "INDIRECT", subtype: "JOIN" }), anchors: [0, 0, 400, 0] };
  const passed = { node: job("j"), x: 180, y: -20, width: 150, height: 40, layer: 1, rows: null };
  const [label] = labelled([line], [passed]);
  expect(label!.place[0] + 21 <= 180 || label!.place[0] - 21 >= 330).toBe(true);
});

test("a long name makes its card higher, and the rows of its columns start below", () => {
  const long = dataset("customer_lifetime_value_features", { columns: columns(2), column_total: 2 });
  const both = [long, dataset("b")];
  const open = buildScene(both, [], layout(boxesOf(both), []), { ...nothing, open: new Set([long.id]) });
  expect(headHeight(long)).toBeGreaterThan(headHeight(both[1]!));
  expect(open.byId.get(long.id)!.height - open.byId.get("b")!.height).toBeGreaterThan(2 * 24);
});

test("an edge that runs backwards goes below both boxes", () => {
  const curves: number[][] = [];
  eachCurve(anchorsBetween(100, 10, 0, 20, 90), (...curve) => curves.push(curve));
  expect(curves.map((curve) => curve.slice(0, 2))).toEqual([[100, 10], [100, 90], [0, 90]]);
  expect(curves[0]![2]).toBeGreaterThan(100); // it leaves to the right
  expect(curves[2]![2]).toBeLessThan(0); // and arrives from the left
  expect(anchorsBetween(0, 1, 50, 2, 90)).toEqual([0, 1, 50, 2]);
});

test("keeps the last parts of a long name", () => {
  expect(shortened("fct_orders", 22)).toBe("fct_orders");
  expect(shortened("warehouse.analytics.stg_orders", 22)).toBe("analytics.stg_orders");
  expect(shortened("a_name_without_parts_that_is_long", 22)).toBe("a_name_wit…hat_is_long");
  expect(shortened("postgres://warehouse:5432", 22)).toBe("warehouse:5432");
  expect(fittedParts("marts.revenue", 22)).toEqual({ front: "marts.", tail: "revenue" });
  expect(fittedParts("warehouse.analytics.stg_orders", 22)).toEqual({ front: "…analytics.", tail: "stg_orders" });
  expect(fittedParts("analytics.revenue_dashboard_job", 22)).toEqual({ front: "", tail: "revenue_dashboard_job" });
  expect(onLines("daily_revenue", 10, 2)).toEqual(["daily_", "revenue"]);
  expect(onLines("collectAsArrowToPython", 14, 2)).toEqual(["collectAs", "ArrowToPython"]);
  expect(onLines("orders.stg_orders", 10, 2)).toEqual(["orders.", "stg_orders"]);
  expect(onLines("analytics.orders.stg_orders", 9, 2)).toEqual(["stg_", "orders"]);
  expect(onLines("averylongnamewithoutwords", 8, 2)).toEqual(["averylo…", "outwords"]);
  expect(onLines("orders", 10, 2)).toEqual(["orders"]);
  expect(onLines("customer_lifetime_value_features_with_history_v4", 20, 3)).toEqual(["customer_lifetime_", "value_features_", "with_history_v4"]);
  expect(onLines("customer_lifetime_value_features_with_history_v4", 21, 2)).toHaveLength(2);
  expect(splitEnd("orders")).toEqual(["orders", ""]);
  expect(splitEnd("customer_features_v4").join("")).toBe("customer_features_v4");
  expect(systemOf("postgres://warehouse:5432")).toBe("postgres");
  expect([systemOf("s3://lake"), systemOf("spark")]).toEqual(["s3://lake", "spark"]);
});
