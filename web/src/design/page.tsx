/** The frame of a page: heading, tabs, tables, and the states of a request. */

import { useId, useRef, type KeyboardEvent, type ReactNode } from "react";
import type { UseQueryResult } from "@tanstack/react-query";
import { Link, useSearchParams } from "wouter";
import { entityPath } from "../shell/routes";
import { formatTime, nameOf, parseId, splitAtIds } from "./format";
import { Icon, iconOf, type IconName } from "./icons";
import { Badge, Button, ErrorState, Skeleton } from "./parts";
import { splitEnd, splitName } from "./short_name";
import styles from "./page.module.css";

export function Page(props: { title: ReactNode; lead?: ReactNode; actions?: ReactNode; badges?: ReactNode; children: ReactNode; narrow?: boolean }) {
  return (
    <div className={`${styles.page} ${props.narrow ? styles.narrow : ""}`}>
      <header className={styles.head}>
        <div className={styles.headText}>
          <h1>{props.title}</h1>
          {props.lead ? <div className={styles.lead}>{props.lead}</div> : null}
          {props.badges ? <div className={styles.badges}>{props.badges}</div> : null}
        </div>
        {props.actions ? <div className={styles.actions}>{props.actions}</div> : null}
      </header>
      {props.children}
    </div>
  );
}

/** The content of a request: bars while it loads, the error, or what `children` makes of the answer. */
export function Loaded<T>(props: { query: UseQueryResult<T>; height?: number; children: (data: T) => ReactNode }) {
  const { query, height = 120 } = props;
  if (query.error) return <ErrorState error={query.error} retry={() => void query.refetch()} />;
  if (query.data === undefined) {
    return (
      <div className={styles.loading} data-loading aria-busy="true">
        <Skeleton height={height} />
      </div>
    );
  }
  return props.children(query.data);
}

export interface Tab<Id extends string> {
  id: Id;
  label: string;
  count?: number;
}

export function Tabs<Id extends string>(props: { tabs: readonly Tab<Id>[]; active: Id; choose: (id: Id) => void; label: string; children: ReactNode }) {
  const base = useId();
  const list = useRef<HTMLDivElement>(null);
  const move = (event: KeyboardEvent) => {
    const step = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
    if (step === 0) return;
    event.preventDefault();
    const at = props.tabs.findIndex((tab) => tab.id === props.active);
    const next = props.tabs[(at + step + props.tabs.length) % props.tabs.length];
    if (next === undefined) return;
    props.choose(next.id);
    list.current?.querySelector<HTMLElement>(`[data-tab="${next.id}"]`)?.focus();
  };
  return (
    <>
      <div className={styles.tabs} role="tablist" aria-label={props.label} ref={list} onKeyDown={move}>
        {props.tabs.map((tab) => (
          <button
            key={tab.id}
            type="button"
            role="tab"
            data-tab={tab.id}
            id={`${base}-${tab.id}`}
            aria-controls={`${base}-panel`}
            aria-selected={tab.id === props.active}
            tabIndex={tab.id === props.active ? 0 : -1}
            onClick={() => props.choose(tab.id)}
          >
            {tab.label}
            {tab.count === undefined ? null : <span className={styles.tabCount}>{tab.count}</span>}
          </button>
        ))}
      </div>
      <div role="tabpanel" id={`${base}-panel`} aria-labelledby={`${base}-${props.active}`} className={styles.tabPanel}>
        {props.children}
      </div>
    </>
  );
}

/** Tabs. The address contains the selected tab, so that a link opens it. */
export function useTab<Id extends string>(tabs: readonly Tab<Id>[]): [Id, (id: Id) => void] {
  const [address, setAddress] = useSearchParams();
  const asked = address.get("tab");
  const active = tabs.find((tab) => tab.id === asked) ?? tabs[0];
  if (active === undefined) throw new Error("There is no tab.");
  const choose = (id: Id) =>
    setAddress((old) => {
      const next = new URLSearchParams(old);
      next.set("tab", id);
      return next;
    }, { replace: true });
  return [active.id, choose];
}

/** A table that scrolls inside its panel. */
export function Table(props: { label: string; head: readonly ReactNode[]; children: ReactNode; numeric?: readonly number[] }) {
  return (
    <div className={styles.tableFrame} role="group" aria-label={props.label} tabIndex={0}>
      <table className={styles.table}>
        <thead>
          <tr>
            {props.head.map((title, at) => (
              <th key={at} scope="col" data-numeric={props.numeric?.includes(at) || undefined}>{title}</th>
            ))}
          </tr>
        </thead>
        <tbody>{props.children}</tbody>
      </table>
    </div>
  );
}

