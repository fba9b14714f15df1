import { expect, it } from "vitest";
import { parseOwners } from "./labels";

it("reads owners between commas", () => {
  expect(parseOwners(" finance, ,data ")).toEqual(["finance", "data"]);
  expect(parseOwners(" ")).toEqual([]);
});
