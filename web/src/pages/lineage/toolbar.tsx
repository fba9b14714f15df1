import { useEffect, useRef, useState, type RefObject } from "react";
import { Icon } from "../../design/icons";
import { Button } from "../../design/parts";
import type { Drawn } from "../../graph/lineage_canvas";
import { exportView, type ExportFormat } from "./exports";
import type { Merged } from "./graph_view";
import { toggled, withRoot, type Grouping, type Hideable, type LineageState, type SetState } from "./url_state";
import styles from "./lineage.module.css";

interface Props {
  state: LineageState;
  setState: SetState;
  merged: Merged | null;
  drawn: RefObject<Drawn | null>;
}

const HIDE_TEXTS: Record<Hideable, string> = {
  jobs: "Jobs (connect datasets directly)",
  readers: "Jobs that only read",
  temporary: "Temporary tables",
};
const GROUP_TEXTS: Record<Grouping, string> = { none: "No groups", namespace: "By system", schema: "By schema" };
const FORMAT_TEXTS: Record<ExportFormat, string> = { svg: "Picture (SVG)", png: "Picture (PNG)", mermaid: "Diagram (Mermaid)" };

export function Toolbar({ state, setState, merged, drawn }: Props) {
  return (
    <div className={styles.toolbar}>
      <SelectorBox state={state} setState={setState} />
      <div className={styles.tools} role="toolbar" aria-label="What the graph shows">
        <Menu label={state.hidden.size ? `Hide (${state.hidden.size})` : "Hide"} icon="filter">
          {(Object.keys(HIDE_TEXTS) as Hideable[]).map((what) => (
            <label key={what} className={styles.choice}>
              <input type="checkbox" checked={state.hidden.has(what)} onChange={() => setState((before) => ({ ...before, hidden: toggled(before.hidden, what) }))} />
              {HIDE_TEXTS[what]}
            </label>
          ))}
        </Menu>
        <label className={styles.select}>
          <span className="visually-hidden">Collapse</span>
          <select value={state.grouping} onChange={(event) => setState((before) => ({ ...before, grouping: event.target.value as Grouping, openGroups: new Set() }))}>
            {(Object.keys(GROUP_TEXTS) as Grouping[]).map((grouping) => <option key={grouping} value={grouping}>{GROUP_TEXTS[grouping]}</option>)}
          </select>
        </label>
        <ExportMenu state={state} merged={merged} drawn={drawn} />
        {state.panel === "none" ? <Button icon="table" onClick={() => setState((before) => ({ ...before, panel: "table" }), "small")}>Table</Button> : null}
      </div>
    </div>
  );
}

/** A selector in place of one root, as the command line takes it. */
function SelectorBox({ state, setState }: Pick<Props, "state" | "setState">) {
  const current = state.selector ?? state.entity ?? "";
  const [text, setText] = useState(current);
  useEffect(() => setText(current), [current]);
  return (
    <form
      role="search"
      className={styles.selector}
      onSubmit={(event) => {
        event.preventDefault();
        const wanted = text.trim();
        if (wanted && wanted !== current) setState((before) => withRoot(before, { selector: wanted }));
      }}
    >
      <Icon name="search" size={14} />
      <input
        value={text}
        spellCheck={false}
        aria-label="Dataset, job or selector"
        title={"A name, or a selector:\n+orders  with everything upstream\norders+2  two jobs downstream\n@orders  with everything downstream, and everything upstream of that\ntag:pii, owner:ana, namespace:pg*, type:model\nspace: union, comma: intersection, exclude: difference"}
        placeholder="A name or a selector: +orders, orders+2, tag:pii, stg_* exclude tag:old"
        onChange={(event) => setText(event.target.value)}
      />
    </form>
  );
}

function ExportMenu({ state, merged, drawn }: Omit<Props, "setState">) {
  const [problem, setProblem] = useState<string>();
  const run = (format: ExportFormat) => {
    setProblem(undefined);
    if (merged && drawn.current) exportView(format, state, merged, drawn.current).catch((error: unknown) => setProblem(error instanceof Error ? error.message : "The export failed."));
  };
  return (
    <Menu label="Export" icon="download" disabled={merged === null}>
      {(Object.keys(FORMAT_TEXTS) as ExportFormat[]).map((format) => (
        <button key={format} type="button" className={styles.choice} onClick={() => run(format)}>{FORMAT_TEXTS[format]}</button>
      ))}
      {problem ? <p role="alert" className={styles.problem}>{problem}</p> : null}
    </Menu>
  );
}

/** A button that opens a small box with choices. Escape and a click elsewhere close it. */
function Menu({ label, icon, disabled = false, children }: { label: string; icon: "filter" | "download"; disabled?: boolean; children: React.ReactNode }) {
  const [open, setOpen] = useState(false);
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (!open) return;
    const close = (event: MouseEvent) => {
      if (!(event.target instanceof Node) || !box.current?.contains(event.target)) setOpen(false);
    };
    document.addEventListener("mousedown", close);
    return () => document.removeEventListener("mousedown", close);
  }, [open]);
  return (
    <div
      ref={box}
      className={styles.menu}
      onKeyDown={(event) => {
        if (event.key !== "Escape" || !open) return;
        event.stopPropagation();
        setOpen(false);
        box.current?.querySelector("button")?.focus();
      }}
    >
      <Button icon={icon} disabled={disabled} aria-expanded={open} onClick={() => setOpen(!open)}>{label}</Button>
      {open ? <div className={styles.menuBox} role="group" aria-label={label}>{children}</div> : null}
    </div>
  );
}
