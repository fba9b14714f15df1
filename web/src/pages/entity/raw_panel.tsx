import type { EntityView } from "../../api/types";
import { CopyButton, Empty, Panel } from "../../design/parts";
import styles from "./entity.module.css";

/** Facets as events contain them, and the answer of the API. */
export function RawPanel({ entity }: { entity: EntityView }) {
  const { facets, ...rest } = entity;
  return (
    <>
      <Json title="Facets" value={facets ?? {}} />
      <Json title="Answer of the API" value={rest} />
    </>
  );
}

export function Json({ title, value }: { title: string; value: unknown }) {
  const text = JSON.stringify(value, null, 2);
  const empty = value === null || (typeof value === "object" && Object.keys(value).length === 0);
  return (
    <Panel title={title} actions={<CopyButton text={text} />} flush label={title}>
      {empty ? <Empty title="None" /> : <pre className={styles.json} tabIndex={0} aria-label={title}>{text}</pre>}
    </Panel>
  );
}
