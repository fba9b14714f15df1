/** Fields of forms: each with its label. */

import { useId, type InputHTMLAttributes, type ReactNode } from "react";
import styles from "./fields.module.css";

export function Field({ label, children }: { label: string; children: (id: string) => ReactNode }) {
  const id = useId();
  return (
    <div className={styles.field}>
      <label htmlFor={id}>{label}</label>
      {children(id)}
    </div>
  );
}

/** A text field; with `choices`, it offers them and takes other text as well. */
export function TextField({ label, value, change, choices, ...rest }: { label: string; value: string; change: (text: string) => void; choices?: readonly string[] } & Omit<InputHTMLAttributes<HTMLInputElement>, "onChange">) {
  const list = useId();
  return (
    <Field label={label}>
      {(id) => (
        <>
          <input {...rest} id={id} className={styles.input} value={value} list={choices ? list : undefined} spellCheck={false} autoComplete="off" onChange={(event) => change(event.target.value)} />
          {choices ? <datalist id={list}>{choices.map((choice) => <option key={choice} value={choice} />)}</datalist> : null}
        </>
      )}
    </Field>
  );
}

export function Choice<T extends string>(props: { label: string; value: T; change: (value: T) => void; options: Readonly<Record<T, string>> }) {
  return (
    <Field label={props.label}>
      {(id) => (
        <select id={id} className={styles.input} value={props.value} onChange={(event) => props.change(event.target.value as T)}>
          {Object.entries<string>(props.options).map(([value, label]) => <option key={value} value={value}>{label}</option>)}
        </select>
      )}
    </Field>
  );
}

export function TextArea(props: { label: string; value: string; change: (text: string) => void; placeholder?: string }) {
  return (
    <Field label={props.label}>
      {(id) => (
        <textarea id={id} className={`${styles.input} ${styles.area}`} value={props.value} placeholder={props.placeholder} spellCheck={false} onChange={(event) => props.change(event.target.value)} />
      )}
    </Field>
  );
}

/** A choice of a few, all visible. */
export function Segments<T extends string>(props: { label: string; value: T; change: (value: T) => void; options: Readonly<Record<T, string>> }) {
  return (
    <div className={styles.segments} role="group" aria-label={props.label}>
      {Object.entries<string>(props.options).map(([value, label]) => (
        <button key={value} type="button" aria-pressed={value === props.value} onClick={() => props.change(value as T)}>{label}</button>
      ))}
    </div>
  );
}
