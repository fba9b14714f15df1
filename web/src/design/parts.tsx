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

/** What is shown where there is nothing to show: what it means, and what to do. */
export function Empty({ title, children, action }: { title: string; children?: ReactNode; action?: ReactNode }) {
  return (
    <div className={styles.state}>
      <strong>{title}</strong>
      {children ? <div>{children}</div> : null}
      {action}
    </div>
  );
}

export function ErrorState({ error, retry }: { error: unknown; retry?: () => void }) {
  const message = error instanceof ApiError ? error.message : "The server could not be reached.";
  return (
    <div className={styles.state} role="alert">
      <strong>{message}</strong>
      {error instanceof ApiError && error.near.length ? <div>Did you mean {error.near.join(", ")}?</div> : null}
      {retry ? <Button onClick={retry} icon="refresh">Try again</Button> : null}
    </div>
  );
}

/** A grey bar of the size of what will be there: nothing moves when the answer arrives. */
export function Skeleton({ height = 16, width = "100%" }: { height?: number; width?: number | string }) {
  return <div className={styles.skeleton} style={{ height, width }} aria-hidden="true" data-loading />;
}

export function CopyBlock({ text, label = "Copy" }: { text: string; label?: string }) {
  return (
    <div className={styles.copy}>
      <pre tabIndex={0}><code>{text}</code></pre>
      <CopyButton text={text} label={label} />
    </div>
  );
}

export function CopyButton({ text, label = "Copy" }: { text: string; label?: string }) {
  const [copied, setCopied] = useState(false);
  const copy = async () => {
    await navigator.clipboard.writeText(text);
    setCopied(true);
    setTimeout(() => setCopied(false), 1500);
  };
  return (
    <Button onClick={copy} icon={copied ? "check" : "copy"} aria-live="polite">
      {copied ? "Copied" : label}
    </Button>
  );
}
