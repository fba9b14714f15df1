import { expect, it } from "vitest";
import type { Kpis } from "../../api/types";
import { HEADLINES, examplesOf } from "./headlines";

const none = { count: 0, total: 0, percent: null };
const kpis = { lineage_coverage: { count: 3, total: 4, percent: 75 }, certified_path_integrity: none, blast_radius: { median: 2.5, largest: 9, top: [] }, failure_rate: none, days: 30 } as unknown as Kpis;

it("shows a share that has no total as unknown, not as zero", () => {
  expect(HEADLINES.map((headline) => headline.value(kpis))).toEqual(["75%", "–", "2.5", "–"]);
});

it("lists a few examples", () => {
  expect(examplesOf({ count: 20, examples: Array.from({ length: 20 }, (_, at) => `e${at}`) })).toHaveLength(8);
});
