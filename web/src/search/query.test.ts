import { describe, expect, it } from "vitest";
import type { SearchHit } from "../api/types";
import { markMatches, parseQuery, pathOf, renderQuery, toggleFilter } from "./query";

describe("the text of a search", () => {
  it("contains words and filters in any order", () => {
    expect(parseQuery("type:table orders tag:pii raw")).toEqual({ text: "orders raw", filters: { type: "table", tag: "pii" } });
    expect(parseQuery('owner:"data team"')).toEqual({ text: "", filters: { owner: "data team" } });
  });
  it("keeps words that only look like filters", () => {
    expect(parseQuery("s3://lake ratio:x").text).toBe("s3://lake ratio:x");
    expect(parseQuery("kind:datase")).toEqual({ text: "kind:datase", filters: {} });
  });
  it("survives a round trip", () => {
    for (const typed of ["orders", 'tag:pii owner:"a b" orders raw', ""]) expect(renderQuery(parseQuery(typed))).toBe(typed);
  });
  it("turns a filter on and off", () => {
    expect(toggleFilter("orders", "kind", "job")).toBe("kind:job orders");
    expect(toggleFilter("kind:job orders", "kind", "job")).toBe("orders");
    expect(toggleFilter("kind:job orders", "kind", "column")).toBe("kind:column orders");
  });
});

describe("markMatches", () => {
  const text = (name: string, words: string) => markMatches(name, words).map(({ text, matched }) => (matched ? `[${text}]` : text)).join("");
  it.each([
    ["raw.orders", "ord", "raw.[ord]ers"],
    ["raw.orders", "ORDERS raw", "[raw].[orders]"],
    ["aaa", "aa", "[aaa]"],
    ["orders", "", "orders"],
    ["<b>", "b", "<[b]>"],
  ])("%s for %s", (name, words, marked) => expect(text(name, words)).toBe(marked));
});

describe("pathOf", () => {
  const hit = (kind: SearchHit["kind"], rest: Partial<SearchHit> = {}): SearchHit => ({
    id: "dataset:pg:a&b", kind, name: "a&b", label: "a&b", namespace: "pg", tags: [], match: [], ...rest,
  });
  it("escapes names", () => expect(pathOf(hit("dataset"), "open")).toBe("/entity?id=dataset%3Apg%3Aa%26b"));
  it("leads from a column to its dataset", () => {
    const column = hit("column", { name: "total", dataset: "dataset:pg:orders" });
    expect(pathOf(column, "open")).toBe("/entity?id=dataset%3Apg%3Aorders&column=total");
    expect(pathOf(column, "change")).toBe("/change?entity=dataset%3Apg%3Aorders&column=total");
  });
  it("has no page for a tag, and no change of a job", () => {
    expect(pathOf(hit("tag"), "open")).toBeNull();
    expect(pathOf(hit("job"), "change")).toBeNull();
  });
});
