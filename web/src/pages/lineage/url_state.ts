/** The state of the Lineage page. All of it is in the URL, so that a link shows the same view. */

import { useMemo } from "react";
import { useSearchParams } from "wouter";
import type { ColumnPlace, Side } from "../../graph/graph_types";

export type Grouping = "none" | "namespace" | "schema";
export const HIDEABLE = ["jobs", "readers", "temporary"] as const;
export type Hideable = (typeof HIDEABLE)[number];

export interface Expansion {
  id: string;
  side: Side;
}

export interface LineageState {
  entity: string | undefined;
  selector: string | undefined;
  expanded: readonly Expansion[];
  openColumns: ReadonlySet<string>;
  locked: ColumnPlace | undefined;
  asOf: string | undefined;
  diff: string | undefined;
  grouping: Grouping;
  openGroups: ReadonlySet<string>;
  hidden: ReadonlySet<Hideable>;
  active: string | undefined;
  panel: "table" | "details" | "none";
}

const WIDE_SCREEN = 1600;

/** On a narrow screen the graph has the whole width until the panel is opened. */
function defaultPanel(): LineageState["panel"] {
  return window.innerWidth >= WIDE_SCREEN ? "table" : "none";
}

const SIDES: Record<string, Side> = { u: "upstream", d: "downstream", b: "both" };

export function parseState(query: URLSearchParams): LineageState {
  const text = (name: string) => query.get(name) || undefined;
  const dataset = text("locked");
  const column = text("column");
  const grouping = query.get("group");
  const panel = query.get("panel");
  return {
    entity: text("entity"),
    selector: text("q"),
    expanded: query.getAll("x").flatMap((item) => {
      const side = SIDES[item[0] ?? ""];
      return side !== undefined && item[1] === ":" && item.length > 2 ? [{ id: item.slice(2), side }] : [];
    }),
    openColumns: new Set(query.getAll("columns")),
    locked: dataset !== undefined && column !== undefined ? { dataset, column } : undefined,
    asOf: text("as_of"),
    diff: text("diff"),
    grouping: grouping === "namespace" || grouping === "schema" ? grouping : "none",
    openGroups: new Set(query.getAll("open")),
    hidden: new Set(HIDEABLE.filter((what) => query.get("hide")?.split(",").includes(what))),
    active: text("at"),
    panel: panel === "table" || panel === "details" || panel === "none" ? panel : defaultPanel(),
  };
}

export function renderState(state: LineageState): URLSearchParams {
  const query = new URLSearchParams();
  const set = (name: string, value: string | undefined) => value !== undefined && value !== "" && query.set(name, value);
  set("entity", state.entity);
  set("q", state.selector);
  for (const { id, side } of state.expanded) query.append("x", `${side[0]}:${id}`);
  for (const id of state.openColumns) query.append("columns", id);
  set("locked", state.locked?.dataset);
  set("column", state.locked?.column);
  set("as_of", state.asOf);
  set("diff", state.diff);
  if (state.grouping !== "none") query.set("group", state.grouping);
  for (const group of state.openGroups) query.append("open", group);
  set("hide", HIDEABLE.filter((what) => state.hidden.has(what)).join(","));
  set("at", state.active);
  if (state.panel !== defaultPanel()) query.set("panel", state.panel);
  return query;
}

/** A new root or selector resets the state, except the settings of the whole view. */
export function withRoot(state: LineageState, root: { entity?: string; selector?: string }): LineageState {
  return {
    ...state,
    entity: root.entity,
    selector: root.selector,
    expanded: [],
    openColumns: new Set(),
    openGroups: new Set(),
    locked: undefined,
    active: undefined,
    asOf: undefined,
    diff: undefined,
  };
}

export function toggled<T>(items: ReadonlySet<T>, item: T): Set<T> {
  const next = new Set(items);
  if (!next.delete(item)) next.add(item);
  return next;
}

interface Named {
  id: string;
  label: string;
  name: string;
  aliases: readonly string[];
}

/** The state with ids in place of the short names that a person wrote into the address. */
export function withIds(state: LineageState, nodes: readonly Named[]): LineageState {
  const ids = new Set(nodes.map((node) => node.id));
  const idOf = (written: string) => {
    if (ids.has(written)) return written;
    const meant = nodes.filter((node) => node.name === written || node.label === written || node.aliases.includes(written));
    return meant.length === 1 ? meant[0]!.id : written;
  };
  const open = [...state.openColumns];
  const openColumns = open.every((id) => ids.has(id)) ? state.openColumns : new Set(open.map(idOf));
  const locked = state.locked && { ...state.locked, dataset: idOf(state.locked.dataset) };
  const active = state.active === undefined ? undefined : idOf(state.active);
  return { ...state, openColumns, locked: locked?.dataset === state.locked?.dataset ? state.locked : locked, active };
}

/** Small steps replace the entry of the browser's history; the others can be undone with Back. */
export type SetState = (change: (state: LineageState) => LineageState, step?: "small" | "large") => void;

export function useLineageState(): [LineageState, SetState] {
  const [query, setQuery] = useSearchParams();
  const state = useMemo(() => parseState(query), [query]);
  const setState: SetState = (change, step = "large") =>
    setQuery((before) => renderState(change(parseState(before))), { replace: step === "small" });
  return [state, setState];
}
