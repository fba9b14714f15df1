import { Link } from "wouter";
import { useGet } from "../../api/queries";
import type { SearchPage } from "../../api/types";
import { formatCount, plural } from "../../design/format";
import { Loaded, Table, TagBadge } from "../../design/page";
import { Empty, Panel } from "../../design/parts";
import styles from "./settings.module.css";

/** Every tag in use, the most used first, with links to its datasets. */
export function TagsPanel() {
  const page = useGet<SearchPage>("/v1/search", { limit: 1 });
  return (
    <Panel title="Tags" flush label="Tags">
      <p className={styles.note}>Tags come from events, from dbt, and from people: a dataset, job or column has its tags at the top of its page.</p>
      <Loaded query={page}>
        {(data) => {
          const tags = Object.entries(data.facets.tag ?? {});
          if (tags.length === 0) return <Empty title="No tag is in use">Open a dataset and add one, or run <code>downriver tag set NAME certified</code>.</Empty>;
          return (
            <>
              <Table label="Tags" head={["Tag", "Datasets and jobs", "See them"]} numeric={[1]}>
                {tags.map(([tag, count]) => (
                  <tr key={tag}>
                    <td><TagBadge tag={tag} /></td>
                    <td data-numeric>{formatCount(count)}</td>
                    <td><Link href={`/lineage?${new URLSearchParams({ q: `tag:${quoted(tag)}` }).toString()}`} aria-label={`Lineage of what is tagged ${tag}`}>Lineage</Link></td>
                  </tr>
                ))}
              </Table>
              {data.total_is_exact ? null : <p className={styles.others}>Counted among the first {plural(data.facets_of, "dataset or job", "datasets and jobs")}.</p>}
            </>
          );
        }}
      </Loaded>
    </Panel>
  );
}

/** A value of a selector: in quotes if it has a space or a sign of the selector language. */
export function quoted(value: string): string {
  return /^[\w.=:/*-]+$/.test(value) ? value : `"${value}"`;
}
