import { expect, test } from "vitest";
import { expandSize } from "./node_card";

test.each([0.4, 0.5, 0.62, 0.7, 1, 2])("the text of an expand button is readable at zoom %s", (zoom) => {
  expect(expandSize(zoom) * zoom).toBeGreaterThanOrEqual(11);
  expect(expandSize(zoom) * Math.min(zoom, 1)).toBeLessThan(12);
});
