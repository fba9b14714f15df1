import { useEffect, useId, useMemo, useRef, useState, type KeyboardEvent } from "react";
import { useLocation, useSearch } from "wouter";
import type { Facet, SearchHit } from "../api/types";
import { asWords, formatCount, formatTime } from "../design/format";
import { Icon, iconOf } from "../design/icons";
import { ErrorState } from "../design/parts";
import { rememberEntity, useRecent } from "../shell/recent";
import { markMatches, parseQuery, pathOf, toggleFilter, type Filter, type Purpose } from "./query";
import { useSearchHits } from "./use_search";
import styles from "./palette.module.css";

interface PaletteProps {
  close: () => void;
  /** Take a dataset or column in place of opening its page. */
  pick?: (hit: SearchHit) => void;
}

/** One box over datasets, columns, jobs, tags and owners, in front of the page. */
export function SearchPalette({ close, pick }: PaletteProps) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => dialog.current?.showModal(), []);
  return (
    <dialog
      ref={dialog}
      className={styles.palette}
      aria-label="Search"
      onClose={close}
      onClick={(event) => {
        if (event.target === dialog.current) close();
      }}
    >
      <SearchBox close={close} pick={pick} />
    </dialog>
  );
}

function SearchBox({ close, pick }: PaletteProps) {
  const [typed, setTyped] = useState("");
  const [active, setActive] = useState(0);
  const [, navigate] = useLocation();
  const asOf = new URLSearchParams(useSearch()).get("as_of") ?? undefined; // the moment that the page shows
  const { asked, answer } = useSearchHits(typed, asOf);
  const recent = useRecentHits(pick !== undefined);
  const base = useId();
  const input = useRef<HTMLInputElement>(null);
  const list = useRef<HTMLUListElement>(null);
  const found = answer.data?.hits ?? [];
  const hits = typed.trim() === "" ? recent : pick ? found.filter((hit) => hit.kind !== "job") : found;
  const chosen = hits[Math.min(active, hits.length - 1)];
  const words = parseQuery(typed).text;

  useEffect(() => {
    void list.current?.querySelector("[aria-selected=true]")?.scrollIntoView({ block: "nearest" });
  }, [active]);

  const change = (text: string) => {
    setTyped(text);
    setActive(0);
    input.current?.focus();
  };
  const go = (hit: SearchHit, purpose: Purpose) => {
    if (hit.kind === "tag" || hit.kind === "owner") return change(toggleFilter("", hit.kind, hit.name));
    if (pick !== undefined) {
      if (hit.kind === "job") return;
      pick(hit);
      return close();
    }
    const path = pathOf(hit, purpose, asOf);
    if (path === null) return;
    if (hit.kind !== "column") rememberEntity({ id: hit.id, kind: hit.kind, name: hit.label, namespace: hit.namespace, type: hit.type ?? hit.kind });
    navigate(path);
    close();
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const last = hits.length - 1;
    const steps: Record<string, number> = { ArrowDown: active >= last ? 0 : active + 1, ArrowUp: active <= 0 ? last : active - 1, PageDown: Math.min(active + 8, last), PageUp: Math.max(active - 8, 0) };
    const step = steps[event.key];
    if (step !== undefined && hits.length > 0) setActive(step);
    else if (event.key === "Enter" && chosen) go(chosen, event.altKey ? "lineage" : "open");
    else if (event.key === "Tab" && !event.shiftKey && chosen && pathOf(chosen, "change")) go(chosen, "change");
    else return;
    event.preventDefault();
  };

  return (
    <>
      <div className={styles.box}>
        <Icon name="search" size={18} />
        <input
          ref={input}
          role="combobox"
          aria-label="Search datasets, columns, jobs, tags, owners"
          aria-expanded={hits.length > 0}
          aria-controls={`${base}-list`}
          aria-activedescendant={chosen ? `${base}-${hits.indexOf(chosen)}` : undefined}
          aria-autocomplete="list"
          autoFocus
          spellCheck={false}
          placeholder="Search datasets, columns, jobs, tags, owners"
          value={typed}
          onChange={(event) => change(event.target.value)}
          onKeyDown={onKeyDown}
        />
        {asOf ? <span className={styles.moment}><Icon name="clock" size={13} /> as of {formatTime(asOf)}</span> : null}
        <kbd>Esc</kbd>
      </div>
      {asked && answer.data ? <Facets typed={typed} change={change} facets={answer.data.facets ?? {}} /> : null}
      {answer.error && asked ? <ErrorState error={answer.error} /> : null}
      {typed.trim() === "" ? <p className={styles.group}>{recent.length ? "Recent" : "Type a name, or a filter: tag:pii, owner:finance, type:table"}</p> : null}
      <ul className={styles.list} role="listbox" aria-label={typed ? "Results" : "Recent"} id={`${base}-list`} ref={list}>
        {hits.map((hit, at) => (
          <li
            key={`${hit.kind} ${hit.id} ${hit.name}`}
            id={`${base}-${at}`}
            role="option"
            aria-selected={hit === chosen}
            className={styles.option}
            onMouseMove={() => setActive(at)}
            onClick={(event) => go(hit, event.altKey ? "lineage" : "open")}
          >
            <Icon name={iconOf(hit.kind === "dataset" ? (hit.type ?? "table") : hit.kind)} />
            <span className={styles.name} title={hit.id}>
              {markMatches(hit.label, words).map((piece, part) => (piece.matched ? <mark key={part}>{piece.text}</mark> : piece.text))}
            </span>
            <span className={styles.where} title={hit.namespace}>{placeOf(hit)}</span>
            <span className={styles.kind}>{(hit.kind === "dataset" ? (hit.type ?? hit.kind) : hit.kind).replaceAll("_", " ")}</span>
          </li>
        ))}
      </ul>
      {asked && answer.data && hits.length === 0 && typed.trim() !== "" ? (
        <p className={styles.nothing} role="status">Nothing contains “{typed.trim()}”. Names are matched by their words, in any order.</p>
      ) : null}
      <footer className={styles.hints}>
        <span><kbd>↑</kbd> <kbd>↓</kbd> choose</span>
        <span><kbd>↵</kbd> {pick ? "choose" : "open"}</span>
        {pick ? null : (
          <>
            <span><kbd>Alt</kbd> <kbd>↵</kbd> lineage</span>
            <span><kbd>Tab</kbd> what if</span>
          </>
        )}
        <span className={styles.total} role="status">
          {asked && answer.data && typed.trim() ? countOf(hits, answer.data.total) : ""}
        </span>
      </footer>
    </>
  );
}

