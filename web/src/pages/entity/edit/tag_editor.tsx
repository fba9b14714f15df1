import { useState } from "react";
import { post } from "../../../api/client";
import { useChange, useGet, useMay } from "../../../api/queries";
import type { SearchPage, TagChanges } from "../../../api/types";
import { Icon } from "../../../design/icons";
import { TagBadge } from "../../../design/page";
import { Button } from "../../../design/parts";
import { useReturnFocus } from "./return_focus";
import styles from "./edit.module.css";

interface Change {
  tags?: string[];
  remove?: string[];
}

/** The tags of a dataset, job or column. A person with a writer's key can add and remove them. */
export function TagEditor({ entity, name, tags }: { entity: string; name: string; tags: readonly string[] }) {
  const mayWrite = useMay("writer");
  const [adding, setAdding] = useState(false);
  const [done, setDone] = useState("");
  const [addButton, returnFocus] = useReturnFocus();
  const change = useChange((wanted: Change) => post<TagChanges>("/v1/tags", { entity, ...wanted }));
  const state = (wanted: Change, words: string) =>
    change.mutate(wanted, {
      onSuccess: () => {
        setAdding(false);
        setDone(words);
        returnFocus();
      },
    });
  return (
    <div className={styles.tags} role="group" aria-label={`Tags of ${name}`}>
      {tags.map((tag) => (
        <span key={tag} className={styles.tag}>
          <TagBadge tag={tag} />
          {mayWrite ? (
            <button type="button" aria-label={`Remove the tag ${tag}`} title={`Remove the tag ${tag}`} disabled={change.isPending} onClick={() => state({ remove: [tag] }, `The tag ${tag} is removed.`)}>
              <Icon name="close" size={10} />
            </button>
          ) : null}
        </span>
      ))}
      {mayWrite && adding ? <NewTag known={tags} busy={change.isPending} add={(tag) => state({ tags: [tag] }, `The tag ${tag} is set.`)} cancel={() => setAdding(false)} /> : null}
      {mayWrite && !adding ? <button type="button" className={styles.add} ref={addButton} onClick={() => setAdding(true)}><Icon name="plus" size={11} />Add a tag</button> : null}
      <span role="status" className="visually-hidden">{done}</span>
      {change.error ? <span role="alert" className={styles.refused}>{change.error.message}</span> : null}
    </div>
  );
}

const USUAL = ["certified", "pii", "deprecated"];

function NewTag({ known, busy, add, cancel }: { known: readonly string[]; busy: boolean; add: (tag: string) => void; cancel: () => void }) {
  const [text, setText] = useState("");
  const used = useGet<SearchPage>("/v1/search", { limit: 1 });
  const choices = [...new Set([...USUAL, ...Object.keys(used.data?.facets.tag ?? {})])].filter((tag) => !known.includes(tag));
  return (
    <form
      className={styles.form}
      onSubmit={(event) => {
        event.preventDefault();
        if (text.trim()) add(text.trim());
      }}
      onKeyDown={(event) => {
        if (event.key === "Escape") cancel();
      }}
    >
      <input autoFocus aria-label="New tag" placeholder="certified or domain=sales" value={text} list="known-tags" spellCheck={false} autoComplete="off" onChange={(event) => setText(event.target.value)} />
      <datalist id="known-tags">{choices.map((tag) => <option key={tag} value={tag} />)}</datalist>
      <Button type="submit" disabled={busy || !text.trim()}>Add</Button>
      <Button kind="plain" icon="close" aria-label="Add no tag" onClick={cancel} />
    </form>
  );
}
