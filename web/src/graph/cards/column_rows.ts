/** Which columns of a dataset are shown as rows, and how high the node is with them. */

import type { GraphColumn, GraphNode } from "../graph_types";

export const ROW_HEIGHT = 24;
export const SEARCH_HEIGHT = 32;
export const FOOT_HEIGHT = 22;
export const MOST_ROWS = 10;

export interface ColumnRows {
  columns: GraphColumn[];
  searchable: boolean;
  search: string;
  hidden: number; // columns that match nothing or do not fit
  open: boolean; // all columns are requested, not only those on a path
}

/** `onPath` are the columns of a locked path: they are shown even when the dataset is closed. */
export function columnRows(node: GraphNode, open: boolean, search: string, onPath: ReadonlySet<string> | undefined): ColumnRows | null {
  if (node.kind !== "dataset") return null;
  const known = node.columns ?? [];
  const path = pathColumns(known, onPath);
  if (!open) return path.length ? { columns: path.slice(0, MOST_ROWS), searchable: false, search: "", hidden: Math.max(0, path.length - MOST_ROWS), open } : null;
  const wanted = search.trim().toLowerCase();
  const found = known.filter((column) => column.name.toLowerCase().includes(wanted));
  const onPathNames = new Set(path.map((column) => column.name));
  const rows = [...path, ...found.filter((column) => !onPathNames.has(column.name))];
  const total = Math.max(node.column_total, known.length);
  const columns = rows.slice(0, MOST_ROWS);
  // Rows keep the order of the table; those of a path are never cut off.
  const order = new Map(known.map((column, i) => [column.name, i]));
  columns.sort((a, b) => (order.get(a.name) ?? Infinity) - (order.get(b.name) ?? Infinity));
  return { columns, searchable: total > MOST_ROWS, search, hidden: Math.max(0, total - columns.length), open };
}

/** Columns of a path, also those that the schema does not list. */
function pathColumns(known: readonly GraphColumn[], onPath: ReadonlySet<string> | undefined): GraphColumn[] {
  if (onPath === undefined) return [];
  const listed = known.filter((column) => onPath.has(column.name));
  const names = new Set(listed.map((column) => column.name));
  const unlisted = [...onPath].filter((name) => !names.has(name));
  return [...listed, ...unlisted.map((name) => ({ name, tags: [], marks: [] }))];
}

export function rowsHeight(rows: ColumnRows | null): number {
  if (rows === null) return 0;
  return (rows.searchable ? SEARCH_HEIGHT : 0) + rows.columns.length * ROW_HEIGHT + (rows.hidden ? FOOT_HEIGHT : 0) + 6;
}

/** The middle of the row of a column, measured from the top of the rows; the search box comes first. */
export function rowMiddle(rows: ColumnRows, column: string): number | undefined {
  const at = rows.columns.findIndex((one) => one.name === column);
  return at === -1 ? undefined : (rows.searchable ? SEARCH_HEIGHT : 0) + at * ROW_HEIGHT + ROW_HEIGHT / 2;
}
