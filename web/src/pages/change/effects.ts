/** The effects of a preview in the order in which a reader needs them. */

import type { Effect, Impact } from "../../api/types";
import type { Severity } from "../../graph/graph_types";

export type GroupId = "breaking" | "may_fail" | "changes" | "deprecated" | "not_rebuilt" | "untouched";

export interface EffectGroup {
  id: GroupId;
  title: string;
  meaning: string;
  severity: Severity;
  effects: Effect[];
}

const GROUPS: readonly Omit<EffectGroup, "effects">[] = [
  { id: "breaking", title: "Breaking", meaning: "fails", severity: "breaking" },
  { id: "may_fail", title: "May break", meaning: "reads the dataset; the columns that it uses are unknown", severity: "warning" },
  { id: "changes", title: "Changed", meaning: "runs, with other values, rows, columns or types", severity: "changed" },
  { id: "deprecated", title: "Uses a deprecated dataset or column", meaning: "works until it is removed", severity: "warning" },
  { id: "not_rebuilt", title: "Not rebuilt", meaning: "keeps old data, because a job upstream fails", severity: "warning" },
  { id: "untouched", title: "Safe", meaning: "reads the dataset and is not affected", severity: "safe" },
];

export function groupOf(effect: Effect): GroupId {
  if (effect.severity === "breaking") return "breaking";
  switch (effect.outcome) {
    case "fails":
      return "breaking";
    case "may_fail":
    case "changes":
    case "deprecated":
    case "not_rebuilt":
    case "untouched":
      return effect.outcome;
  }
}

/** The groups that have effects, the worst first, each with its nearest effects first. */
export function groupEffects(effects: readonly Effect[]): EffectGroup[] {
  return GROUPS.map((group) => ({
    ...group,
    effects: effects
      .filter((effect) => groupOf(effect) === group.id)
      .sort((one, other) => (one.hops ?? 1) - (other.hops ?? 1) || one.name.localeCompare(other.name)),
  })).filter((group) => group.effects.length > 0);
}

const WORSE: readonly Severity[] = ["safe", "changed", "warning", "breaking"];

/** The severity of each job and of the datasets that it writes; of several, the worst. */
export function severityById(impact: Impact): Record<string, Severity> {
  const found: Record<string, Severity> = {};
  for (const group of groupEffects(impact.effects)) {
    for (const effect of group.effects) {
      for (const id of [effect.consumer, ...(effect.writes ?? [])]) {
        const known = found[id];
        if (known === undefined || WORSE.indexOf(group.severity) > WORSE.indexOf(known)) found[id] = group.severity;
      }
    }
  }
  for (const target of impact.targets) found[target] = "changed";
  return found;
}

/** `models/a.sql:12` of a reference; empty without a file. */
export function placeOf(reference: { path?: string; line?: number }): string {
  if (!reference.path) return "";
  return reference.line ? `${reference.path}:${reference.line}` : reference.path;
}
