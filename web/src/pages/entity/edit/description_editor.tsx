import { useState, type ReactNode } from "react";
import { useChange, useMay } from "../../../api/queries";
import type { EntityView } from "../../../api/types";
import { Owners } from "../../../design/page";
import { Button } from "../../../design/parts";
import { useReturnFocus } from "./return_focus";
import { documentation, ownership, sendStatement, type Facets } from "./statements";
import styles from "./edit.module.css";

export function DescriptionEditor({ entity }: { entity: EntityView }) {
  return (
    <EditableText entity={entity} label="description" value={entity.description} facets={documentation} several>
      {entity.description || null}
    </EditableText>
  );
}

export function OwnersEditor({ entity }: { entity: EntityView }) {
  return (
    <EditableText entity={entity} label="owners" value={entity.owners.join(", ")} facets={ownership}>
      <Owners owners={entity.owners} />
    </EditableText>
  );
}

/** A text that a person with a writer's key can replace. It is recorded as an event. */
function EditableText(props: { entity: EntityView; label: string; value: string; facets: (text: string) => Facets; several?: boolean; children: ReactNode }) {
  const { entity, label, value } = props;
  const mayWrite = useMay("writer");
  const [text, setText] = useState<string | null>(null);
  const [opener, returnFocus] = useReturnFocus();
  const change = useChange((written: string) => sendStatement(entity, props.facets(written)));
  const close = () => {
    setText(null);
    returnFocus();
  };
  if (text === null) {
    return (
      <span className={styles.value}>
        {props.children}
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
