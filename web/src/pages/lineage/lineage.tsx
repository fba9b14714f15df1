import { useEffect, useMemo, useRef, useState, type RefObject } from "react";
import { Link, useLocation } from "wouter";
import { ApiError } from "../../api/client";
import { Icon } from "../../design/icons";
import { formatCount, plural } from "../../design/format";
import { Badge, Button, Empty, ErrorState, Skeleton, withoutNear } from "../../design/parts";
import type { PickedEdge } from "../../graph/edge_overlay";
import type { ColumnEdges, ColumnPlace } from "../../graph/graph_types";
import { LineageCanvas, type Drawn } from "../../graph/lineage_canvas";
import { changePath, entityPath, lineagePath } from "../../shell/routes";
import { useColumnPath, useGraph } from "./graph_data";
import { collapse, countShown, groupName, hide, type Merged, type Shown } from "./graph_view";
import { ColumnChanges } from "./column_changes";
import { Legend } from "./legend";
import { useReachingTags, withReaching } from "./reaching_tags";
import { RootSearch } from "./root_search";
import { SidePanel } from "./side_panel";
import { TimeSlider } from "./time_slider";
import { Toolbar } from "./toolbar";
import { toggled, useLineageState, withIds, withRoot, type LineageState, type SetState } from "./url_state";
import styles from "./lineage.module.css";

export default function Lineage() {
  const [state, setState] = useLineageState();
  if (state.entity === undefined && state.selector === undefined) return <RootSearch />;
  return <LineageView state={state} setState={setState} />;
}

function LineageView({ state: written, setState: write }: { state: LineageState; setState: SetState }) {
  const answer = useGraph(written);
  const reaching = useReachingTags(written.asOf);
  const merged = useMemo(() => answer.merged && { ...answer.merged, nodes: withReaching(answer.merged.nodes, reaching) }, [answer.merged, reaching]);
  const state = useMemo(() => withIds(written, merged?.nodes ?? []), [written, merged]);
  const setState: SetState = (change, step) => write((before) => change(withIds(before, merged?.nodes ?? [])), step);
  const drawn = useRef<Drawn>(null);
  const [picked, setPicked] = useState<PickedEdge | null>(null);
  const [, navigate] = useLocation();
  const shown = useMemo<Shown>(() => {
    if (merged === null) return { nodes: [], edges: [] };
    return collapse(hide(merged, state.hidden, merged.root), state.grouping, state.openGroups, merged.root);
  }, [merged, state.hidden, state.grouping, state.openGroups]);
  const open = (id: string) => {
    const group = groupName(id);
    if (group === undefined) navigate(entityPath(id, state.asOf));
    else setState((before) => ({ ...before, openGroups: toggled(before.openGroups, group) }));
  };
  const pick = (edge: PickedEdge | null) => {
    setPicked(edge);
    if (edge) setState((before) => ({ ...before, panel: "details" }), "small");
  };
  return (
    <div className={styles.page}>
      <h1 className="visually-hidden">Lineage</h1>
      <Toolbar state={state} setState={setState} merged={merged} drawn={drawn} />
      <div className={styles.main} data-panel={state.panel === "none" || merged === null ? "closed" : "open"}>
        <div className={styles.graph}>
          {merged === null ? <BeforeGraph answer={answer} /> : (
            <Graph state={state} setState={setState} merged={merged} shown={shown} onOpen={open} onPick={pick} updating={answer.updating} drawn={drawn} />
          )}
          {merged !== null && answer.error ? <div className={styles.toast}><ErrorState error={answer.error} retry={answer.retry} /></div> : null}
        </div>
        {merged !== null && state.panel !== "none" ? (
          <SidePanel state={state} setState={setState} shown={shown} merged={merged} picked={picked} onPick={pick} onOpen={open} />
        ) : null}
      </div>
      {merged?.root ? <TimeSlider state={state} setState={setState} root={merged.root} /> : null}
    </div>
  );
}

