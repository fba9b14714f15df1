import { useDeferredValue, useState } from "react";
import { Link } from "wouter";
import { useGet } from "../../api/queries";
import { Icon, iconOf } from "../../design/icons";
import { Empty, ErrorState, Skeleton } from "../../design/parts";
import { lineagePath } from "../../shell/routes";
import styles from "./lineage.module.css";

interface Hit {
  id: string;
  kind: string;
  label?: string;
  name: string;
  namespace: string;
  type?: string | null;
}

interface Hits {
  hits: Hit[];
  total: number;
}

interface Popular {
  datasets: (Hit & { readers?: number })[];
}

/** Where the graph starts: a search, and before it the datasets that are read most. */
export function RootSearch() {
  const [text, setText] = useState("");
  const wanted = useDeferredValue(text.trim());
  const found = useGet<Hits>("/v1/search", { text: wanted, limit: 20 }, wanted !== "");
  const popular = useGet<Popular>("/v1/popular", { limit: 12 }, wanted === "");
  return (
    <div className={styles.start}>
      <h1>Lineage</h1>
      <p>Choose the dataset or job to start from. The graph opens one step around it.</p>
      <div className={styles.startBox}>
        <Icon name="search" />
        <input type="search" autoFocus value={text} aria-label="Search a dataset or job" placeholder="Search a dataset or job" onChange={(event) => setText(event.target.value)} />
      </div>
      {wanted ? <Results answer={found} wanted={wanted} /> : popular.data?.datasets?.length ? (
        <>
          <h2>Most read</h2>
          <List hits={popular.data.datasets} />
        </>
      ) : null}
    </div>
  );
}

function Results({ answer, wanted }: { answer: ReturnType<typeof useGet<Hits>>; wanted: string }) {
  if (answer.error) return <ErrorState error={answer.error} retry={() => void answer.refetch()} />;
  if (!answer.data) return <Skeleton height={200} />;
  const hits = answer.data.hits.filter((hit) => hit.kind === "dataset" || hit.kind === "job");
  if (!hits.length) return <Empty title={`No dataset or job matches “${wanted}”`} />;
  return <List hits={hits} />;
}

function List({ hits }: { hits: readonly Hit[] }) {
  return (
    <ul className={styles.hits}>
      {hits.map((hit) => (
        <li key={hit.id}>
          <Link href={lineagePath(hit.id)}>
            <Icon name={hit.kind === "job" ? "job" : iconOf(hit.type ?? undefined)} />
            <strong>{hit.label ?? hit.name}</strong>
            <span title={hit.namespace}>{hit.namespace}</span>
          </Link>
        </li>
      ))}
    </ul>
  );
}
