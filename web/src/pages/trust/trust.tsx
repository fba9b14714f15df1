import { useState } from "react";
import { useGet } from "../../api/queries";
import type { CertifiedPaths, CountWithExamples, Findings, KpiHistory, Kpis, ReachBucket, Share } from "../../api/types";
import { BarList, Histogram, LineChart } from "../../design/charts";
import { FindingList } from "../../design/findings";
import { formatCount, formatPercent, plural } from "../../design/format";
import { BlindSpots, EntityLink, Loaded, Owners, Page, Table, Tabs, useTab, type Tab } from "../../design/page";
import { Badge, Empty, Panel } from "../../design/parts";
import { Differences } from "../differences/difference_list";
import { ChecksPanel } from "./checks_panel";
import { FreshnessMap } from "./freshness_map";
import { HEADLINES, examplesOf, type Headline } from "./headlines";
import { InventoryPanel } from "./inventory_panel";
import { NamespaceCoverage } from "./namespace_coverage";
import { PiiReach } from "./pii_reach";
import styles from "./trust.module.css";

const TABS: readonly Tab<"overview" | "certified" | "checks" | "inventory" | "changes">[] = [
  { id: "overview", label: "Overview" },
  { id: "certified", label: "Certified and tagged" },
  { id: "checks", label: "Checks" },
  { id: "inventory", label: "Inventory" },
  { id: "changes", label: "Changes and drift" },
];

/** The shares of data that are known, owned, fresh and safe. Every number has a list of the counted entities. */
export default function Trust() {
  const kpis = useGet<Kpis>("/v1/kpis");
  const [active, choose] = useTab(TABS);
  return (
    <Page title="Trust" lead="How much of the data is known, documented, fresh and protected. Select a number to see what it counts.">
      <Tabs tabs={TABS} active={active} choose={choose} label="Parts of trust">
        {active === "overview" ? <Loaded query={kpis} height={420}>{(data) => <Numbers kpis={data} />}</Loaded> : null}
        {active === "certified" ? <><Certified /><PiiReach /></> : null}
        {active === "checks" ? <ChecksPanel /> : null}
        {active === "inventory" ? <Loaded query={kpis} height={240}>{(data) => <InventoryPanel kpis={data} />}</Loaded> : null}
        {active === "changes" ? <><Drift /><Differences /></> : null}
      </Tabs>
    </Page>
  );
}

function Numbers({ kpis }: { kpis: Kpis }) {
  const [chosen, setChosen] = useState<Headline["id"]>("coverage");
  const headline = HEADLINES.find((one) => one.id === chosen) ?? HEADLINES[0];
  return (
    <>
      <div className={styles.headlines} role="group" aria-label="KPIs">
        {HEADLINES.map((one) => (
          <button key={one.id} type="button" className={styles.headline} aria-pressed={one.id === chosen} onClick={() => setChosen(one.id)}>
            <span className={styles.name}>{one.name}</span>
            <span className={styles.value}>{one.value(kpis)}</span>
            <span className={styles.detail}>{one.detail(kpis)}</span>
          </button>
        ))}
      </div>
      {headline ? <BehindTheNumber headline={headline} kpis={kpis} /> : null}
      <div className={styles.halves}>
        <Shares kpis={kpis} />
        <NamespaceCoverage />
      </div>
      <div className={styles.halves}>
        <BlastRadius kpis={kpis} />
        <FreshnessMap />
      </div>
    </>
  );
}

function BehindTheNumber({ headline, kpis }: { headline: Headline; kpis: Kpis }) {
  const lists = headline.lists(kpis);
  return (
    <Panel title={headline.name} label={`${headline.name}: what the number counts`}>
      <p className={styles.meaning}>{headline.meaning}</p>
      {headline.past ? <History headline={headline} past={headline.past} /> : null}
      <div className={styles.lists}>
        {lists.map((list) => <Examples key={list.title} title={list.title} counted={list.counted} fine={list.fine} />)}
      </div>
    </Panel>
  );
}

function History({ headline: { id, name, format }, past }: { headline: Headline; past: NonNullable<Headline["past"]> }) {
  // Certified paths of the past are traced one by one, and only for this number.
  const history = useGet<KpiHistory>("/v1/kpis/history", id === "certified" ? { points: 12, certified: true } : { points: 30 });
  return (
    <Loaded query={history} height={110}>
      {(data) => <LineChart label={`${name} over time`} height={90} min={0} {...(format === formatPercent ? { max: 100 } : {})} format={format} points={data.points.map((point) => ({ at: point.at, value: past(point) }))} />}
    </Loaded>
  );
}

function Examples({ title, counted, fine }: { title: string; counted: CountWithExamples; fine: string }) {
  return (
    <section>
      <h3>{title} <Badge tone={counted.count ? "warning" : "safe"}>{formatCount(counted.count)}</Badge></h3>
      {counted.count === 0 ? <p className={styles.muted}>{fine}</p> : (
        <ul>{examplesOf(counted).map((id) => <li key={id}><EntityLink id={id} /></li>)}</ul>
      )}
      {counted.count > examplesOf(counted).length ? <p className={styles.muted}>and {formatCount(counted.count - examplesOf(counted).length)} more</p> : null}
    </section>
  );
}

