import { describe, expect, it } from "vitest";
import { linePath } from "./charts";

const scale = { x: (at: number) => at * 10, y: (value: number) => value };
const points = (...values: (number | null)[]) => values.map((value) => ({ at: "", value }));

describe("linePath", () => {
  it("joins the values", () => expect(linePath(points(1, 2, 3), scale)).toBe("M0 1L10 2L20 3"));
  it("breaks where a value is missing", () => expect(linePath(points(1, null, 3, 4), scale)).toBe("M0 1M20 3L30 4"));
  it("is empty without values", () => expect(linePath(points(null), scale)).toBe(""));
});
