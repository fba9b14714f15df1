import { useSyncExternalStore } from "react";

export type ThemeChoice = "light" | "dark" | "system";

const STORAGE_KEY = "downriver.theme";
const darkQuery = window.matchMedia("(prefers-color-scheme: dark)");
const listeners = new Set<() => void>();

export function themeChoice(): ThemeChoice {
  const stored = localStorage.getItem(STORAGE_KEY);
  return stored === "light" || stored === "dark" ? stored : "system";
}

export function shownTheme(): "light" | "dark" {
  const choice = themeChoice();
  return choice === "system" ? (darkQuery.matches ? "dark" : "light") : choice;
}

export function chooseTheme(choice: ThemeChoice): void {
  localStorage.setItem(STORAGE_KEY, choice);
  applyTheme();
}

/** Set the theme of the document, and follow the system's from now on. */
export function startTheme(): void {
  darkQuery.addEventListener("change", applyTheme);
  applyTheme();
}

function applyTheme(): void {
  document.documentElement.dataset.theme = shownTheme();
  for (const listener of listeners) listener();
}

/** The theme that is shown, for what draws with colours itself (a canvas). */
export function useShownTheme(): "light" | "dark" {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    shownTheme,
  );
}
