/** Every page with its path, its place in the navigation, and the code that is loaded for it. */

import { lazy, type ComponentType, type LazyExoticComponent } from "react";
import { parseId } from "../design/format";
import type { IconName } from "../design/icons";

export interface Page {
  path: string;
  title: string;
  icon?: IconName; // shown in the navigation when set
  component: LazyExoticComponent<ComponentType>;
}

type Load = () => Promise<{ default: ComponentType }>;

const loads: Load[] = [];

function page(load: Load): Page["component"] {
  loads.push(load);
  return lazy(load);
}

/** Loads the code of all pages, so that they open at once, even if the server is unreachable. */
export function preloadPages(): void {
  // A page whose code could not be loaded now is loaded when it is opened.
  for (const load of loads) load().catch(() => undefined);
}

export const PAGES: readonly Page[] = [
  { path: "/", title: "Home", icon: "home", component: page(() => import("../pages/home/home")) },
  { path: "/lineage", title: "Lineage", icon: "graph", component: page(() => import("../pages/lineage/lineage")) },
  { path: "/change", title: "What if", icon: "change", component: page(() => import("../pages/change/change")) },
  { path: "/verdicts", title: "Verdicts", icon: "stamp", component: page(() => import("../pages/verdicts/verdicts")) },
  { path: "/trust", title: "Trust", icon: "shield", component: page(() => import("../pages/trust/trust")) },
  { path: "/ask", title: "Ask", icon: "ask", component: page(() => import("../pages/ask/ask")) },
  { path: "/settings", title: "Settings", icon: "settings", component: page(() => import("../pages/settings/settings")) },
  { path: "/entity", title: "Entity", component: page(() => import("../pages/entity/entity")) },
  { path: "/run", title: "Run", component: page(() => import("../pages/run/run")) },
];

/** Shown at every other address. */
export const NotFound = page(() => import("../pages/not_found/not_found"));

/** The address of the page of a dataset, a job or a column. */
export function entityPath(id: string, asOf?: string): string {
  const { kind, namespace, name, column } = parseId(id);
  if (kind === "column" && column !== undefined) return columnPath(`dataset:${namespace}:${name}`, column, asOf);
  return addressOf("/entity", { id, as_of: asOf });
}

export function columnPath(dataset: string, column: string, asOf?: string): string {
  return addressOf("/entity", { id: dataset, column, as_of: asOf });
}

/** The lineage around an entity; with a column, its path is locked. */
export function lineagePath(id: string, column?: string, asOf?: string): string {
  return addressOf("/lineage", { entity: id, columns: column && id, locked: column && id, column, as_of: asOf });
}

/** A proposal for an entity or its column, looked at from a moment: now by default. */
export function changePath(id: string, column?: string, asOf?: string): string {
  return addressOf("/change", { entity: id, column, as_of: asOf });
}

export function runPath(id: string): string {
  return addressOf("/run", { id });
}

function addressOf(path: string, parameters: Record<string, string | undefined>): string {
  const given = Object.entries(parameters).filter((entry): entry is [string, string] => Boolean(entry[1]));
  return `${path}?${new URLSearchParams(given).toString()}`;
}