/** A dataset, job or column by its short name, with the whole id as title. */
export function EntityLink({ id, type, label }: { id: string; type?: string | undefined; label?: string | undefined }) {
  const { kind } = parseId(id);
  const icon: IconName = iconOf(type ?? kind);
  const name = label ?? nameOf(id);
  return (
    <Link href={entityPath(id)} className={styles.entity ?? ""} title={id} aria-label={name}>
      <Icon name={icon} size={14} />
      <Name text={name} />
    </Link>
  );
}

/**
 * A name that is cut at its front if it is too long, then in the middle of its last part: its end tells it from others.
 * Its pieces are read apart, so what contains it has a label.
 */
export function Name({ text }: { text: string }) {
  const { front, tail } = splitName(text);
  const [start, end] = splitEnd(tail);
  return (
    <span className={styles.entityName}>
      {front ? <span className={styles.entityFront}><bdi>{front}</bdi></span> : null}
      <span className={styles.entityStart}>{start}</span>
      {end ? <span className={styles.entityEnd}>{end}</span> : null}
    </span>
  );
}

/** A message of the server, with the entities that it names as links. */
export function LinkedText({ text, ids, names }: { text: string; ids: readonly string[]; names?: ReadonlyMap<string, string> | undefined }) {
  return splitAtIds(text, ids, names).map((part, at) => (part.id === undefined ? part.text : <EntityLink key={at} id={part.id} />));
}

export function Tags({ tags }: { tags: readonly string[] }) {
  return tags.map((tag) => <TagBadge key={tag} tag={tag} />);
}

const CERTIFIED = new Set(["certified", "canonical", "golden"]);

export function TagBadge({ tag }: { tag: string }) {
  const tone = CERTIFIED.has(tag.toLowerCase()) ? "certified" : tag.toLowerCase().includes("pii") ? "pii" : "neutral";
  return <Badge tone={tone} icon={tone === "certified" ? "shield" : tone === "pii" ? "lock" : "tag"}>{tag}</Badge>;
}

/** A tag that was set on another column and propagates to this one. */
export function ReachingTag({ tag, origin }: { tag: string; origin: string }) {
  return (
    <Link href={entityPath(origin)} className={styles.reachingTag ?? ""} title={`The tag ${tag} was set on ${nameOf(origin)} and propagates to here`}>
      <Icon name="arrow" size={11} /> {tag} <small>from {nameOf(origin)}</small>
    </Link>
  );
}

/** The page shows a moment in the past, and how to leave it. */
export function AsOf({ at, leave }: { at: string; leave: () => void }) {
  return <p className={styles.moment}><Icon name="clock" />As of {formatTime(at)}<Button kind="plain" onClick={leave}>Show now</Button></p>;
}

/** Says that what follows is not of the moment that the page shows. */
export function PresentOnly({ at }: { at: string }) {
  return <p className={styles.moment} role="note"><Icon name="warning" />This tab shows the present, not {formatTime(at)}.</p>;
}

export function Owners({ owners }: { owners: readonly string[] }) {
  return owners.length ? <span className={styles.owners}>{owners.join(", ")}</span> : <span className={styles.faint}>no owner</span>;
}

/** The blind spots of an answer, collapsed: their number, and what to do about each. */
export function BlindSpots({ spots, open }: { spots: readonly { kind: string; entity: string; message: string }[]; open?: boolean }) {
  if (spots.length === 0) return null;
  return (
    <details className={styles.spots} open={open}>
      <summary>
        <Icon name="blind" /> {spots.length === 1 ? "1 blind spot" : `${spots.length} blind spots`}
      </summary>
      <ul>
        {spots.map((spot, at) => (
          <li key={at}>
            <Badge tone="warning">{spot.kind.replaceAll("_", " ")}</Badge> {spot.message}
          </li>
        ))}
      </ul>
    </details>
  );
}

/** A message of the server. Text between backticks is code, and the given ids and names are links. */
export function Prose({ text, ids = [], names }: { text: string; ids?: readonly string[]; names?: ReadonlyMap<string, string> }) {
  return text.split("`").map((part, at) => {
    const linked = <LinkedText key={at} text={part} ids={ids} names={names} />;
    return at % 2 === 1 ? <code key={at}>{linked}</code> : linked;
  });
}
