import { describe, expect, it } from "vitest";
import { bodyOf, changeOf, missingOf, newDraft, parseProposal, renderProposal, type ChangeType, type Draft, type Proposal } from "./proposal";

const draft = (type: ChangeType, column = "", to = "", required = false): Draft => ({ type, column, to, required });
const proposal = (rest: Partial<Proposal> = {}): Proposal => ({
  entity: "dataset:pg:orders", form: "changes", drafts: [draft("column_drop", "total")], ddl: "", dialect: "", diff: "", asOf: "", ...rest,
});

describe("changeOf", () => {
  it.each([
    [draft("column_rename", "total", "amount"), { type: "column_rename", dataset: "d", from: "total", to: "amount" }],
    [draft("column_drop", " total "), { type: "column_drop", dataset: "d", column: "total" }],
    [draft("type_change", "total", "text"), { type: "type_change", dataset: "d", column: "total", to: "text" }],
    [draft("column_add", "tax", "int", true), { type: "column_add", dataset: "d", column: "tax", data_type: "int", required: true }],
    [draft("nullability_change", "total", "", true), { type: "nullability_change", dataset: "d", column: "total", nullable: false }],
    [draft("logic_change"), { type: "logic_change", dataset: "d", columns: [] }],
    [draft("deprecation", "total"), { type: "deprecation", dataset: "d", column: "total" }],
    [draft("table_rename", "", "sales"), { type: "table_rename", dataset: "d", to: "sales" }],
    [draft("table_drop"), { type: "table_drop", dataset: "d" }],
  ])("renders %o", (given, change) => {
    expect(changeOf(given, "d")).toEqual(change);
    expect(missingOf(given)).toBe("");
  });
  it.each([
    [draft("column_rename", "total"), "Give the new name."],
    [draft("column_rename", "total", "total"), "The new name is the old one."],
    [draft("column_rename", "", "x"), "Choose a column."],
    [draft("type_change", "total"), "Give the new type."],
    [draft("table_rename"), "Give the new name."],
  ])("names what %o lacks", (given, missing) => {
    expect(changeOf(given, "d")).toBeNull();
    expect(missingOf(given)).toBe(missing);
  });
});

describe("bodyOf", () => {
  it("leaves out incomplete changes, and asks nothing without one", () => {
    const both = proposal({ drafts: [draft("column_rename", "a"), draft("column_drop", "b")] });
    expect(bodyOf(both)?.changes).toHaveLength(1);
    expect(bodyOf(proposal({ drafts: [newDraft()] }))).toBeNull();
    expect(bodyOf(proposal({ entity: "" }))).toBeNull();
  });
  it("takes DDL or a diff", () => {
    expect(bodyOf(proposal({ form: "ddl", ddl: "drop table t", dialect: "postgres" }))).toEqual({ ddl: "drop table t", dialect: "postgres" });
    expect(bodyOf(proposal({ form: "diff", diff: " " }))).toBeNull();
  });
});

describe("the address", () => {
  it.each([
    proposal({ drafts: [draft("column_rename", "a&b", "c=d"), draft("column_add", "<b>", "int", true)] }),
    proposal({ form: "ddl", ddl: "alter table t\n drop column c;", dialect: "duckdb" }),
    proposal({ form: "diff", diff: "--- a\n+++ b\n" }),
  ])("holds the proposal", (given) => {
    const read = parseProposal(new URLSearchParams(renderProposal(given).toString()));
    expect(bodyOf(read)).toEqual(bodyOf(given));
    expect(read.entity).toBe(given.entity);
  });
  it("starts with a rename of the column it names", () => {
    expect(parseProposal(new URLSearchParams("entity=t&column=c")).drafts).toEqual([newDraft("c")]);
  });
  it("ignores what it cannot read", () => {
    expect(parseProposal(new URLSearchParams("entity=t&changes={broken")).drafts).toEqual([newDraft()]);
    expect(parseProposal(new URLSearchParams('changes=[["nonsense","a"],3]')).drafts).toEqual([newDraft()]);
  });
});

it("asks as of a moment for changes, and keeps it in the address", () => {
  const past = proposal({ asOf: "2026-03-01T00:00:00Z" });
  expect(bodyOf(past)).toMatchObject({ as_of: "2026-03-01T00:00:00Z" });
  expect(bodyOf(proposal())).not.toHaveProperty("as_of");
  expect(parseProposal(renderProposal(past)).asOf).toBe("2026-03-01T00:00:00Z");
});
