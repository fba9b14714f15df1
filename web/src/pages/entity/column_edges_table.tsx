import { Link } from "wouter";
import type { GraphColumnEdge } from "../../api/types";
import { nameOf } from "../../design/format";
import { EntityLink, Table } from "../../design/page";
import { Badge } from "../../design/parts";
import { columnPath } from "../../shell/routes";
import styles from "./entity.module.css";

/** Column edges with their meaning and evidence. */
export function ColumnEdgesTable({ edges, label }: { edges: readonly GraphColumnEdge[]; label: string }) {
  const described = edges.some((edge) => edge.description);
  return (
    <Table label={label} head={["From", "To", "How", ...(described ? ["Expression"] : []), "Job", "Confidence"]}>
      {edges.map((edge, at) => (
        <tr key={at}>
          <td><ColumnName {...edge.source} /></td>
          <td><ColumnName {...edge.target} /></td>
          <td>
            <Badge tone={edge.type === "DIRECT" ? "info" : "neutral"}>{edge.subtype.replaceAll("_", " ").toLowerCase()}</Badge>
            {edge.masking ? <Badge tone="pii" icon="lock">masked</Badge> : null}
          </td>
          {described ? <td className={styles.text}>{edge.description ? <code>{edge.description}</code> : null}</td> : null}
          <td>{edge.job ? <EntityLink id={edge.job} /> : null}{edge.location ? <div><code className={styles.place}>{edge.location}</code></div> : null}</td>
          <td>{edge.confidence}{edge.status === "stale" ? <Badge tone="warning">stale</Badge> : null}</td>
        </tr>
      ))}
    </Table>
  );
}

export function ColumnName({ dataset, column }: { dataset: string; column: string }) {
  return (
    <Link href={columnPath(dataset, column)} title={`${dataset} ${column}`} className={styles.columnPlace ?? ""}>
      <span>{column}</span>
      <small>{nameOf(dataset)}</small>
    </Link>
  );
}
