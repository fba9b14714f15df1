import { expect, it } from "vitest";
import type { GraphDifference } from "../../api/types";
import { concerns } from "./difference_list";

const edge: GraphDifference = { change: "added", kind: "edge", entity: "job:dbt:load", source: "dataset:pg://h:1:orders", sentence: "" };
const column: GraphDifference = { change: "removed", kind: "column", entity: "column:pg://h:1:orders:total", sentence: "" };

it("counts a change of a column or an edge as one of the dataset", () => {
  expect([edge, column].map((one) => concerns(one, "dataset:pg://h:1:orders"))).toEqual([true, true]);
  expect(concerns(column, "dataset:pg://h:1:orders_old")).toBe(false);
});
