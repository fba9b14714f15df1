import { expect, it } from "vitest";
import { groupWaivers, summaryOf } from "./verdict_list";

it("names the first change and counts the others", () => {
  expect(summaryOf(["drop a.b"])).toBe("drop a.b");
  expect(summaryOf(["drop a.b", "drop a.c", "drop a.d"])).toBe("drop a.b and 2 other changes");
});

it("shows a waiver of several rules once", () => {
  expect(groupWaivers(["a: Ann, until 2026-01-01: agreed: yes", "b: Ann, until 2026-01-01: agreed: yes"])).toEqual([{ rules: ["a", "b"], waiver: "Ann, until 2026-01-01: agreed: yes" }]);
});
