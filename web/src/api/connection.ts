/** Whether the server can be reached. Every request reports it; the frame shows it. */

import { useSyncExternalStore } from "react";

let reachable = true;
const listeners = new Set<() => void>();

export function reportReachable(now: boolean): void {
  if (now === reachable) return;
  reachable = now;
  for (const listener of listeners) listener();
}

export function isReachable(): boolean {
  return reachable;
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export function useReachable(): boolean {
  return useSyncExternalStore(subscribe, isReachable);
}
