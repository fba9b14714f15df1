/** The four numbers at the top of the page: what they mean, and the lists behind them. */

import type { CountWithExamples, KpiPoint, Kpis } from "../../api/types";
import { formatCount, formatPercent, plural } from "../../design/format";

export interface Headline {
  id: "coverage" | "certified" | "blast" | "failures";
  name: string;
  meaning: string;
  value: (kpis: Kpis) => string;
  detail: (kpis: Kpis) => string;
  past?: (point: KpiPoint) => number | null; // the same number at an earlier moment
  format: (value: number) => string;
  lists: (kpis: Kpis) => readonly { title: string; counted: CountWithExamples; fine: string }[];
}

export const HEADLINES: readonly Headline[] = [
  {
    id: "coverage",
    name: "Lineage coverage",
    meaning: "The share of datasets and jobs that are connected by at least one edge.",
    value: (kpis) => formatPercent(kpis.lineage_coverage.percent),
    detail: (kpis) => `${formatCount(kpis.lineage_coverage.count)} of ${plural(kpis.lineage_coverage.total, "dataset and job", "datasets and jobs")}`,
    past: (point) => point.lineage_coverage,
    format: formatPercent,
    lists: (kpis) => [
      { title: "Without an edge", counted: kpis.without_edges, fine: "Every dataset and job is connected." },
      { title: "Jobs without inputs", counted: kpis.jobs_without_inputs, fine: "Every job has known inputs." },
      { title: "Read by a job without an output", counted: kpis.unknown_downstreams, fine: "Every reader has a known output." },
      { title: "May be one dataset under two names", counted: kpis.possible_cuts, fine: "No two names may be one dataset." },
    ],
  },
  {
    id: "certified",
    name: "Certified path integrity",
    meaning: "The share of certified datasets whose lineage is known up to every source.",
    value: (kpis) => formatPercent(kpis.certified_path_integrity.percent),
    past: (point) => point.certified_path_integrity ?? null,
    format: formatPercent,
    detail: (kpis) => `${kpis.certified_path_integrity.count} of ${plural(kpis.certified_path_integrity.total, "certified dataset")}`,
    lists: (kpis) => [
      { title: "Certified datasets", counted: kpis.certified, fine: "No dataset is certified." },
      { title: "With a gap upstream", counted: kpis.certified_with_gaps, fine: "The lineage of every certified dataset is known." },
    ],
  },
  {
    id: "blast",
    name: "Median blast radius",
    meaning: "The number of datasets and jobs downstream of a dataset. Half of all datasets have more.",
    value: (kpis) => formatCount(kpis.blast_radius.median),
    detail: (kpis) => `largest ${formatCount(kpis.blast_radius.largest)}`,
    past: (point) => point.blast_radius,
    format: formatCount,
    lists: (kpis) => [
      {
        title: "Largest blast radius",
        counted: { count: kpis.blast_radius.top.length, examples: kpis.blast_radius.top.map((dataset) => dataset.dataset) },
        fine: "No dataset has a downstream.",
      },
    ],
  },
  {
    id: "failures",
    name: "Failed runs",
    meaning: "The share of failed runs, of all runs that ended in this period.",
    value: (kpis) => formatPercent(kpis.failure_rate.percent),
    detail: (kpis) => `${kpis.failure_rate.count} of ${plural(kpis.failure_rate.total, "run")} in ${kpis.days} days`,
    past: (point) => point.failure_rate,
    format: formatPercent,
    lists: (kpis) => [
      { title: "Jobs whose last run failed", counted: kpis.failing_jobs, fine: "The last run of every job succeeded." },
      { title: "Late jobs", counted: kpis.late_jobs, fine: "No job with a regular schedule is late." },
    ],
  },
];

const MOST = 8;

export function examplesOf(counted: CountWithExamples): readonly string[] {
  return counted.examples.slice(0, MOST);
}
