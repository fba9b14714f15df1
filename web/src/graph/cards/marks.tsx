/** Marks of nodes and columns. Each has its own shape, so that it does not depend on colour. */

import { Icon, iconOf, type IconName } from "../../design/icons";
import { nameOf } from "../../design/format";
import type { GraphNode, ReachingTag } from "../graph_types";
import styles from "./marks.module.css";

interface MarkStyle {
  icon: IconName;
  tone: "certified" | "pii" | "warning" | "breaking" | "neutral";
  text: string;
}

const MARKS: Record<string, MarkStyle> = {
  certified: { icon: "shield", tone: "certified", text: "Certified" },
  pii: { icon: "lock", tone: "pii", text: "Contains personal data" },
  stale: { icon: "clock", tone: "warning", text: "Stale: not seen in recent runs" },
  failed: { icon: "breaking", tone: "breaking", text: "The last run failed" },
  broken: { icon: "warning", tone: "breaking", text: "Broken: the last run that writes it failed" },
  dropped: { icon: "close", tone: "neutral", text: "Dropped" },
};

export function markText(mark: string): string {
  return MARKS[mark]?.text ?? mark;
}

export function Mark({ mark }: { mark: string }) {
  const { icon, tone, text } = MARKS[mark] ?? { icon: "tag", tone: "neutral", text: mark };
  return (
    <span className={`${styles.mark} ${styles[tone]}`} title={text} role="img" aria-label={text}>
      <Icon name={icon} size={12} />
    </span>
  );
}

/** Tags that were set elsewhere and propagate to here. The outline and the arrow set them apart from tags of their own. */
export function ReachMark({ tags }: { tags: readonly ReachingTag[] }) {
  if (!tags.length) return null;
  const text = tags.map(({ tag, origin }) => `${tag} from ${nameOf(origin)}`).join("\n");
  const personal = tags.some(({ tag }) => tag === "pii");
  return (
    <span className={`${styles.mark} ${styles.reaching} ${personal ? styles.personal : ""}`} title={text} role="img" aria-label={text}>
      <Icon name="arrow" size={8} />
      <Icon name={personal ? "lock" : "tag"} size={10} />
    </span>
  );
}

/** The tags that reach columns of a node, each tag once. A mark of the node itself has precedence. */
export function reachingNode({ reaching, marks }: GraphNode): ReachingTag[] {
  const byTag = new Map<string, ReachingTag>();
  for (const found of reaching?.values() ?? []) for (const one of found) if (!marks.includes(one.tag) && !byTag.has(one.tag)) byTag.set(one.tag, one);
  return [...byTag.values()];
}

export function nodeIcon({ kind, type, members }: GraphNode): IconName {
  if (members !== undefined) return "topic";
  return kind === "job" ? "job" : iconOf(type);
}

/** The type in words: what a dataset is, or what runs a job. */
export function typeText({ kind, type, integration }: GraphNode): string {
  return (kind === "job" ? (integration ?? type) : type).replaceAll("_", " ");
}

/** The name of the CSS variable that holds the colour of a node's type. */
export function typeColour({ kind, type }: GraphNode): string {
  if (kind === "job") return "--type-job";
  const icon = type === "dbt_model" ? "view" : iconOf(type);
  return ["view", "file", "model", "dashboard", "topic"].includes(icon) ? `--type-${icon}` : "--type-table";
}
