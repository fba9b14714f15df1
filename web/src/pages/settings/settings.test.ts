import { expect, test } from "vitest";
import type { AuditRecord } from "../../api/types";
import { entriesOfLog } from "./audit_panel";
import { splitPatterns } from "./keys_panel";
import { quoted } from "./tags_panel";

test("namespaces of a key are separated by commas or spaces", () => {
  expect(splitPatterns(" postgres://warehouse*, s3://lake  ")).toEqual(["postgres://warehouse*", "s3://lake"]);
  expect(splitPatterns(" ")).toEqual([]);
});

test("a write names the log entries that it added", () => {
  const act: AuditRecord = { id: 1, actor: "ana", action: "write", target: "events", first_at: "", last_at: "", count: 1 };
  expect(entriesOfLog(act)).toBe("");
  expect(entriesOfLog({ ...act, first_seq: 7, last_seq: 7 })).toBe("log entry 7");
  expect(entriesOfLog({ ...act, first_seq: 7, last_seq: 9 })).toBe("log entries 7 to 9");
});

test("a tag is quoted in a selector if it needs to be", () => {
  expect(quoted("domain=sales")).toBe("domain=sales");
  expect(quoted("two words, and more")).toBe('"two words, and more"');
});
