import { createContext, useContext } from "react";
import type { ColumnPlace, Side } from "../graph_types";

/** Actions of the canvas for nodes. One stable object, so that a node renders only when its data changes. */
export interface CanvasActions {
  open: (id: string) => void;
  expand: ((id: string, side: Side) => void) | undefined;
  toggleColumns: (id: string) => void;
  search: (id: string, text: string) => void;
  hoverColumn: (place: ColumnPlace | null) => void;
  lock: (place: ColumnPlace | null) => void;
  showBlindSpots: ((id: string) => void) | undefined;
}

const ActionsContext = createContext<CanvasActions | null>(null);

export const ActionsProvider = ActionsContext.Provider;

export function useActions(): CanvasActions {
  const actions = useContext(ActionsContext);
  if (actions === null) throw new Error("A node is drawn outside of a canvas.");
  return actions;
}
