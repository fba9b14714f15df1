/** A proposal in the form, in the address, and in requests to the server. */

export const CHANGES = {
  column_rename: "Rename column",
  column_drop: "Drop column",
  type_change: "Change type",
  column_add: "Add column",
  nullability_change: "Allow or forbid NULL",
  logic_change: "Change how values are computed",
  deprecation: "Deprecate",
  table_rename: "Rename dataset",
  table_drop: "Drop dataset",
} as const;

export type ChangeType = keyof typeof CHANGES;
export type Form = "changes" | "ddl" | "diff";

export interface Draft {
  type: ChangeType;
  column: string;
  to: string; // the new name or type
  required: boolean; // of a new column; and "NOT NULL" of an existing one
}

export interface Proposal {
  entity: string;
  form: Form;
  drafts: readonly Draft[];
  ddl: string;
  dialect: string;
  diff: string;
  asOf: string; // the moment of the lineage; "" is now
}

export type ChangeBody = Record<string, string | boolean | string[]>;
export interface PreviewBody {
  changes?: ChangeBody[];
  ddl?: string;
  dialect?: string;
  diff?: string;
  as_of?: string;
}

export const LONGEST_IN_ADDRESS = 6000;

export function newDraft(column = "", type?: ChangeType): Draft {
  return { type: type ?? (column ? "column_rename" : "column_drop"), column, to: "", required: false };
}

/** The change of a draft as a request has it; null while a part of it is missing. */
export function changeOf(draft: Draft, dataset: string): ChangeBody | null {
  const column = draft.column.trim();
  const to = draft.to.trim();
  const { type } = draft;
  switch (type) {
    case "column_rename":
      return column && to && to !== column ? { type, dataset, from: column, to } : null;
    case "column_drop":
      return column ? { type, dataset, column } : null;
    case "type_change":
      return column && to ? { type, dataset, column, to } : null;
    case "column_add":
      return column ? { type, dataset, column, data_type: to, required: draft.required } : null;
    case "nullability_change":
      return column ? { type, dataset, column, nullable: !draft.required } : null;
    case "logic_change":
      return { type, dataset, columns: column ? [column] : [] };
    case "deprecation":
      return column ? { type, dataset, column } : { type, dataset };
    case "table_rename":
      return to ? { type, dataset, to } : null;
    case "table_drop":
      return { type, dataset };
  }
}

/** The missing part of a draft, as a message; empty if the draft is complete. */
export function missingOf(draft: Draft): string {
  if (changeOf(draft, "x") !== null) return "";
  if (!draft.column.trim() && draft.type !== "table_rename") return "Choose a column.";
  if (draft.type === "type_change") return "Give the new type.";
  return draft.to.trim() ? "The new name is the old one." : "Give the new name.";
}

/** The body of a request for a preview; null while the proposal is empty. */
export function bodyOf(proposal: Proposal): PreviewBody | null {
  if (proposal.form === "ddl") {
    if (!proposal.ddl.trim()) return null;
    return { ddl: proposal.ddl, ...(proposal.dialect ? { dialect: proposal.dialect } : {}) };
  }
  if (proposal.form === "diff") return proposal.diff.trim() ? { diff: proposal.diff } : null;
  if (!proposal.entity) return null;
  const changes = proposal.drafts.map((draft) => changeOf(draft, proposal.entity)).filter((change) => change !== null);
  return changes.length ? { changes, ...(proposal.asOf ? { as_of: proposal.asOf } : {}) } : null;
}

export function parseProposal(address: URLSearchParams): Proposal {
  const ddl = address.get("ddl") ?? "";
  const diff = address.get("diff") ?? "";
  const named = address.get("form");
  const form: Form = named === "ddl" || named === "diff" ? named : ddl ? "ddl" : diff ? "diff" : "changes";
  const column = address.get("column") ?? "";
  const drafts = parseDrafts(address.get("changes"));
  return {
    entity: address.get("entity") ?? "",
    form,
    drafts: drafts.length ? drafts : [newDraft(column)],
    ddl,
    dialect: address.get("dialect") ?? "",
    diff,
    asOf: address.get("as_of") ?? "",
  };
}

function parseDrafts(text: string | null): Draft[] {
  if (text === null) return [];
  try {
    const value: unknown = JSON.parse(text);
    return Array.isArray(value) ? value.map(parseDraft).filter((draft) => draft !== null) : [];
  } catch {
    return [];
  }
}

function parseDraft(value: unknown): Draft | null {
  if (!Array.isArray(value)) return null;
  const [type, column, to, required] = value as unknown[];
  if (typeof type !== "string" || !(type in CHANGES)) return null;
  return { type: type as ChangeType, column: textOf(column), to: textOf(to), required: required === true };
}

const textOf = (value: unknown): string => (typeof value === "string" ? value : "");

/** The address of a proposal. A diff that is too long for an address is left out. */
export function renderProposal(proposal: Proposal): URLSearchParams {
  const address = new URLSearchParams();
  if (proposal.entity) address.set("entity", proposal.entity);
  if (proposal.form === "changes") {
    const drafts = proposal.drafts.map(({ type, column, to, required }) => (required ? [type, column, to, true] : [type, column, to]));
    address.set("changes", JSON.stringify(drafts));
    if (proposal.asOf) address.set("as_of", proposal.asOf);
    return address;
  }
  address.set("form", proposal.form);
  const text = proposal.form === "ddl" ? proposal.ddl : proposal.diff;
  if (text && text.length <= LONGEST_IN_ADDRESS) address.set(proposal.form, text);
  if (proposal.form === "ddl" && proposal.dialect) address.set("dialect", proposal.dialect);
  return address;
}