function BeforeGraph({ answer }: { answer: ReturnType<typeof useGraph> }) {
  if (answer.error instanceof ApiError && answer.error.status === 404) return <NoMatch error={answer.error} />;
  if (answer.error) return <ErrorState error={answer.error} retry={answer.retry} />;
  return (
    <div className={styles.loading} data-loading aria-busy="true" aria-label="The graph is loading">
      {[0, 1, 2].map((column) => (
        <div key={column}>{Array.from({ length: column === 1 ? 1 : 3 }, (_, i) => <Skeleton key={i} height={60} width={240} />)}</div>
      ))}
    </div>
  );
}

/** Names similar to the typed text, or examples of selectors. */
function NoMatch({ error }: { error: ApiError }) {
  return (
    <Empty title={withoutNear(error)}>
      {error.near.length ? (
        <>
          <p>Did you mean one of these?</p>
          <ul className={styles.near}>
            {error.near.map((name) => <li key={name}><Link href={lineagePath(name)}>{name}</Link></li>)}
          </ul>
        </>
      ) : (
        <>
          <p>Type a name, or a selector such as these:</p>
          <ul className={styles.near}>
            {EXAMPLES.map(([selector, meaning]) => <li key={selector}><code>{selector}</code> <span>{meaning}</span></li>)}
          </ul>
        </>
      )}
    </Empty>
  );
}

const EXAMPLES = [
  ["+orders", "orders and everything upstream"],
  ["orders+2", "orders and two jobs downstream"],
  ["tag:pii", "what has the tag pii"],
  ["owner:finance", "what finance owns"],
  ["stg_* exclude tag:old", "by a pattern, without a tag"],
] as const;

interface GraphProps {
  state: LineageState;
  setState: SetState;
  merged: Merged;
  shown: Shown;
  updating: boolean;
  drawn: RefObject<Drawn | null>;
  onOpen: (id: string) => void;
  onPick: (picked: PickedEdge | null) => void;
}

function Graph({ state, setState, merged, shown, updating, drawn, onOpen, onPick }: GraphProps) {
  const [hovered, setHovered] = useState<ColumnPlace>();
  const locked = useColumnPath(state.locked, state.asOf);
  const preview = useColumnPath(useRested(hovered), state.asOf);
  const columnEdges = useMemo(
    () => [...new Set([...(locked.data?.edges ?? []), ...(preview.data?.edges ?? [])])],
    [locked.data, preview.data],
  );
  if (!merged.nodes.length) return <Empty title="The selector matches nothing">No dataset or job matches “{state.selector}”.</Empty>;
  return (
    <>
      <Summary state={state} setState={setState} merged={merged} shown={shown} updating={updating} />
      <LineageCanvas
        nodes={shown.nodes}
        edges={shown.edges}
        knownEdges={merged.edges}
        columnEdges={columnEdges}
        blindSpots={merged.blindSpots}
        drawn={drawn}
        generation={`${state.selector ?? state.entity} ${state.grouping}`}
        {...(merged.root === null ? {} : { focus: merged.root })}
        {...(state.locked ? { locked: state.locked } : {})}
        {...(state.active ? { active: state.active } : {})}
        openColumns={state.openColumns}
        onActive={(id) => setState((before) => ({ ...before, active: id }), "small")}
        onToggleColumns={(id) => setState((before) => ({ ...before, openColumns: toggled(before.openColumns, id) }), "small")}
        onHoverColumn={(place) => setHovered(place ?? undefined)}
        onLock={(place) => setState((before) => ({ ...before, locked: place ?? undefined }))}
        onExpand={(id, side) => setState((before) => ({ ...before, expanded: [...before.expanded, { id, side }] }))}
        onOpen={onOpen}
        onPickEdge={onPick}
        onBlindSpots={(id) => setState((before) => ({ ...before, active: id, panel: "details" }), "small")}
      />
      {state.locked ? <LockBar state={state} setState={setState} merged={merged} path={locked} /> : null}
      <Legend diff={state.diff !== undefined} />
    </>
  );
}

