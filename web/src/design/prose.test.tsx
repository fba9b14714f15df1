import { cleanup, render, screen } from "@testing-library/react";
import { afterEach, expect, test } from "vitest";
import { namesOf } from "./format";
import { Prose } from "./page";

afterEach(cleanup);

test("ids in a message are links, and other text stays text", () => {
  const ids = ["dataset:db:orders", "dataset:lake:orders"];
  render(<p><Prose text={`'orders' matches several entities: ${ids.join(", ")}. Use \`${ids[0]}\`. <b>x</b>`} ids={ids} /></p>);
  const links = screen.getAllByRole("link");
  expect(links.map((link) => link.getAttribute("href"))).toHaveLength(3);
  expect(links[1]!.getAttribute("href")).toContain(encodeURIComponent("dataset:lake:orders"));
  expect(document.querySelector("b")).toBeNull();
});

test("names that only one entity has are links, as whole words", () => {
  const names = namesOf(["dataset:db:stg.orders", "job:dbt:load", "dataset:a:same", "dataset:b:same"]);
  render(<p><Prose text="stg.orders feeds load. stg.orders.total, raw.stg.orders, reload and same are none." names={names} /></p>);
  expect(screen.getAllByRole("link").map((link) => link.textContent)).toEqual(["stg.orders", "load"]);
});
