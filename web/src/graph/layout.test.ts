import { describe, expect, test } from "vitest";
import { layout, linkKey, ROW_GAP, type Box, type Layout, type Link } from "./layout";

const box = (id: string): Box => ({ id, width: 240, height: 60 });

function boxes(links: readonly Link[], more: readonly string[] = []): Box[] {
  const ids = new Set([...links.flatMap(({ source, target }) => [source, target]), ...more]);
  return [...ids].map(box);
}

const chain = (...ids: string[]): Link[] => ids.slice(1).map((target, i) => ({ source: ids[i]!, target }));

/** A lineage-like graph without cycles: most nodes read a recently added node. */
function randomLinks(count: number, seed = 7): Link[] {
  let state = seed;
  const random = () => ((state = (state * 1103515245 + 12345) % 2147483648) / 2147483648);
  const links: Link[] = [];
  for (let node = 1; node < count; node++) {
    for (let reads = random() < 0.6 ? 1 : 3; reads > 0; reads--) {
      const back = random() < 0.9 ? Math.min(node, 40) : node;
      links.push({ source: `n${node - 1 - Math.floor(random() * back)}`, target: `n${node}` });
    }
  }
  return links;
}

function expectNoOverlap(all: readonly Box[], result: Layout): void {
  const byLayer = new Map<number, { top: number; bottom: number; id: string }[]>();
  for (const { id, height } of all) {
    const spot = result.spots.get(id)!;
    const row = byLayer.get(spot.layer) ?? [];
    byLayer.set(spot.layer, [...row, { top: spot.y, bottom: spot.y + height, id }]);
  }
  for (const row of byLayer.values()) {
    row.sort((a, b) => a.top - b.top);
    for (let i = 1; i < row.length; i++) {
      expect(row[i]!.top - row[i - 1]!.bottom, `${row[i - 1]!.id} above ${row[i]!.id}`).toBeGreaterThanOrEqual(ROW_GAP - 1.5);
    }
  }
}

function expectForwardEdges(links: readonly Link[], result: Layout): void {
  for (const { source, target } of links) {
    expect(result.spots.get(source)!.layer, `${source} → ${target}`).toBeLessThan(result.spots.get(target)!.layer);
  }
}

describe("a new layout", () => {
  test("places every edge from left to right without overlap", () => {
    const links = randomLinks(1000);
    const all = boxes(links);
    const result = layout(all, links);
    expect(result.spots.size).toBe(1000);
    expectForwardEdges(links, result);
    expectNoOverlap(all, result);
  });

  test("is the same for the same graph", () => {
    const links = randomLinks(200);
    expect(layout(boxes(links), links)).toEqual(layout(boxes(links), links));
  });

  test("puts a source one layer left of its first reader, not at the far left", () => {
    const links = [...chain("a", "b", "c", "d"), { source: "lookup", target: "d" }];
    const { spots } = layout(boxes(links), links);
    expect(spots.get("lookup")!.layer).toBe(spots.get("d")!.layer - 1);
  });

  test("opens cycles and still places every node", () => {
    const links = [...chain("a", "b", "c", "a"), ...chain("c", "d")];
    const result = layout(boxes(links), links);
    const forwards = links.filter(({ source, target }) => result.spots.get(source)!.layer < result.spots.get(target)!.layer);
    expect(forwards).toHaveLength(3);
    expectNoOverlap(boxes(links), result);
  });

  test("ignores loops, repeated links and links to unknown nodes", () => {
    const links = [...chain("a", "b"), ...chain("a", "b"), { source: "a", target: "a" }, { source: "a", target: "gone" }];
    const { spots } = layout([box("a"), box("b")], links);
    expect([...spots.keys()]).toEqual(["a", "b"]);
    expect(spots.get("b")!.layer - spots.get("a")!.layer).toBe(1);
  });

  test("bends a long edge in every layer it crosses", () => {
    const links = [...chain("a", "b", "c", "d"), { source: "a", target: "d" }];
    const { bends } = layout(boxes(links), links);
    expect(bends.get(linkKey("a", "d"))!.map((bend) => bend.layer)).toEqual([1, 2]);
  });

  test("keeps a bend clear of the boxes of its layer", () => {
    const links = [...chain("a", "b", "c", "d"), { source: "a", target: "d" }];
    const { bends, spots } = layout(boxes(links), links);
    for (const bend of bends.get(linkKey("a", "d"))!) {
      const other = spots.get(bend.layer === 1 ? "b" : "c")!;
      expect(bend.y < other.y || bend.y > other.y + 60).toBe(true);
    }
  });

  test("untangles two crossed pairs", () => {
    const links = [{ source: "a", target: "y" }, { source: "b", target: "x" }];
    const { spots } = layout(["a", "b", "x", "y"].map(box), links);
    expect(spots.get("a")!.y < spots.get("b")!.y).toBe(spots.get("y")!.y < spots.get("x")!.y);
  });

  test("places disconnected parts and a grid of nodes without edges", () => {
    const loose = Array.from({ length: 40 }, (_, i) => `loose${i}`);
    const links = [...chain("a", "b"), ...chain("x", "y")];
    const all = boxes(links, loose);
    const result = layout(all, links);
    expect(result.spots.size).toBe(44);
    expectNoOverlap(all, result);
    const bottom = Math.max(...["a", "b", "x", "y"].map((id) => result.spots.get(id)!.y + 60));
    expect(Math.min(...loose.map((id) => result.spots.get(id)!.y))).toBeGreaterThan(bottom);
    expect(new Set(loose.map((id) => result.spots.get(id)!.x)).size).toBeGreaterThan(2);
  });

  test("accepts an empty graph and names like __proto__", () => {
    expect(layout([], []).spots.size).toBe(0);
    const { spots } = layout([box("__proto__"), box("constructor")], chain("__proto__", "constructor"));
    expect(spots.size).toBe(2);
  });
});

