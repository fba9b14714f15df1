/** The text of the search box: words, and filters such as `tag:pii` or `type:table`. */

import type { SearchHit } from "../api/types";
import { changePath, columnPath, entityPath, lineagePath } from "../shell/routes";

export const FILTERS = ["kind", "type", "namespace", "tag", "owner"] as const;
export type Filter = (typeof FILTERS)[number];

const KINDS = new Set(["dataset", "job", "column", "tag", "owner"]);

export interface SearchQuery {
  text: string;
  filters: Partial<Record<Filter, string>>;
}

const FILTER = /(?:^|\s)(kind|type|namespace|tag|owner):(?:"([^"]*)"|(\S+))/g;

export function parseQuery(typed: string): SearchQuery {
  const filters: Partial<Record<Filter, string>> = {};
  const text = typed.replace(FILTER, (whole, name: Filter, quoted?: string, word?: string) => {
    const value = quoted ?? word ?? "";
    if (name === "kind" && !KINDS.has(value)) return whole; // not typed to its end
    filters[name] = value;
    return " ";
  });
  return { text: text.trim().replace(/\s+/g, " "), filters };
}

export function renderQuery({ text, filters }: SearchQuery): string {
  const parts = FILTERS.filter((name) => filters[name]).map((name) => {
    const value = filters[name] ?? "";
    return /\s/.test(value) ? `${name}:"${value}"` : `${name}:${value}`;
  });
  return [...parts, text].filter(Boolean).join(" ");
}

/** Set a filter, or remove it when it is set to this value already. */
export function toggleFilter(typed: string, name: Filter, value: string): string {
  const query = parseQuery(typed);
  const filters = { ...query.filters };
  if (filters[name] === value) delete filters[name];
  else filters[name] = value;
  return renderQuery({ ...query, filters });
}

export interface Piece {
  text: string;
  matched: boolean;
}

/** Divide a name into what the words of a search match and what they do not. */
export function markMatches(name: string, words: string): Piece[] {
  const lower = name.toLowerCase();
  const matched = new Array<boolean>(name.length).fill(false);
  for (const word of words.toLowerCase().split(/\s+/).filter(Boolean)) {
    for (let at = lower.indexOf(word); at >= 0; at = lower.indexOf(word, at + 1)) matched.fill(true, at, at + word.length);
  }
  const pieces: Piece[] = [];
  for (let at = 0; at < name.length; at += 1) {
    const last = pieces.at(-1);
    if (last && last.matched === matched[at]) last.text += name[at];
    else pieces.push({ text: name[at] ?? "", matched: matched[at] ?? false });
  }
  return pieces;
}

export type Purpose = "open" | "lineage" | "change";

/** Where a hit leads; null for a tag or owner, which become a filter. */
export function pathOf(hit: SearchHit, purpose: Purpose, asOf?: string): string | null {
  if (hit.kind === "tag" || hit.kind === "owner") return null;
  const column = hit.kind === "column" && hit.dataset ? { dataset: hit.dataset, column: hit.name } : null;
  if (purpose === "change") return hit.kind === "job" ? null : changePath(column?.dataset ?? hit.id, column?.column, asOf);
  if (purpose === "lineage") return lineagePath(column?.dataset ?? hit.id, column?.column, asOf);
  return column ? columnPath(column.dataset, column.column, asOf) : entityPath(hit.id, asOf);
}
