import { expect, it } from "vitest";
import { ownership, statementEvent } from "./statements";

const at = new Date("2026-03-01T00:00:00Z");

it("states owners of a dataset in an event without a run", () => {
  const event = statementEvent({ kind: "dataset", namespace: "pg", name: "orders" }, ownership(" finance, ,data "), at);
  expect(event).toMatchObject({ eventTime: "2026-03-01T00:00:00.000Z", dataset: { namespace: "pg", name: "orders", facets: { ownership: { owners: [{ name: "finance" }, { name: "data" }] } } } });
  expect(event).not.toHaveProperty("run");
});

it("states facets of a job as an event of the job", () => {
  expect(statementEvent({ kind: "job", namespace: "dbt", name: "load" }, {}, at)).toMatchObject({ job: { name: "load" } });
});