describe("a layout that grows", () => {
  test("keeps everything that is shown where it is", () => {
    const links = randomLinks(120);
    const before = links.slice(0, 90);
    const shown = layout(boxes(before), before);
    const all = boxes(links);
    const after = layout(all, links, shown);
    const moved = boxes(before).filter(({ id }) => shown.spots.get(id)!.y !== after.spots.get(id)!.y && shown.spots.get(id)!.layer === after.spots.get(id)!.layer);
    expect(moved).toEqual([]);
    expectForwardEdges(links, after);
    expectNoOverlap(all, after);
  });

  test("moves no layer when new nodes come on the left or on the right", () => {
    const before = chain("b", "c", "d");
    const shown = layout(boxes(before), before);
    const links = [...before, ...chain("a2", "a", "b"), ...chain("d", "e", "f"), ...chain("d", "e2")];
    const after = layout(boxes(links), links, shown);
    for (const id of ["b", "c", "d"]) expect(after.spots.get(id)).toEqual(shown.spots.get(id));
    expect(after.spots.get("a2")!.layer).toBe(shown.spots.get("b")!.layer - 2);
    expectForwardEdges(links, after);
    expectNoOverlap(boxes(links), after);
  });

  test("places new siblings beside each other near the node they belong to", () => {
    const before = chain("a", "b");
    const shown = layout(boxes(before), before);
    const links = [...before, ...["r", "s", "t"].map((target) => ({ source: "b", target }))];
    const { spots } = layout(boxes(links), links, shown);
    const tops = ["r", "s", "t"].map((id) => spots.get(id)!.y);
    expect(Math.max(...tops) - Math.min(...tops)).toBe(2 * (60 + ROW_GAP));
    expect(tops.reduce((sum, y) => sum + y, 0) / 3).toBeCloseTo(spots.get("b")!.y, -2);
  });

  test("moves a node to the right only when an edge would run backwards", () => {
    const before = [...chain("a", "b"), ...chain("x", "y")];
    const shown = layout(boxes(before), before);
    const links = [...before, ...chain("b", "m", "y")];
    const { spots } = layout(boxes(links), links, shown);
    expectForwardEdges(links, layout(boxes(links), links, shown));
    expect(spots.get("a")).toEqual(shown.spots.get("a"));
    expect(spots.get("x")).toEqual(shown.spots.get("x"));
    expect(spots.get("y")!.layer).toBe(3);
  });

  test("keeps places when nodes go away", () => {
    const links = randomLinks(60);
    const shown = layout(boxes(links), links);
    const rest = links.filter(({ source, target }) => source !== "n7" && target !== "n7");
    const after = layout(boxes(rest), rest, shown);
    for (const [id, spot] of after.spots) expect(spot).toEqual(shown.spots.get(id));
  });
});
