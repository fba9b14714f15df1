import { useDeferredValue, useState } from "react";
import { Link } from "wouter";
import { useGet } from "../../api/queries";
import type { Popular, SearchPage, SearchHit } from "../../api/types";
import { Icon, iconOf } from "../../design/icons";
import { Empty, ErrorState, Skeleton } from "../../design/parts";
import { lineagePath } from "../../shell/routes";
import styles from "./lineage.module.css";

type Hit = Pick<SearchHit, "id" | "kind" | "label" | "type"> & { note: string };

/** The choice of a root: a search, and without text the most read datasets. */
export function RootSearch() {
  const [text, setText] = useState("");
  const wanted = useDeferredValue(text.trim());
  const found = useGet<SearchPage>("/v1/search", { text: wanted, limit: 20 }, wanted !== "");
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
          <List hits={popular.data.datasets.map((one) => ({ ...one, kind: "dataset", note: one.readers === 1 ? "1 reader" : `${one.readers} readers` }))} />
        </>
      ) : popular.data ? <Empty title="No dataset is known yet"><Link href="/">Home</Link> shows three ways to send the first event.</Empty> : null}
    </div>
  );
}

function Results({ answer, wanted }: { answer: ReturnType<typeof useGet<SearchPage>>; wanted: string }) {
  if (answer.error) return <ErrorState error={answer.error} retry={() => void answer.refetch()} />;
  if (!answer.data) return <Skeleton height={200} />;
  const hits = answer.data.hits.filter((hit) => hit.kind === "dataset" || hit.kind === "job");
  if (!hits.length) return <Empty title={`No dataset or job matches “${wanted}”`} />;
  return <List hits={hits.map((hit) => ({ ...hit, label: hit.label || hit.name, note: hit.namespace }))} />;
}

function List({ hits }: { hits: readonly Hit[] }) {
  return (
    <ul className={styles.hits}>
      {hits.map((hit) => (
        <li key={hit.id}>
          <Link href={lineagePath(hit.id)}>
            <Icon name={hit.kind === "job" ? "job" : iconOf(hit.type ?? undefined)} />
            <strong>{hit.label}</strong>
            <span title={hit.note}>{hit.note}</span>
          </Link>
        </li>
      ))}
    </ul>
  );
}
