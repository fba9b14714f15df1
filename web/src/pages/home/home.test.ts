import { expect, test } from "vitest";
import type { Finding } from "../../api/types";
import { gravestFirst } from "./home";

const finding = (id: string, severity: Finding["severity"]) => ({ id, severity }) as Finding;

test("the gravest findings come first, the newest of them at the top", () => {
  const found = [finding("a", "warning"), finding("b", "critical"), finding("c", "info"), finding("d", "critical")];
  expect(gravestFirst(found).map(({ id }) => id)).toEqual(["b", "d", "a", "c"]);
});
