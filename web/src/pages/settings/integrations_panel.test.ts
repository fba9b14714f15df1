import { expect, it } from "vitest";
import type { IntegrationStatus } from "../../api/types";
import { activeFirst } from "./integrations_panel";

const system = (name: string, last_received: string | null): IntegrationStatus => ({ name, last_received, setup: "", extra: null, package: null, installed: null, version: null, guide: "", jobs: 0, last_job: null });

it("lists systems that sent something first, the latest of them at the top", () => {
  const listed = activeFirst([system("airflow", null), system("dbt", "2026-01-01T00:00:00Z"), system("spark", "2026-02-01T00:00:00Z")]);
  expect(listed.map((one) => one.name)).toEqual(["spark", "dbt", "airflow"]);
});
