import { Link, useLocation } from "wouter";
import { Button } from "../../design/parts";
import { useOpenSearch } from "../../shell/open_search";
import styles from "./not_found.module.css";

/** The page of an unknown address, with links back. */
export default function NotFound() {
  const [location] = useLocation();
  const search = useOpenSearch();
  return (
    <div className={styles.page}>
      <svg viewBox="0 0 420 150" className={styles.river} aria-hidden="true">
        <rect x="8" y="56" width="92" height="38" rx="7" />
        <rect x="164" y="56" width="92" height="38" rx="7" />
        <rect x="320" y="56" width="92" height="38" rx="7" className={styles.missing} />
        <path d="M100 75h64" />
        <path d="M256 75h18" />
        <path d="M274 75c14 0 8 34 22 42M274 75c14 0 8-34 22-42M274 75h22" className={styles.lost} />
        <path d="M22 69h40M22 80h26M178 69h40M178 80h26" className={styles.words} />
      </svg>
      <h1>There is no such page</h1>
      <p>No page has the address <code>{location}</code>. It may have been mistyped, or the link is of another version.</p>
      <div className={styles.ways}>
        <Button kind="primary" icon="search" onClick={search}>Search everything</Button>
        <Link href="/">Home</Link>
        <Link href="/lineage">Lineage</Link>
        <Link href="/change">What if</Link>
        <Link href="/trust">Trust</Link>
      </div>
    </div>
  );
}
