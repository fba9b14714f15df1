import { useState, type ReactNode } from "react";
import { post } from "../../../api/client";
import { useChange, useMay } from "../../../api/queries";
import type { EntityView, TagChanges } from "../../../api/types";
import { Owners } from "../../../design/page";
import { Button } from "../../../design/parts";
import { parseOwners } from "./labels";
import { useReturnFocus } from "./return_focus";
import styles from "./edit.module.css";

export function DescriptionEditor({ entity }: { entity: EntityView }) {
  return (
    <EditableText entity={entity} label="description" value={entity.description} sent={entity.sent?.description} labels={(text) => ({ description: text.trim() })} several>
      {entity.description || null}
    </EditableText>
  );
}

export function OwnersEditor({ entity }: { entity: EntityView }) {
  return (
    <EditableText entity={entity} label="owners" value={entity.owners.join(", ")} sent={entity.sent?.owners.join(", ")} labels={(text) => ({ owners: parseOwners(text) })}>
      <Owners owners={entity.owners} />
    </EditableText>
  );
}

type Labels = { owners: string[] } | { description: string };

/** A text that a person with a writer's key can replace. `sent` is the text in events, if it differs. */
function EditableText(props: { entity: EntityView; label: string; value: string; sent: string | undefined; labels: (text: string) => Labels; several?: boolean; children: ReactNode }) {
  const { entity, label, value } = props;
  const mayWrite = useMay("writer");
  const [text, setText] = useState<string | null>(null);
  const [opener, returnFocus] = useReturnFocus();
  const change = useChange((written: string) => post<TagChanges>("/v1/tags", { entity: entity.id, ...props.labels(written) }));
  const close = () => {
    setText(null);
    returnFocus();
  };
  if (text === null) {
    return (
      <span className={styles.value}>
        {props.children}
        {props.sent && props.sent !== value ? <span className={styles.sent}>in events: {props.sent}</span> : null}
        {mayWrite ? <button type="button" ref={opener} className={styles.add} onClick={() => setText(value)}>{value ? "Edit" : `Add ${label}`}<span className="visually-hidden"> {value ? label : ""} of {entity.name}</span></button> : null}
      </span>
    );
  }
  const field = { autoFocus: true, "aria-label": `${label} of ${entity.name}`, value: text };
  return (
    <form
      className={`${styles.form} ${props.several ? styles.wide : ""}`}
      onSubmit={(event) => {
        event.preventDefault();
        change.mutate(text, { onSuccess: close });
      }}
      onKeyDown={(event) => {
        if (event.key === "Escape") close();
      }}
    >
      {props.several ? <textarea {...field} rows={2} onChange={(event) => setText(event.target.value)} /> : <input {...field} placeholder="team, person" onChange={(event) => setText(event.target.value)} />}
      <Button type="submit" disabled={change.isPending || text.trim() === value}>Save</Button>
      <Button kind="plain" icon="close" aria-label={`Keep the ${label}`} onClick={close} />
      {change.error ? <span role="alert" className={styles.refused}>{change.error.message}</span> : null}
    </form>
  );
}
