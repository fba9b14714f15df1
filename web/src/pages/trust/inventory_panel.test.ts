import { expect, it } from "vitest";
import { tablesOf } from "./inventory_panel";

it("reads names on lines or between commas, each once", () => {
  expect(tablesOf('raw.orders\n "raw.customers" ,raw.orders\n\n')).toEqual(["raw.orders", "raw.customers"]);
});