/** `total` counts datasets and jobs; columns, tags and owners are listed beside them. */
function countOf(hits: readonly SearchHit[], total: number): string {
  const entities = hits.filter((hit) => hit.kind === "dataset" || hit.kind === "job").length;
  const more = total > entities ? `, ${formatCount(total - entities)} more match` : "";
  return `${formatCount(hits.length)} shown${more}`;
}

const SHOWN_VALUES = 6;

function Facets({ typed, change, facets }: { typed: string; change: (text: string) => void; facets: Partial<Record<Filter, Facet>> }) {
  const { filters } = parseQuery(typed);
  const shown: Filter[] = ["kind", "type", "namespace", "tag", "owner"];
  return (
    <div className={styles.facets} role="group" aria-label="Filters">
      {shown.flatMap((name) => {
        const values = Object.entries(facets[name] ?? {}).sort((one, other) => other[1] - one[1]);
        const chosen = filters[name];
        if (values.length < 2 && chosen === undefined) return [];
        const visible = chosen === undefined ? values.slice(0, SHOWN_VALUES) : values.filter(([value]) => value === chosen);
        if (chosen !== undefined && visible.length === 0) visible.push([chosen, 0]);
        return visible.map(([value, count]) => (
          <button key={`${name} ${value}`} type="button" tabIndex={-1} aria-pressed={chosen === value} onClick={() => change(toggleFilter(typed, name, value))} title={`${asWords(name)}: ${value}`}>
            {name === "kind" ? asWords(value) : value} <span>{formatCount(count)}</span>
          </button>
        ));
      })}
    </div>
  );
}

function placeOf(hit: SearchHit): string {
  if (hit.kind === "column" && hit.dataset) return hit.dataset.replace(/^dataset:/, "");
  return hit.namespace;
}

function useRecentHits(datasetsOnly: boolean): SearchHit[] {
  const recent = useRecent();
  return useMemo(
    () => recent.filter((entity) => !datasetsOnly || entity.kind !== "job").map((entity) => ({ ...entity, kind: entity.kind === "job" ? "job" : "dataset", label: entity.name, tags: [], match: [] })),
    [recent, datasetsOnly],
  );
}
