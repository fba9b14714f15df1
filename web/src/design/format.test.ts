import { describe, expect, it } from "vitest";
import { asWords, formatAge, formatBytes, formatDuration, nameOf, parseId, splitAtIds } from "./format";

describe("formatAge", () => {
  const now = Date.parse("2026-05-10T12:00:00Z");
  it.each([
    ["2026-05-10T11:59:40Z", "just now"],
    ["2026-05-10T11:00:00Z", "1 hour ago"],
    ["2026-05-09T11:00:00Z", "yesterday"],
    ["2026-05-12T12:00:00Z", "in 2 days"],
    [null, "never"],
  ])("of %s is %s", (time, age) => expect(formatAge(time, now)).toBe(age));
});

describe("formatDuration", () => {
  it.each([
    [0.85, "850 ms"],
    [12, "12 s"],
    [250, "4 min 10 s"],
    [7500, "2 h 5 min"],
    [3600, "1 h"],
    [null, "unknown"],
  ])("of %s is %s", (seconds, text) => expect(formatDuration(seconds)).toBe(text));
});

describe("ids", () => {
  it("have namespaces with colons", () => {
    expect(parseId("dataset:postgres://warehouse:5432:marts.revenue")).toEqual({
      kind: "dataset",
      namespace: "postgres://warehouse:5432",
      name: "marts.revenue",
    });
    expect(nameOf("job:shop:sum_revenue")).toBe("sum_revenue");
    expect(nameOf("column:postgres://w:5432:marts.revenue:country")).toBe("marts.revenue.country");
  });
  it("that are none stay as they are", () => expect(nameOf("orders")).toBe("orders"));
});

it("formats sizes and codes", () => {
  expect(formatBytes(1500)).toBe("1.5 kB");
  expect(formatBytes(999)).toBe("999 B");
  expect(asWords("column_dropped")).toBe("Column dropped");
});

it("finds the ids in a sentence, the longest first", () => {
  const ids = ["dataset:pg://h:1:orders", "dataset:pg://h:1:orders_old"];
  expect(splitAtIds(`a reads ${ids[1]}`, ids)).toEqual([
    { text: "a reads " },
    { text: ids[1], id: ids[1] },
  ]);
  expect(splitAtIds("nothing", [])).toEqual([{ text: "nothing" }]);
});