/** How much of the graph is visible, and its blind spots. */
function Summary({ state, setState, merged, shown, updating }: Omit<GraphProps, "drawn" | "onOpen" | "onPick">) {
  const { groups, grouped, single, hidden } = countShown(shown.nodes, merged);
  return (
    <div className={styles.summary}>
      <span aria-live="polite"><strong>{formatCount(single)}</strong> of <strong>{formatCount(merged.total)}</strong> shown</span>
      {grouped > 0 ? <Badge>{formatCount(grouped)} in {plural(groups, "group")}</Badge> : null}
      {hidden > 0 ? <Badge>{formatCount(hidden)} hidden</Badge> : null}
      {merged.blindSpots.length === 0 ? null : (
        <button type="button" className={styles.incomplete} onClick={() => setState((before) => ({ ...before, active: undefined, panel: "details" }), "small")}>
          <Icon name="blind" size={13} />
          {merged.blindSpots.length === 1 ? "1 blind spot" : `${merged.blindSpots.length} blind spots`}
        </button>
      )}
      <ColumnChanges state={state} merged={merged} />
      {state.expanded.length ? <Button kind="plain" onClick={() => setState((before) => ({ ...before, expanded: [] }))}>Back to one step</Button> : null}
      {updating ? <span className={styles.updating} role="status">Loading</span> : null}
    </div>
  );
}

function LockBar({ state, setState, merged, path }: { state: LineageState; setState: SetState; merged: Merged; path: ReturnType<typeof useColumnPath> }) {
  const { dataset, column } = state.locked!;
  const label = merged.nodes.find((node) => node.id === dataset)?.label ?? dataset;
  const known = new Set(merged.nodes.map((node) => node.id));
  const outside = path.data?.datasets.filter((id) => !known.has(id)).length ?? 0;
  const edges = path.data?.edges.length ?? 0;
  return (
    <div className={styles.lock} role="status">
      <Icon name="lock" size={13} />
      <strong title={`${label}.${column}`}>{column}</strong>
      <span>
        {`of ${label}: `}
        {path.isPending ? "loading its path" : path.error ? pathProblem(path.error) : edges ? `${edges} column ${edges === 1 ? "edge" : "edges"} up and down` : "no column lineage is known"}
        {path.data && !path.data.complete ? `, incomplete: ${path.data.blind_spots.length} blind spots` : ""}
      </span>
      {outside ? <Button kind="plain" title="Show every dataset and job of the path" onClick={() => setState((before) => showPath(before, path.data!))}>Show {plural(outside, "more dataset")}</Button> : null}
      <Link href={changePath(dataset, column, state.asOf)} aria-label={`What if ${column} changes`}>What if</Link>
      <Button kind="plain" icon="close" aria-label="Unlock the column" onClick={() => setState((before) => ({ ...before, locked: undefined }))} />
    </div>
  );
}

/** The datasets and jobs of a column path in place of the root; the column stays locked. */
function showPath(state: LineageState, path: ColumnEdges): LineageState {
  const jobs = path.edges.flatMap((edge) => (edge.job ? [edge.job] : []));
  const selector = [...new Set([...path.datasets, ...jobs])].join(" ");
  return { ...withRoot(state, { selector }), locked: state.locked, asOf: state.asOf, active: state.locked?.dataset };
}

function pathProblem(error: Error): string {
  if (!(error instanceof ApiError)) return "the server cannot be reached";
  return error.status === 404 ? "the dataset has no such column" : error.message;
}

/** The column that the pointer rests on. */
function useRested(place: ColumnPlace | undefined): ColumnPlace | undefined {
  const [rested, setRested] = useState<ColumnPlace>();
  useEffect(() => {
    const timer = setTimeout(() => setRested(place), place === undefined ? 0 : 140);
    return () => clearTimeout(timer);
  }, [place]);
  return rested;
}
