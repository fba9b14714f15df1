/** The state of interaction on the canvas: hovered, opened, searched and selected elements. */

import { useEffect, useMemo, useRef, useState } from "react";
import type { CanvasActions } from "./cards/canvas_actions";
import type { ColumnPlace, GraphEdge } from "./graph_types";
import type { LineageCanvasProps } from "./lineage_canvas";

export interface HoveredEdge {
  key: string;
  edge: GraphEdge;
  x: number;
  y: number;
}

export interface CanvasState {
  active: string | undefined;
  setActive: (id: string | undefined) => void;
  openColumns: ReadonlySet<string>;
  toggleColumns: (id: string) => void;
  searches: ReadonlyMap<string, string>;
  search: (id: string, text: string) => void;
  hoveredColumn: ColumnPlace | null;
  setHoveredColumn: (place: ColumnPlace | null) => void;
  hoveredNode: string | undefined;
  setHoveredNode: (id: string | undefined) => void;
  hoveredEdge: HoveredEdge | null;
  setHoveredEdge: (edge: HoveredEdge | null) => void;
  picked: string | undefined;
  setPicked: (key: string | undefined) => void;
}

type Controlled = Pick<LineageCanvasProps, "active" | "onActive" | "openColumns" | "onToggleColumns" | "onHoverColumn">;

/** Keeps the state that the page does not keep itself. */
export function useCanvasState(props: Controlled): CanvasState {
  const [ownActive, setOwnActive] = useState<string>();
  const [ownOpen, setOwnOpen] = useState<ReadonlySet<string>>(new Set<string>());
  const [searches, setSearches] = useState<ReadonlyMap<string, string>>(new Map<string, string>());
  const [hoveredColumn, setHoveredColumn] = useState<ColumnPlace | null>(null);
  const [hoveredNode, setHoveredNode] = useState<string>();
  const [hoveredEdge, setHoveredEdge] = useState<HoveredEdge | null>(null);
  const [picked, setPicked] = useState<string>();
  return {
    active: props.onActive ? props.active : ownActive,
    setActive: props.onActive ?? setOwnActive,
    openColumns: props.openColumns ?? ownOpen,
    toggleColumns:
      props.onToggleColumns ??
      ((id) =>
        setOwnOpen((open) => {
          const next = new Set(open);
          if (!next.delete(id)) next.add(id);
          return next;
        })),
    searches,
    search: (id, text) => setSearches((known) => new Map(known).set(id, text)),
    hoveredColumn,
    setHoveredColumn: (place) => {
      setHoveredColumn(place);
      props.onHoverColumn?.(place);
    },
    hoveredNode,
    setHoveredNode,
    hoveredEdge,
    setHoveredEdge,
    picked,
    setPicked,
  };
}

/** One object for all nodes that stays the same while the functions behind it change. */
export function useStableActions(props: LineageCanvasProps, state: CanvasState): CanvasActions {
  const latest = useRef({ props, state });
  useEffect(() => {
    latest.current = { props, state };
  });
  const canExpand = props.onExpand !== undefined;
  return useMemo<CanvasActions>(
    () => ({
      open: (id) => latest.current.props.onOpen?.(id),
      expand: canExpand ? (id, side) => latest.current.props.onExpand?.(id, side) : undefined,
      toggleColumns: (id) => latest.current.state.toggleColumns(id),
      search: (id, text) => latest.current.state.search(id, text),
      hoverColumn: (place) => latest.current.state.setHoveredColumn(place),
      lock: (place) => latest.current.props.onLock?.(place),
      showBlindSpots: (id) => latest.current.props.onBlindSpots?.(id),
    }),
    [canExpand],
  );
}
