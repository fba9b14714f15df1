import { expect, it } from "vitest";
import type { GraphColumnEdge } from "../../api/types";
import { splitPath } from "./column_page";

const edge = (from: string, to: string) => ({ source: { dataset: from, column: "c" }, target: { dataset: to, column: "c" } }) as GraphColumnEdge;

it("divides a path at its column, also when it returns to it", () => {
  const edges = [edge("raw", "stg"), edge("stg", "fct"), edge("fct", "kpi"), edge("stg", "stg")];
  const { upstream, downstream } = splitPath(edges, "stg", "c");
  expect(upstream).toEqual([edges[0]]);
  expect(downstream).toHaveLength(3);
});
