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
  { path: "/trust", title: "Trust", icon: "shield", component: lazy(() => import("../pages/trust/trust")) },
  { path: "/ask", title: "Ask", icon: "ask", component: lazy(() => import("../pages/ask/ask")) },
  { path: "/settings", title: "Settings", icon: "settings", component: lazy(() => import("../pages/settings/settings")) },
  { path: "/entity", title: "Entity", component: lazy(() => import("../pages/entity/entity")) },
  { path: "/run", title: "Run", component: lazy(() => import("../pages/run/run")) },
];

/** The address of the page of a dataset, a job or a column. */
export function entityPath(id: string): string {
  return `/entity?id=${encodeURIComponent(id)}`;
}

export function lineagePath(id: string): string {
  return `/lineage?entity=${encodeURIComponent(id)}`;
}

export function changePath(id: string): string {
  return `/change?entity=${encodeURIComponent(id)}`;
}

export function runPath(id: string): string {
  return `/run?id=${encodeURIComponent(id)}`;
}
