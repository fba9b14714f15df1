import { expect, it } from "vitest";
import type { RunRecord } from "../../api/types";
import { freshnessRows } from "./freshness_map";
import { coverageByNamespace } from "./node_arrays";

const run = (output: string, day: string, state = "COMPLETE"): RunRecord => ({ id: `${output}${day}`, job: "job:a:b", state, inputs: [], outputs: [output], ended_at: `2026-03-${day}T10:00:00Z` });

it("shows each dataset on each day on which anything ran", () => {
  const { rows, days } = freshnessRows([run("dataset:a:t", "14"), run("dataset:a:t", "13", "FAIL"), run("dataset:a:u", "14", "START"), run("dataset:a:u", "11")]);
  expect(days).toEqual(["11 Mar", "13 Mar", "14 Mar"]);
  expect(rows[0]?.cells.map((cell) => cell.level)).toEqual([null, 2, 0]);
});

it("has no rows without runs", () => expect(freshnessRows([]).rows).toEqual([]));

it("counts what is connected in each namespace", () => {
  const arrays = { ids: ["dataset:pg://h:1:a", "dataset:pg://h:1:b", "job:x:c"], degrees: [2, 0, 1], labels: [], types: [], groups: [], group_names: [], edges: [] };
  expect(coverageByNamespace(arrays)).toEqual([
    { namespace: "pg://h:1", total: 2, connected: 1, percent: 50 },
    { namespace: "x", total: 1, connected: 1, percent: 100 },
  ]);
});
