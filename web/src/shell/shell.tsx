import { Suspense, useCallback, useEffect, useRef, useState } from "react";
import { Link, Route, Switch, useLocation } from "wouter";
import { useIsFetching } from "@tanstack/react-query";
import { ApiError } from "../api/client";
import { useReachable } from "../api/connection";
import { useGet, useNews } from "../api/queries";
import type { Me } from "../api/types";
import { Icon } from "../design/icons";
import { Button, Skeleton } from "../design/parts";
import { chooseTheme, useShownTheme } from "../design/theme";
import { SearchPalette } from "../search/palette";
import { ErrorBoundary } from "./error_boundary";
import { KeyPrompt } from "./key_prompt";
import { OpenSearch } from "./open_search";
import { NotFound, PAGES, preloadPages } from "./routes";
import styles from "./shell.module.css";

const PRELOAD_AFTER_MS = 1_500; // the requested page is loaded first
const COMMAND_KEY = /Mac|iPhone|iPad/.test(navigator.platform) ? "⌘K" : "Ctrl K";

/** The frame around every page: brand, navigation, search, and the prompt for a key. */
export function Shell() {
  const me = useGet<Me>("/v1/me");
  if (me.error instanceof ApiError && me.error.status === 401) return <KeyPrompt />;
  return <Frame />;
}

function Frame() {
  const [searching, setSearching] = useState(false);
  const [location] = useLocation(); // Home has a search of its own
  useNews();
  const openSearch = useCallback(() => setSearching(true), []);
  useShortcut(openSearch);
  useFocusOfPage(location);
  useEffect(() => {
    const timer = setTimeout(preloadPages, PRELOAD_AFTER_MS);
    return () => clearTimeout(timer);
  }, []);
  return (
    <OpenSearch value={openSearch}>
      <div className={styles.shell}>
        <a className={styles.skip} href="#main">Skip to the content</a>
        <header className={styles.top}>
          <Link href="/" className={styles.brand ?? ""}>
            <img src="/favicon.svg" width={26} height={26} alt="" />
            <span>Downriver</span>
          </Link>
          <div className={styles.bar}>
            {location === "/" ? <span /> : (
              <button type="button" className={styles.searchButton} onClick={() => setSearching(true)}>
                <Icon name="search" />
                <span>Search datasets, columns, jobs, tags, owners</span>
                <kbd>{COMMAND_KEY}</kbd>
              </button>
            )}
            <ThemeButton />
          </div>
        </header>
        <nav className={styles.nav} aria-label="Pages">
          {PAGES.filter((page) => page.icon).map((page) => (
            <NavigationLink key={page.path} {...page} />
          ))}
        </nav>
        <Connection />
        <main id="main" className={styles.main} tabIndex={-1}>
          <Suspense fallback={<Skeleton height={400} />}>
            <Switch>
              {PAGES.map((page) => (
                <Route key={page.path} path={page.path}>
                  <ErrorBoundary>
                    <Titled title={page.title}><page.component /></Titled>
                  </ErrorBoundary>
                </Route>
              ))}
              <Route>
                <Titled title="Not found"><NotFound /></Titled>
              </Route>
            </Switch>
          </Suspense>
        </main>
        {searching ? <SearchPalette close={() => setSearching(false)} /> : null}
      </div>
    </OpenSearch>
  );
}

const SLOW_MS = 500;

/** Shows that the server cannot be reached, or that an answer is slow. */
function Connection() {
  const reachable = useReachable();
  const fetching = useIsFetching() > 0;
  const [slow, setSlow] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setSlow(fetching), fetching ? SLOW_MS : 0);
    return () => clearTimeout(timer);
  }, [fetching]);
  return (
    <div className={styles.connection} role="status">
      {reachable ? null : <p className={styles.offline}><Icon name="warning" size={14} />The server cannot be reached. What you see may be old. Trying again every few seconds.</p>}
      {reachable && slow ? <div className={styles.progress}><span className="visually-hidden">Loading</span></div> : null}
    </div>
  );
}

function NavigationLink({ path, title, icon }: (typeof PAGES)[number]) {
  const [location] = useLocation();
  return (
    <Link href={path} className={styles.link ?? ""} title={title} aria-current={location === path ? "page" : undefined}>
      {icon ? <Icon name={icon} /> : null}
      <span>{title}</span>
    </Link>
  );
}

function Titled({ title, children }: { title: string; children: React.ReactNode }) {
  useEffect(() => {
    document.title = `${title} · Downriver`;
  }, [title]);
  return children;
}

function ThemeButton() {
  const shown = useShownTheme();
  const other = shown === "dark" ? "light" : "dark";
  return (
    <Button kind="plain" icon={shown === "dark" ? "sun" : "moon"} aria-label={`Use the ${other} theme`} onClick={() => chooseTheme(other)} />
  );
}

/** After a link to another page, Tab continues in that page. A field with the focus keeps it. */
function useFocusOfPage(location: string): void {
  const shown = useRef(location);
  useEffect(() => {
    if (shown.current === location) return;
    shown.current = location;
    if (document.activeElement === document.body) document.getElementById("main")?.focus({ preventScroll: true });
  }, [location]);
}

/** `/` and ⌘K (Ctrl+K) open the search, unless the person is typing into a field. */
function useShortcut(open: () => void): void {
  useEffect(() => {
    const listen = (event: KeyboardEvent) => {
      const typing = event.target instanceof HTMLElement && event.target.matches("input, textarea, select, [contenteditable]");
      const command = (event.metaKey || event.ctrlKey) && event.key.toLowerCase() === "k";
      if (command || (event.key === "/" && !typing && !event.metaKey && !event.ctrlKey && !event.altKey)) {
        event.preventDefault();
        open();
      }
    };
    window.addEventListener("keydown", listen);
    return () => window.removeEventListener("keydown", listen);
  }, [open]);
}
