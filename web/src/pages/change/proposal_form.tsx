import { useState } from "react";
import type { EntityView } from "../../api/types";
import { Choice, Segments, TextArea, TextField } from "../../design/fields";
import { Icon, iconOf } from "../../design/icons";
import { nameOf, parseId } from "../../design/format";
import { Button, Panel } from "../../design/parts";
import { SearchPalette } from "../../search/palette";
import { CHANGES, LONGEST_IN_ADDRESS, missingOf, newDraft, type ChangeType, type Draft, type Form, type Proposal } from "./proposal";
import styles from "./change.module.css";

const FORMS: Record<Form, string> = { changes: "Changes", ddl: "DDL", diff: "Diff" };
const DIALECTS: Record<string, string> = {
  "": "Find out", bigquery: "BigQuery", clickhouse: "ClickHouse", databricks: "Databricks", duckdb: "DuckDB", hive: "Hive", mysql: "MySQL",
  oracle: "Oracle", postgres: "PostgreSQL", redshift: "Redshift", snowflake: "Snowflake", spark: "Spark", sqlite: "SQLite", trino: "Trino", tsql: "SQL Server",
};

interface FormProps {
  proposal: Proposal;
  change: (proposal: Proposal) => void;
  entity: EntityView | undefined;
}

export function ProposalForm({ proposal, change, entity }: FormProps) {
  const set = (part: Partial<Proposal>) => change({ ...proposal, ...part });
  return (
    <Panel title="Proposal" label="Proposal">
      <div className={styles.fields}>
        <Segments label="Form of the proposal" value={proposal.form} options={FORMS} change={(form) => set({ form })} />
        {proposal.form === "changes" ? <ChangesForm {...{ proposal, change, entity }} /> : null}
        {proposal.form === "ddl" ? (
          <>
            <TextArea label="Migration" value={proposal.ddl} change={(ddl) => set({ ddl })} placeholder={"ALTER TABLE orders\n  RENAME COLUMN total TO amount;"} />
            <Choice label="SQL dialect" value={proposal.dialect} options={DIALECTS} change={(dialect) => set({ dialect })} />
          </>
        ) : null}
        {proposal.form === "diff" ? (
          <>
            <TextArea label="Output of git diff" value={proposal.diff} change={(diff) => set({ diff })} placeholder={"--- a/models/orders.sql\n+++ b/models/orders.sql\n@@ -1,3 +1,3 @@"} />
            <p className={styles.note}>
              The diff is applied to the repository that the server was started with (<code>downriver serve --repo</code>).
              {proposal.diff.length > LONGEST_IN_ADDRESS ? " It is too long for the address of this page, so a link does not contain it." : ""}
            </p>
          </>
        ) : null}
      </div>
    </Panel>
  );
}

function ChangesForm({ proposal, change, entity }: FormProps) {
  const columns = (entity?.columns ?? []).map((column) => column.name);
  const setDraft = (at: number, draft: Draft) => change({ ...proposal, drafts: proposal.drafts.map((old, place) => (place === at ? draft : old)) });
  const remove = (at: number) => change({ ...proposal, drafts: proposal.drafts.filter((_, place) => place !== at) });
  return (
    <>
      <Target proposal={proposal} entity={entity} choose={(id, column) => change({ ...proposal, entity: id, drafts: [newDraft(column)] })} />
      {proposal.entity === "" ? null : (
        <>
          <ol className={styles.drafts}>
            {proposal.drafts.map((draft, at) => (
              <li key={at} className={styles.draft}>
                <DraftFields draft={draft} change={(next) => setDraft(at, next)} columns={columns} types={entity ? typesOf(entity) : []} number={at + 1} />
                {proposal.drafts.length > 1 ? <Button kind="plain" icon="close" aria-label={`Remove change ${at + 1}`} onClick={() => remove(at)} /> : null}
              </li>
            ))}
          </ol>
          <Button icon="plus" onClick={() => change({ ...proposal, drafts: [...proposal.drafts, newDraft(columns[0])] })}>Add a change</Button>
        </>
      )}
    </>
  );
}

function Target(props: { proposal: Proposal; entity: EntityView | undefined; choose: (id: string, column: string) => void }) {
  const [choosing, setChoosing] = useState(false);
  const { entity: id } = props.proposal;
  return (
    <div>
      <button type="button" className={styles.target} onClick={() => setChoosing(true)} title="Choose another dataset or column">
        <Icon name={id ? iconOf(props.entity?.type) : "search"} />
        <span>
          <strong>{id ? (props.entity?.name ?? nameOf(id)) : "Choose a dataset or column"}</strong>
          {id ? <small title={id}>{props.entity?.namespace ?? parseId(id).namespace}</small> : null}
        </span>
      </button>
      {choosing ? (
        <SearchPalette
          close={() => setChoosing(false)}
          pick={(hit) => props.choose(hit.kind === "column" && hit.dataset ? hit.dataset : hit.id, hit.kind === "column" ? hit.name : "")}
        />
      ) : null}
    </div>
  );
}

const NO_COLUMN: readonly ChangeType[] = ["table_drop", "table_rename"];
const COLUMN_OPTIONAL: readonly ChangeType[] = ["deprecation", "logic_change"];

function DraftFields({ draft, change, columns, types, number }: { draft: Draft; change: (draft: Draft) => void; columns: readonly string[]; types: readonly string[]; number: number }) {
  const set = (part: Partial<Draft>) => change({ ...draft, ...part });
  const missing = missingOf(draft);
  const isUnknown = draft.column !== "" && draft.type !== "column_add" && columns.length > 0 && !columns.some((name) => name.toLowerCase() === draft.column.trim().toLowerCase());
  return (
    <fieldset className={styles.draftFields}>
      <legend className="visually-hidden">Change {number}</legend>
      <Choice label="Change" value={draft.type} options={CHANGES} change={(type) => set({ type })} />
      {NO_COLUMN.includes(draft.type) ? null : (
        <TextField
          label={draft.type === "column_add" ? "New column" : COLUMN_OPTIONAL.includes(draft.type) ? "Column (empty: all)" : "Column"}
          value={draft.column}
          change={(column) => set({ column })}
          {...(draft.type === "column_add" ? {} : { choices: columns })}
        />
      )}
      {draft.type === "column_rename" || draft.type === "table_rename" ? <TextField label="New name" value={draft.to} change={(to) => set({ to })} /> : null}
      {draft.type === "type_change" ? <TextField label="New type" value={draft.to} change={(to) => set({ to })} choices={types} /> : null}
      {draft.type === "column_add" ? <TextField label="Type" value={draft.to} change={(to) => set({ to })} choices={types} /> : null}
      {draft.type === "column_add" || draft.type === "nullability_change" ? (
        <label className={styles.check}>
          <input type="checkbox" checked={draft.required} onChange={(event) => set({ required: event.target.checked })} />
          {draft.type === "column_add" ? "Required: NOT NULL without a default" : "Forbid NULL"}
        </label>
      ) : null}
      {missing ? <p className={styles.note}>{missing}</p> : null}
      {isUnknown ? <p className={styles.note}>The schema has no column with this name.</p> : null}
    </fieldset>
  );
}

function typesOf(entity: EntityView): string[] {
  const common = ["bigint", "boolean", "date", "decimal(18,2)", "double", "int", "text", "timestamp"];
  return [...new Set([...entity.columns.map((column) => column.type).filter(Boolean), ...common])].sort();
}
