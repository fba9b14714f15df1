import "@xyflow/react/dist/base.css";
import { ReactFlow, ReactFlowProvider, useReactFlow, useStore } from "@xyflow/react";
import { useCallback, useEffect, useMemo, useRef, useState, type RefObject } from "react";
import { ActionsProvider } from "./cards/canvas_actions";
import { ControlButton, EdgeTip, NodeTip } from "./canvas_parts";
import { useCanvasState, useStableActions } from "./canvas_state";
import { useCards } from "./cards/cards";
import { EdgeOverlay, type PickedEdge } from "./edge_overlay";
import type { BlindSpot, ColumnEdge, ColumnPlace, GraphEdge, GraphNode, Severity, Side } from "./graph_types";
import { columnsOnPath, highlightNode, highlightPath, pathThrough, type Highlight } from "./scene/highlight";
import { isArrowKey, nodeInDirection } from "./scene/keyboard";
import { linkKey } from "./layout";
import { useLayout } from "./layout_client";
import { MapCanvas } from "./map_canvas";
import { MiniMap } from "./mini_map";
import { NodeCard, type CardNode } from "./cards/node_card";
import { buildScene, columnEdgeKey, columnLines, edgeAt, nodeAt, type Scene } from "./scene/scene";
import { expandByKey, focusCard, isMap, useView } from "./view";
import styles from "./lineage_canvas.module.css";

export interface LineageCanvasProps {
  nodes: readonly GraphNode[];
  edges: readonly GraphEdge[];
  columnEdges?: readonly ColumnEdge[];
  focus?: string;
  severity?: Readonly<Record<string, Severity>>;
  onOpen?: (id: string) => void;
  onExpand?: (id: string, side: Side) => void;
  locked?: ColumnPlace;
  onLock?: (place: ColumnPlace | null) => void;
  onHoverColumn?: (place: ColumnPlace | null) => void;
  height?: number | string;
  /** The node with the keyboard's focus. The canvas keeps it itself when it is not given. */
  active?: string;
  onActive?: (id: string | undefined) => void;
  openColumns?: ReadonlySet<string>;
  onToggleColumns?: (id: string) => void;
  onPickEdge?: (picked: PickedEdge | null) => void;
  onBlindSpots?: (id: string) => void;
  blindSpots?: readonly BlindSpot[];
  /** All edges that are loaded, also those that a filter hides: "+3 of 17" counts what is not loaded. */
  knownEdges?: readonly GraphEdge[];
  /** Is set to what the canvas draws, for exports. */
  drawn?: RefObject<Drawn | null>;
  /** A change of this value starts a new layout. Otherwise nodes keep their place. */
  generation?: string;
}

/** What the canvas draws, whatever part of it is in view. `path` and `onPath` are those of the locked column. */
export interface Drawn {
  scene: Scene;
  path: readonly ColumnEdge[];
  onPath: Highlight | null;
}

const NODE_TYPES = { card: NodeCard };
const NO_EDGES: never[] = [];

/** The graph of datasets and jobs: cards for a few hundred nodes in view, a plain map for more. */
export function LineageCanvas({ height = "100%", ...props }: LineageCanvasProps) {
  return (
    <div style={{ height, width: "100%" }}>
      <ReactFlowProvider>
        <Canvas {...props} />
      </ReactFlowProvider>
    </div>
  );
}