type ShareName = { [K in keyof Kpis]-?: Kpis[K] extends Share ? K : never }[keyof Kpis];
type ListName = { [K in keyof Kpis]-?: Kpis[K] extends CountWithExamples ? K : never }[keyof Kpis];

/** The shares, each with the list of what it leaves out. */
const COVERAGES: readonly { share: ShareName; name: string; rest: ListName; missing: string; fine: string }[] = [
  { share: "lineage_coverage", name: "With at least one edge", rest: "without_edges", missing: "Without an edge", fine: "Every dataset and job is connected." },
  { share: "upstream_coverage", name: "Written with a known source", rest: "without_source", missing: "Written without a known source", fine: "Every written dataset has a known source." },
  { share: "column_coverage", name: "Columns with a source", rest: "columns_without_source", missing: "Columns without a source", fine: "Every column of a written dataset has a known source." },
  { share: "schema_coverage", name: "With a schema", rest: "without_schema", missing: "Without a schema", fine: "Every dataset has a schema." },
  { share: "owner_coverage", name: "With an owner", rest: "without_owner", missing: "Without an owner", fine: "Every dataset has an owner." },
  { share: "documentation_coverage", name: "With a description", rest: "without_description", missing: "Without a description", fine: "Every dataset has a description." },
];

function Shares({ kpis }: { kpis: Kpis }) {
  const rows = COVERAGES.map(({ share, name }) => {
    const { percent } = kpis[share];
    return { key: share, name, value: percent ?? 0, text: formatPercent(percent) };
  });
  return (
    <Panel title="Coverage" label="Coverage">
      <BarList label="Coverage" rows={rows} most={100} />
      <details className={styles.rest}>
        <summary>What is missing</summary>
        <div className={styles.lists}>
          {COVERAGES.map(({ rest, missing, fine }) => <Examples key={rest} title={missing} counted={kpis[rest]} fine={fine} />)}
        </div>
      </details>
    </Panel>
  );
}

function BlastRadius({ kpis }: { kpis: Kpis }) {
  const { top, median, largest, distribution } = kpis.blast_radius;
  return (
    <Panel title="Blast radius" actions={<span className={styles.muted}>median {median}, largest {formatCount(largest)}</span>} label="Blast radius">
      {top.length === 0 ? <Empty title="No dataset has a downstream" /> : (
        <div className={styles.parts}>
          <h3>Datasets by the number of datasets and jobs downstream</h3>
          <Histogram label="Datasets by the number of datasets and jobs downstream" columns={distribution.map(reachColumn)} />
          <h3>Largest</h3>
          <BarList label="Datasets with the largest blast radius" rows={top.map((dataset) => ({ key: dataset.dataset, name: <EntityLink id={dataset.dataset} />, value: dataset.downstream, tone: "warning" as const }))} />
        </div>
      )}
    </Panel>
  );
}

function reachColumn({ least, most, datasets }: ReachBucket): { range: string; count: number; title: string } {
  const range = least === most ? formatCount(least) : `${formatCount(least)}–${formatCount(most)}`;
  return { range, count: datasets, title: `${plural(datasets, "dataset")} with ${range} downstream` };
}

function Certified() {
  const certified = useGet<CertifiedPaths>("/v1/certified");
  return (
    <Panel title="Certified paths" flush label="Certified paths">
      <Loaded query={certified}>
        {(data) => data.datasets.length === 0 ? <Empty title="No dataset is certified">Tag a dataset with <code>certified</code> to watch whether its lineage is known up to every source.</Empty> : (
          <Table label="Certified datasets" head={["Dataset", "Lineage", "Upstream", "Owners", "Gaps"]} numeric={[2]}>
            {data.datasets.map((path) => (
              <tr key={path.dataset}>
                <td><EntityLink id={path.dataset} /></td>
                <td><Badge tone={path.intact ? "safe" : "warning"} icon={path.intact ? "check" : "blind"}>{path.intact ? "intact" : plural(path.gaps.length, "gap")}</Badge></td>
                <td data-numeric>{path.upstream}</td>
                <td><Owners owners={path.owners ?? []} /></td>
                <td><BlindSpots spots={path.gaps} /></td>
              </tr>
            ))}
          </Table>
        )}
      </Loaded>
    </Panel>
  );
}

function Drift() {
  const findings = useGet<Findings>("/v1/drift", { status: "all", limit: 30 });
  return (
    <Panel title="Drift and incidents" flush label="Drift and incidents">
      <Loaded query={findings}>
        {(data) => data.findings.length ? <FindingList findings={data.findings} /> : <Empty title="The monitor has found nothing">Run <code>downriver watch</code> to look for drift, late runs and failed checks.</Empty>}
      </Loaded>
    </Panel>
  );
}
