/** The types of answers by their short names, and those that the OpenAPI document does not have. */

export type * from "./schema";
import type { EntityDetails as Details, GraphColumn, QualityResult } from "./schema";

export type EntityKind = "dataset" | "job" | "column" | "tag" | "owner";

export interface SearchHit {
  id: string;
  kind: EntityKind;
  name: string;
  label: string;
  namespace: string;
  type?: string | null;
  dataset?: string | null;
  tags: string[];
}

export type Facet = Record<string, number>;

export interface SearchAnswer {
  hits: SearchHit[];
  total: number;
  next_cursor?: string | null;
  facets: { kind?: Facet; type?: Facet; namespace?: Facet; tag?: Facet; owner?: Facet };
}

export interface SchemaVersions {
  versions: {
    at: string;
    event: string;
    columns: GraphColumn[];
    added: string[];
    removed: string[];
    retyped: { name: string; from: string; to: string }[];
  }[];
}

/** What `/v1/entity` answers, with the parts that only some entities have. */
export type EntityDetails = Details & {
  sql?: string | null;
  source?: string | null;
  quality?: QualityResult[] | null;
  facets?: Record<string, unknown> | null;
};

export interface KpiPoint {
  at: string;
  lineage_coverage?: number | null;
  certified_path_integrity?: number | null;
  blast_radius?: number | null;
  failure_rate?: number | null;
}

export interface KpiHistory {
  points: KpiPoint[];
}