function Canvas(props: Omit<LineageCanvasProps, "height">) {
  const { nodes, edges, focus, severity, locked } = props;
  const [tidied, setTidied] = useState(0);
  const generation = `${props.generation ?? focus ?? ""} ${tidied}`;
  const layout = useLayout(nodes, edges, generation);
  const state = useCanvasState(props);
  const { active, setPicked } = state;
  const ownActive = useRef(active);
  const setActive = (id: string | undefined) => {
    ownActive.current = id;
    state.setActive(id);
  };
  const columnEdges = props.columnEdges ?? NO_EDGES;
  const onPath = useMemo(
    () => (locked ? columnsOnPath(pathThrough(columnEdges, locked), locked) : new Map<string, Set<string>>()),
    [columnEdges, locked],
  );
  const scene = useMemo<Scene | null>(
    () => layout && buildScene(nodes, edges, layout, { open: state.openColumns, searches: state.searches, onPath }),
    [nodes, edges, layout, state.openColumns, state.searches, onPath],
  );
  const hoveredPath = useMemo(() => (state.hoveredColumn ? pathThrough(columnEdges, state.hoveredColumn) : NO_EDGES), [columnEdges, state.hoveredColumn]);
  const lockedPath = useMemo(() => (locked ? pathThrough(columnEdges, locked) : NO_EDGES), [columnEdges, locked]);
  const start = hoveredPath.length ? state.hoveredColumn! : locked;
  const path = hoveredPath.length ? hoveredPath : lockedPath;
  const highlight = useMemo<Highlight | null>(() => {
    if (start) return highlightPath(path, start, edges);
    const node = state.hoveredNode ?? active;
    return node === undefined ? null : highlightNode(node, edges);
  }, [start, path, edges, state.hoveredNode, active]);
  const fading = start ? highlight : null; // hovering a node highlights its edges, and fades nothing
  const asMap = useStore((flow) => scene !== null && isMap(scene, flow.transform, flow.width, flow.height));
  const cards = useCards(scene, props, state, fading, onPath);
  const emphasised = useMemo(
    () => scene?.edges.filter(({ key }) => (!start && highlight?.edges.has(key)) || key === state.picked || key === state.hoveredEdge?.key) ?? [],
    [scene, start, highlight, state.picked, state.hoveredEdge],
  );
  useEffect(() => {
    if (props.drawn === undefined) return;
    const onPath = locked ? highlightPath(lockedPath, locked, edges) : null;
    props.drawn.current = scene && { scene, path: columnLines(lockedPath, scene).map(({ edge }) => edge), onPath };
  }, [props.drawn, scene, locked, lockedPath, edges]);
  const columns = useMemo(() => (scene ? columnLines(path, scene) : []), [scene, path]);
  const view = useView(scene, generation, focus);
  useEffect(() => {
    if (scene === null) return; // the layout is not ready
    if (active !== undefined && active !== ownActive.current) view.reveal(active, true); // chosen in the table
    ownActive.current = active;
  }, [active, scene === null]); // eslint-disable-line -- the view follows a choice, not every change of the scene
  const flow = useReactFlow();
  const wrapper = useRef<HTMLDivElement>(null);
  const actions = useStableActions(props, state);

  const pick = useCallback((picked: PickedEdge) => {
    setPicked(picked.kind === "edge" ? linkKey(picked.edge.source, picked.edge.target) : columnEdgeKey(picked.edge));
    props.onPickEdge?.(picked);
  }, [props.onPickEdge, setPicked]); // eslint-disable-line
  const pointAtPane = (event: React.MouseEvent) => {
    if (scene === null) return;
    const { x, y } = flow.screenToFlowPosition({ x: event.clientX, y: event.clientY });
    const node = asMap ? nodeAt(scene, x, y) : undefined;
    return { node: node?.node.id, edge: node ? undefined : edgeAt(scene, x, y, 7 / flow.getZoom()) };
  };
  const onKeyDown = (event: React.KeyboardEvent) => {
    if (scene === null || !(event.target instanceof HTMLElement) || event.target.matches("input, textarea, select")) return;
    const current = active ?? focus ?? scene.nodes[0]?.node.id;
    if (current === undefined || event.metaKey || event.ctrlKey || event.altKey) return;
    const onCard = !event.target.matches("button");
    if (isArrowKey(event.key)) {
      const next = active === undefined ? current : nodeInDirection(scene, current, event.key);
      if (next !== undefined) {
        setActive(next);
        view.reveal(next);
        focusCard(wrapper.current, next);
      }
    } else if (event.key === "Enter" && onCard) props.onOpen?.(current);
    else if ((event.key === "+" || event.key === "=") && props.onExpand) expandByKey(scene, current, props.knownEdges ?? edges, props.onExpand);
    else if (event.key === "c") actions.toggleColumns(current);
    else if (event.key === "f") view.fit();
    else if (event.key === "Escape") {
      state.setHoveredColumn(null);
      if (locked) actions.lock(null);
      else {
        setActive(undefined);
        setPicked(undefined);
        props.onPickEdge?.(null);
      }
    } else return;
    event.preventDefault();
  };

  return (
    <ActionsProvider value={actions}>
      <div ref={wrapper} className={styles.canvas} onKeyDown={onKeyDown} onMouseLeave={() => state.setHoveredEdge(null)}>
        <div className={styles.dots} aria-hidden="true" />
        <ReactFlow<CardNode>
          nodes={asMap ? NO_EDGES : cards}
          edges={NO_EDGES}
          nodeTypes={NODE_TYPES}
          onlyRenderVisibleElements
          nodesDraggable={false}
          nodesConnectable={false}
          nodesFocusable={false}
          edgesFocusable={false}
          elementsSelectable={false}
          disableKeyboardA11y
          deleteKeyCode={null}
          selectionKeyCode={null}
          multiSelectionKeyCode={null}
          panActivationKeyCode={null}
          zoomOnDoubleClick={false}
          minZoom={0.02}
          maxZoom={2}
          aria-label="Lineage graph. Arrow keys move along edges, Enter opens, plus expands, c shows columns, Escape unlocks."
          tabIndex={asMap ? 0 : -1}
          onNodeClick={(_, node) => setActive(node.id)}
          onNodeDoubleClick={(_, node) => props.onOpen?.(node.id)}
          onNodeMouseEnter={(_, node) => state.setHoveredNode(node.id)}
          onNodeMouseLeave={() => state.setHoveredNode(undefined)}
          onPaneMouseMove={(event) => {
            if (event.buttons) return; // the view is being moved
            const found = pointAtPane(event);
            state.setHoveredNode(found?.node);
            state.setHoveredEdge(found?.edge ? { key: found.edge.key, edge: found.edge.edge, x: event.clientX, y: event.clientY } : null);
          }}
          onPaneClick={(event) => {
            const found = pointAtPane(event);
            if (found?.edge) pick({ kind: "edge", edge: found.edge.edge });
            else setActive(found?.node);
          }}
        >
          {scene ? (
            <>
              <MapCanvas scene={scene} drawNodes={asMap} highlight={fading} active={active} focus={focus} severity={severity} />
              <EdgeOverlay edges={emphasised} columns={columns} nodes={scene.nodes} picked={state.picked} onPick={pick} />
            </>
          ) : null}
        </ReactFlow>
        <div className={styles.controls} role="toolbar" aria-label="View of the graph">
          <ControlButton icon="plus" label="Zoom in" onClick={() => void flow.zoomIn()} />
          <ControlButton icon="minus" label="Zoom out" onClick={() => void flow.zoomOut()} />
          <ControlButton icon="fit" label="Fit the graph into the view" onClick={view.fit} />
          <ControlButton icon="refresh" label="Arrange the graph again" onClick={() => setTidied(tidied + 1)} />
        </div>
        {scene && scene.nodes.length > 12 ? <MiniMap scene={scene} /> : null}
        {asMap && state.hoveredNode && scene?.byId.has(state.hoveredNode) ? <NodeTip placed={scene.byId.get(state.hoveredNode)!} /> : null}
        {state.hoveredEdge ? <EdgeTip hovered={state.hoveredEdge} scene={scene} frame={wrapper.current} /> : null}
        <div className="visually-hidden" aria-live="polite">{asMap && active ? scene?.byId.get(active)?.node.label : ""}</div>
      </div>
    </ActionsProvider>
  );
}
