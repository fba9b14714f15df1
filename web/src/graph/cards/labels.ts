/** How the name of a node fits on its card. A name that needs two lines makes the card higher. */

import { onLines } from "../../design/short_name";
import type { GraphNode } from "../graph_types";

export const LABEL_LINE = 18; // the height of one line
export const LETTERS = { dataset: 21, job: 18 }; // of a line on a card without marks
const LETTERS_SMALL = { dataset: 16, job: 14 }; // while the view is zoomed out: its letters are larger
export const OF_A_MARK = 3; // letters that a mark takes from each line

export function labelLines({ kind, label, marks }: Pick<GraphNode, "kind" | "label" | "marks">): 1 | 2 {
  return label.length <= LETTERS[kind === "job" ? "job" : "dataset"] - OF_A_MARK * marks.length ? 1 : 2;
}

/** The lines of a name beside so many marks. */
export function labelOnCard(node: GraphNode, marks: number, small: boolean): string[] {
  const letters = (small ? LETTERS_SMALL : LETTERS)[node.kind === "job" ? "job" : "dataset"];
  return onLines(node.label, letters - OF_A_MARK * marks, labelLines(node) + (small ? 1 : 0));
}
