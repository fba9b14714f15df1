import { Link } from "wouter";
import { useGet } from "../../api/queries";
import type { CertifiedPaths, Finding, Findings, Kpis, Popular, RecordedVerdicts, Runs, Status } from "../../api/types";
import { FindingList } from "../../design/findings";
import { formatCount, formatTime, plural } from "../../design/format";
import { Icon } from "../../design/icons";
import { EntityLink, Loaded } from "../../design/page";
import { Badge, Empty, Panel } from "../../design/parts";
import { RunState } from "../../design/runs";
import { useOpenSearch } from "../../shell/open_search";
import { useRecent } from "../../shell/recent";
import { runPath } from "../../shell/routes";
import { VerdictList } from "../verdicts/verdict_list";
import { FirstEvent } from "./first_event";
import styles from "./home.module.css";

/** The search, and what needs attention today. */
export default function Home() {
  const status = useGet<Status>("/v1/status");
  const kpis = useGet<Kpis>("/v1/kpis");
  const search = useOpenSearch();
  const empty = status.data?.counts.events === 0;
  return (
    <div className={styles.home}>
      <header className={styles.hero}>
        <h1>If I change this, what breaks?</h1>
        <button type="button" className={styles.search} onClick={search}>
          <Icon name="search" size={20} />
          <span>Search datasets, columns, jobs, tags, owners</span>
          <kbd>/</kbd>
        </button>
        <p className={styles.counts}>{status.data && (empty || kpis.data) ? countsOf(status.data, kpis.data) : "\u00a0"}</p>
      </header>
      {empty ? <FirstEvent /> : <Attention />}
    </div>
  );
}

/** Datasets as the KPIs count them: one with several names is one. */
function countsOf({ counts }: Status, kpis: Kpis | undefined): string {
  if (counts.events === 0 || kpis === undefined) return "The store is empty.";
  return [plural(kpis.datasets, "dataset"), plural(kpis.columns, "column"), plural(kpis.jobs, "job"), plural(counts.runs, "run"), plural(counts.events, "event")].join(" · ");
}

function Attention() {
  return (
    <div className={styles.grid}>
      <div className={styles.main}>
        <OpenFindings />
        <RunProblems />
        <RecentVerdicts />
      </div>
      <div className={styles.side}>
        <CertifiedGaps />
        <Recent />
        <MostRead />
      </div>
    </div>
  );
}

const SHOWN = 6;
const SORTED = 100; // findings from which the gravest are shown
const GRAVITY = ["critical", "warning", "info"];

/** Findings of the same severity keep their order: the newest first. */
export function gravestFirst(findings: readonly Finding[]): Finding[] {
  return findings.toSorted((one, other) => GRAVITY.indexOf(one.severity) - GRAVITY.indexOf(other.severity));
}

function OpenFindings() {
  const findings = useGet<Findings>("/v1/drift", { limit: SORTED });
  const total = findings.data?.total ?? 0;
  return (
    <Panel title="Open findings" actions={total ? <Badge tone="warning">{formatCount(total)}</Badge> : undefined} flush label="Open findings">
      <Loaded query={findings} height={140}>
        {(data) => data.findings.length ? <FindingList findings={gravestFirst(data.findings).slice(0, SHOWN)} /> : (
          <p className={styles.quiet}><Icon name="check" size={14} /> No open finding. <code>downriver watch</code> looks for drift, late runs and failed checks.</p>
        )}
      </Loaded>
    </Panel>
  );
}

function RunProblems() {
  const runs = useGet<Runs>("/v1/runs", { state: "FAIL", limit: SHOWN });
  const kpis = useGet<Kpis>("/v1/kpis");
  const late = kpis.data?.late_jobs.examples.slice(0, SHOWN) ?? [];
  return (
    <Panel title="Failed and late runs" flush label="Failed and late runs">
      <Loaded query={runs} height={140}>
        {(data) => data.runs.length + late.length ? (
          <ul className={styles.runs}>
            {late.map((job) => (
              <li key={job}><Badge tone="warning" icon="clock">Late</Badge><EntityLink id={job} /><span className={styles.muted}>The next run is overdue.</span></li>
            ))}
            {data.runs.map((run) => (
              <li key={run.id}>
                <Link href={runPath(run.id)} title={run.id}><RunState state={run.state} /></Link>
                <EntityLink id={run.job} />
                <span className={styles.error} title={run.error ?? undefined}>{run.error}</span>
                <time title={run.ended_at ?? undefined}>{formatTime(run.ended_at ?? run.started_at)}</time>
              </li>
            ))}
          </ul>
        ) : <p className={styles.quiet}><Icon name="check" size={14} /> No failed or late run is known.</p>}
      </Loaded>
    </Panel>
  );
}

function RecentVerdicts() {
  const verdicts = useGet<RecordedVerdicts>("/v1/verdicts", { limit: 4 });
  return (
    <Panel title="Recent verdicts" actions={<Link href="/verdicts">All verdicts</Link>} flush label="Recent verdicts">
      <Loaded query={verdicts} height={140}>
        {(data) => data.verdicts.length ? <VerdictList verdicts={data.verdicts} short /> : (
          <Empty title="No verdict is recorded">Run <code>downriver gate</code> on pull requests, and its verdicts appear here.</Empty>
        )}
      </Loaded>
    </Panel>
  );
}

function CertifiedGaps() {
  const certified = useGet<CertifiedPaths>("/v1/certified");
  return (
    <Panel title="Certified paths" flush label="Certified paths">
      <Loaded query={certified} height={90}>
        {(data) => {
          const gaps = data.datasets.filter((path) => !path.intact);
          if (data.datasets.length === 0) return <Empty title="No dataset is certified">Tag one with <code>certified</code> to watch its lineage.</Empty>;
          return (
            <ul className={styles.list}>
              {gaps.length === 0 ? <li><Badge tone="safe" icon="check">All {data.datasets.length} are intact</Badge></li> : null}
              {gaps.slice(0, SHOWN).map((path) => (
                <li key={path.dataset}><EntityLink id={path.dataset} /><Badge tone="warning" icon="blind">{plural(path.gaps.length, "gap")}</Badge></li>
              ))}
              {gaps.length === 0 ? data.datasets.slice(0, SHOWN).map((path) => <li key={path.dataset}><EntityLink id={path.dataset} /><span className={styles.muted}>{path.upstream} upstream</span></li>) : null}
            </ul>
          );
        }}
      </Loaded>
    </Panel>
  );
}

function Recent() {
  const recent = useRecent();
  if (recent.length === 0) return null;
  return (
    <Panel title="Recent" flush label="Recent">
      <ul className={styles.list}>
        {recent.slice(0, SHOWN).map((entity) => <li key={entity.id}><EntityLink id={entity.id} label={entity.name} type={entity.kind === "job" ? "job" : entity.type} /><span className={styles.muted}>{entity.namespace}</span></li>)}
      </ul>
    </Panel>
  );
}

function MostRead() {
  const popular = useGet<Popular>("/v1/popular", { limit: 8 });
  return (
    <Panel title="Most read" flush label="Most read">
      <Loaded query={popular} height={160}>
        {(data) => data.datasets.length ? (
          <ul className={styles.list}>
            {data.datasets.map((dataset) => <li key={dataset.id}><EntityLink id={dataset.id} label={dataset.label} type={dataset.type} /><span className={styles.muted}>{plural(dataset.readers, "reader")}</span></li>)}
          </ul>
        ) : <Empty title="Nothing is read yet" />}
      </Loaded>
    </Panel>
  );
}
