import { render, screen } from "@testing-library/react";
import { expect, test } from "vitest";
import { Prose } from "./page";

test("ids in a message are links, and other text stays text", () => {
  const ids = ["dataset:db:orders", "dataset:lake:orders"];
  render(<p><Prose text={`'orders' matches several entities: ${ids.join(", ")}. Use \`${ids[0]}\`. <b>x</b>`} ids={ids} /></p>);
  const links = screen.getAllByRole("link");
  expect(links.map((link) => link.getAttribute("href"))).toHaveLength(3);
  expect(links[1]!.getAttribute("href")).toContain(encodeURIComponent("dataset:lake:orders"));
  expect(document.querySelector("b")).toBeNull();
});
