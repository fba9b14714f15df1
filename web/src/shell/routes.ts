/** Every page with its path, its place in the navigation, and the code that is loaded for it. */

import { lazy, type ComponentType, type LazyExoticComponent } from "react";
import type { IconName } from "../design/icons";

export interface Page {
  path: string;
  title: string;
  icon?: IconName; // shown in the navigation when set
  component: LazyExoticComponent<ComponentType>;
}

export const PAGES: readonly Page[] = [
  { path: "/", title: "Home", icon: "home", component: lazy(() => import("../pages/home/home")) },
  { path: "/lineage", title: "Lineage", icon: "graph", component: lazy(() => import("../pages/lineage/lineage")) },
  { path: "/change", title: "What if", icon: "change", component: lazy(() => import("../pages/change/change")) },
  { path: "/verdicts", title: "Verdicts", icon: "stamp", component: lazy(() => import("../pages/verdicts/verdicts")) },
  { path: "/trust", title: "Trust", icon: "shield", component: lazy(() => import("../pages/trust/trust")) },
  { path: "/ask", title: "Ask", icon: "ask", component: lazy(() => import("../pages/ask/ask")) },
  { path: "/settings", title: "Settings", icon: "settings", component: lazy(() => import("../pages/settings/settings")) },
  { path: "/entity", title: "Entity", component: lazy(() => import("../pages/entity/entity")) },
  { path: "/run", title: "Run", component: lazy(() => import("../pages/run/run")) },
];

/** Shown at every other address. */
export const NotFound = lazy(() => import("../pages/not_found/not_found"));

/** The address of the page of a dataset or a job. */
export function entityPath(id: string): string {
  return addressOf("/entity", { id });
}

export function columnPath(dataset: string, column: string): string {
  return addressOf("/entity", { id: dataset, column });
}

/** The lineage around an entity; with a column, its path is locked. */
export function lineagePath(id: string, column?: string): string {
  return addressOf("/lineage", { entity: id, columns: column && id, locked: column && id, column });
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
