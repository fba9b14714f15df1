/** Code as text: SQL with marked names, and diffs. It is never parsed as HTML. */

import { useMemo } from "react";
import styles from "./code.module.css";

/** Divide code at the names to mark: whole words, in any letter case. */
export function splitAtNames(text: string, names: readonly string[]): { text: string; marked: boolean }[] {
  const wanted = names.filter(Boolean).map((name) => name.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  if (wanted.length === 0) return [{ text, marked: false }];
  const pattern = new RegExp(`(?<![\\w$])(${wanted.join("|")})(?![\\w$])`, "gi");
  return text.split(pattern).map((part, at) => ({ text: part, marked: at % 2 === 1 })).filter((part) => part.text !== "");
}

export function Code({ text, names = [], label, firstLine = 1 }: { text: string; names?: readonly string[]; label: string; firstLine?: number }) {
  const lines = useMemo(() => text.replace(/\n$/, "").split("\n").map((line) => splitAtNames(line, names)), [text, names]);
  return (
    <pre className={styles.code} tabIndex={0} aria-label={label}>
      {lines.map((parts, at) => (
        <span key={at} className={styles.line} data-line={firstLine + at}>
          {parts.map((part, piece) => (part.marked ? <mark key={piece}>{part.text}</mark> : part.text))}
          {"\n"}
        </span>
      ))}
    </pre>
  );
}

const KINDS: Record<string, string | undefined> = { "+": styles.added, "-": styles.removed, "@": styles.place };

export function DiffText({ diff, label }: { diff: string; label: string }) {
  return (
    <pre className={styles.diff} tabIndex={0} aria-label={label}>
      {diff.replace(/\n$/, "").split("\n").map((line, at) => (
        <span key={at} className={`${styles.row} ${/^(---|\+\+\+) /.test(line) ? styles.file : (KINDS[line[0] ?? ""] ?? "")}`}>{line}{"\n"}</span>
      ))}
    </pre>
  );
}
