/** The small components that every page uses. */

import { useState, type ButtonHTMLAttributes, type ReactNode } from "react";
import { ApiError } from "../api/client";
import { Icon, type IconName } from "./icons";
import styles from "./parts.module.css";

export type Tone = "breaking" | "warning" | "safe" | "info" | "certified" | "pii" | "neutral";

type ButtonProps = ButtonHTMLAttributes<HTMLButtonElement> & {
  kind?: "normal" | "primary" | "plain";
  icon?: IconName;
};

export function Button({ kind = "normal", icon, children, className, ...rest }: ButtonProps) {
  const variant = kind === "normal" ? "" : styles[kind];
  return (
    <button type="button" className={`${styles.button} ${variant} ${className ?? ""}`} {...rest}>
      {icon ? <Icon name={icon} /> : null}
      {children}
    </button>
  );
}

export function Badge({ tone = "neutral", icon, children }: { tone?: Tone; icon?: IconName; children: ReactNode }) {
  return (
    <span className={`${styles.badge} ${tone === "neutral" ? "" : styles[tone]}`}>
      {icon ? <Icon name={icon} size={12} /> : null}
      {children}
    </span>
  );
}

export function Panel(props: { title?: ReactNode; actions?: ReactNode; children: ReactNode; flush?: boolean; label?: string }) {
  return (
    <section className={styles.panel} aria-label={props.label}>
      {props.title !== undefined || props.actions !== undefined ? (
        <header className={styles.panelHead}>
          <h2>{props.title}</h2>
          <div>{props.actions}</div>
        </header>
      ) : null}
      <div className={props.flush ? undefined : styles.panelBody}>{props.children}</div>
    </section>
  );
}

/** The empty state of a page: its meaning, and what to do. */
export function Empty({ title, children, action }: { title: string; children?: ReactNode; action?: ReactNode }) {
  return (
    <div className={styles.state}>
      <strong>{title}</strong>
      {children ? <div>{children}</div> : null}
      {action}
    </div>
  );
}

/** The message of a refusal without the similar names at its end: they are shown as links. */
export function withoutNear(error: ApiError): string {
  return error.near.length ? error.message.replace(/ Did you mean: .*$/s, "") : error.message;
}

export function ErrorState({ error, retry }: { error: unknown; retry?: () => void }) {
  const message = error instanceof ApiError ? withoutNear(error) : "The server cannot be reached.";
  return (
    <div className={styles.state} role="alert">
      <strong>{message}</strong>
      {error instanceof ApiError && error.near.length ? <div>Did you mean {error.near.join(", ")}?</div> : null}
      {retry ? <Button onClick={retry} icon="refresh">Try again</Button> : null}
    </div>
  );
}

/** A grey bar with the size of the content, so that nothing moves when the answer arrives. */
export function Skeleton({ height = 16, width = "100%" }: { height?: number; width?: number | string }) {
  return <div className={styles.skeleton} style={{ height, width }} aria-hidden="true" data-loading />;
}

export function CopyBlock({ text, label = "Copy" }: { text: string; label?: string }) {
  return (
    <div className={styles.copy}>
      <pre tabIndex={0}><code>{text}</code></pre>
      <CopyButton text={text} label={label} small={label === "Copy"} />
    </div>
  );
}

/** A small one has only its icon; its label is a tooltip, and its text for a screen reader. */
export function CopyButton({ text, label = "Copy", small = false }: { text: string; label?: string; small?: boolean }) {
  const [copied, setCopied] = useState(false);
  const copy = async () => {
    await navigator.clipboard.writeText(text);
    setCopied(true);
    setTimeout(() => setCopied(false), 1500);
  };
  return (
    <Button onClick={copy} icon={copied ? "check" : "copy"} aria-live="polite" title={small ? label : undefined}>
      <span className={small ? "visually-hidden" : undefined}>{copied ? "Copied" : label}</span>
    </Button>
  );
}
