import { Button, Empty } from "../../design/parts";
import type { PickedEdge } from "../../graph/edge_overlay";
import { Evidence } from "./evidence";
import type { Merged, Shown } from "./graph_view";
import { BlindSpots, NodeDetails } from "./node_details";
import { NodeTable } from "./node_table";
import type { LineageState, SetState } from "./url_state";
import styles from "./side_panel.module.css";

interface Props {
  state: LineageState;
  setState: SetState;
  shown: Shown;
  merged: Merged;
  picked: PickedEdge | null;
  onPick: (picked: PickedEdge | null) => void;
  onOpen: (id: string) => void;
}

const TABS = { table: "Table", details: "Details" } as const;

/** The panel beside the graph: a table of the graph, and the details of the selection. */
export function SidePanel({ state, setState, shown, merged, picked, onPick, onOpen }: Props) {
  const choose = (panel: LineageState["panel"]) => setState((before) => ({ ...before, panel }), "small");
  const labels = new Map(merged.nodes.map((node) => [node.id, node.label]));
  const label = (id: string) => labels.get(id) ?? id;
  const active = shown.nodes.find((node) => node.id === state.active);
  return (
    <aside className={styles.panel} aria-label="Table and details">
      <div className={styles.tabs} role="tablist" aria-label="Table or details">
        {Object.entries(TABS).map(([name, title]) => (
          <button key={name} type="button" role="tab" id={`tab-${name}`} aria-selected={state.panel === name} aria-controls="lineage-panel" onClick={() => choose(name as keyof typeof TABS)}>
            {title}
          </button>
        ))}
      </div>
      <Button kind="plain" icon="close" className={styles.close} aria-label="Close the panel" onClick={() => choose("none")} />
      <div className={styles.body} role="tabpanel" id="lineage-panel" aria-labelledby={`tab-${state.panel}`}>
        {state.panel === "table" ? (
          <NodeTable nodes={shown.nodes} active={state.active} onActive={(id) => setState((before) => ({ ...before, active: id }), "small")} onOpen={onOpen} />
        ) : (
          <>
            {picked ? <Evidence picked={picked} label={label} /> : null}
            {active ? <NodeDetails node={active} edges={merged.edges} blindSpots={merged.blindSpots} label={label} onPick={onPick} asOf={state.asOf} /> : null}
            {!picked && !active ? <Empty title="Nothing is selected">Select a node or an edge of the graph to see where it comes from.</Empty> : null}
            {!picked && !active && merged.blindSpots.length ? <div className={styles.section}><BlindSpots spots={merged.blindSpots} /></div> : null}
          </>
        )}
      </div>
    </aside>
  );
}
