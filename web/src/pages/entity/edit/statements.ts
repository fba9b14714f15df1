/** What a person states about a dataset or job, as an OpenLineage event without a run. */

import { request } from "../../../api/client";
import type { EntityView } from "../../../api/types";

export type Facets = Record<string, object>;

const SPEC = "https://openlineage.io/spec";
const PRODUCER = "https://github.com/downriver/downriver/tree/main/web";

export function documentation(text: string): Facets {
  return { documentation: { ...facetOf("DocumentationDatasetFacet"), description: text.trim() } };
}

/** Owners as people write them: names between commas. */
export function ownership(text: string): Facets {
  const names = text.split(",").map((name) => name.trim()).filter(Boolean);
  return { ownership: { ...facetOf("OwnershipDatasetFacet"), owners: names.map((name) => ({ name })) } };
}

function facetOf(schema: string): object {
  return { _producer: PRODUCER, _schemaURL: `${SPEC}/facets/1-0-1/${schema}.json#/$defs/${schema}` };
}

export function statementEvent(entity: Pick<EntityView, "kind" | "namespace" | "name">, facets: Facets, at: Date): object {
  const { kind, namespace, name } = entity;
  const isJob = kind === "job";
  return {
    eventTime: at.toISOString(),
    producer: PRODUCER,
    schemaURL: `${SPEC}/2-0-2/OpenLineage.json#/$defs/${isJob ? "JobEvent" : "DatasetEvent"}`,
    [isJob ? "job" : "dataset"]: { namespace, name, facets },
  };
}

export async function sendStatement(entity: EntityView, facets: Facets): Promise<void> {
  await request("/api/v1/lineage", {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(statementEvent(entity, facets, new Date())),
  });
}
