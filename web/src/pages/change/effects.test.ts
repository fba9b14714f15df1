import { describe, expect, it } from "vitest";
import type { Effect, Impact } from "../../api/types";
import { groupEffects, placeOf, severityById } from "./effects";

const effect = (consumer: string, outcome: Effect["outcome"], rest: Partial<Effect> = {}): Effect => ({
  consumer, name: consumer, asset_type: "sql", outcome, basis: "simulated", reason: "",
  severity: outcome === "fails" ? "breaking" : "warning", ...rest,
});

describe("groupEffects", () => {
  it("puts the worst first, and the nearest first in a group", () => {
    const groups = groupEffects([effect("d", "not_rebuilt"), effect("b", "fails", { hops: 3 }), effect("c", "changes"), effect("a", "fails", { hops: 1 })]);
    expect(groups.map((group) => [group.id, group.effects.map((one) => one.name)])).toEqual([
      ["breaking", ["a", "b"]],
      ["changes", ["c"]],
      ["not_rebuilt", ["d"]],
    ]);
  });
});

describe("severityById", () => {
  it("colours what a job writes as the worst of its writers", () => {
    const impact = { effects: [effect("job:a", "changes", { writes: ["t"] }), effect("job:b", "fails", { writes: ["t"] })], targets: ["s"] };
    expect(severityById(impact as Impact)).toEqual({ "job:a": "changed", "job:b": "breaking", t: "breaking", s: "changed" });
  });
});

it("names the place of a reference", () => {
  expect(placeOf({ path: "m.sql", line: 3 })).toBe("m.sql:3");
  expect(placeOf({ path: "m.sql", line: 0 })).toBe("m.sql");
  expect(placeOf({})).toBe("");
});
