/** The entities that were opened last in this browser. */

import { useSyncExternalStore } from "react";

export interface RecentEntity {
  id: string;
  kind: string;
  name: string;
  type?: string;
  namespace: string;
}

const KEY = "downriver.recent";
const MOST = 12;
const NONE: readonly RecentEntity[] = [];
const listeners = new Set<() => void>();
let parsed: { text: string | null; entities: readonly RecentEntity[] } = { text: null, entities: NONE };

export function recentEntities(): readonly RecentEntity[] {
  const text = localStorage.getItem(KEY);
  if (text !== parsed.text) parsed = { text, entities: parseRecent(text) };
  return parsed.entities;
}

/** What was stored, if it is what this version stores. */
export function parseRecent(text: string | null): readonly RecentEntity[] {
  if (text === null) return NONE;
  try {
    const value: unknown = JSON.parse(text);
    return Array.isArray(value) ? value.filter(isRecent).slice(0, MOST) : NONE;
  } catch {
    return NONE;
  }
}

function isRecent(value: unknown): value is RecentEntity {
  if (typeof value !== "object" || value === null) return false;
  const { id, kind, name, namespace } = value as Record<string, unknown>;
  return [id, kind, name, namespace].every((part) => typeof part === "string");
}

export function rememberEntity(entity: RecentEntity): void {
  const others = recentEntities().filter((known) => known.id !== entity.id);
  localStorage.setItem(KEY, JSON.stringify([entity, ...others].slice(0, MOST)));
  for (const listener of listeners) listener();
}

export function useRecent(): readonly RecentEntity[] {
  return useSyncExternalStore((listener) => {
    listeners.add(listener);
    return () => listeners.delete(listener);
  }, recentEntities);
}
