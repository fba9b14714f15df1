import { useEffect, type ReactNode } from "react";
import { Link, useSearchParams } from "wouter";
import { useGet } from "../../api/queries";
import type { EntityView } from "../../api/types";
import { formatAge, formatTime, nameOf, plural } from "../../design/format";
import { Icon, iconOf } from "../../design/icons";
import { AsOf, BlindSpots, Page, PresentOnly, Tabs, useTab, type Tab } from "../../design/page";
import { Badge, Empty, ErrorState, Skeleton } from "../../design/parts";
import { RunState } from "../../design/runs";
import { rememberEntity } from "../../shell/recent";
import { changePath, lineagePath } from "../../shell/routes";
import buttons from "../../design/parts.module.css";
import { ColumnPage } from "./column_page";
import { ColumnLineagePanel } from "./column_lineage";
import { CodePanel } from "./code_panel";
import { DescriptionEditor, OwnersEditor } from "./edit/description_editor";
import { TagEditor } from "./edit/tag_editor";
import { EvidencePanel } from "./evidence_panel";
import { HistoryPanel } from "./history_panel";
import { IncidentPanel } from "./incident_panel";
import { Neighbourhood } from "./neighbourhood";
import { NeighboursPanel } from "./neighbours";
import { QualityPanel } from "./quality_panel";
import { RawPanel } from "./raw_panel";
import { RunsPanel } from "./runs_panel";
import { SchemaPanel } from "./schema_panel";
import styles from "./entity.module.css";

type TabId = "schema" | "columns" | "neighbours" | "runs" | "code" | "quality" | "incident" | "history" | "evidence" | "raw";

/** Everything about one dataset, job or column. */
export default function Entity() {
  const [address, setAddress] = useSearchParams();
  const id = address.get("id") ?? "";
  const asOf = address.get("as_of") ?? undefined;
  const entity = useGet<EntityView>("/v1/entity", { entity: id, as_of: asOf }, id !== "");
  const column = address.get("column");
  if (id === "") return <Page title="Entity"><Empty title="Choose a dataset, job or column">Press / to search.</Empty></Page>;
  if (entity.data === undefined || entity.isPlaceholderData || entity.error) {
    return (
      <Page title={<span className={styles.pending}>{nameOf(id)}</span>}>
        {entity.error ? <ErrorState error={entity.error} retry={() => void entity.refetch()} /> : <div data-loading><Skeleton height={320} /></div>}
      </Page>
    );
  }
  const leave = () => setAddress((old) => {
    const next = new URLSearchParams(old);
    next.delete("as_of");
    return next;
  });
  const past = asOf ? <AsOf at={asOf} leave={leave} /> : null;
  if (column) return <ColumnPage entity={entity.data} column={column} asOf={asOf} past={past} />;
  return <Details key={entity.data.id} entity={entity.data} asOf={asOf} past={past} />;
}

/** Tabs whose answers are those of the present, also when the page shows a moment in the past. */
const PRESENT_TABS: ReadonlySet<string> = new Set<TabId>(["columns", "runs", "code", "quality", "incident", "history", "evidence", "raw"]);

/** With `past`, the page shows a moment in the past. */
function Details({ entity, asOf, past }: { entity: EntityView; asOf: string | undefined; past: ReactNode }) {
  const isJob = entity.kind === "job";
  const tabs: Tab<TabId>[] = [
    ...(isJob ? [] : [{ id: "schema" as const, label: "Schema", count: entity.columns.length }, { id: "columns" as const, label: "Column lineage" }]),
    { id: "neighbours", label: isJob ? "Inputs and outputs" : "Neighbours", count: entity.upstream.length + entity.downstream.length },
    { id: "runs", label: "Runs" },
    { id: "code", label: "Code" },
    { id: "quality", label: "Quality and drift" },
    { id: "incident", label: "Incident report" },
    { id: "history", label: "History" },
    ...(isJob ? [] : [{ id: "evidence" as const, label: "Evidence" }]),
    { id: "raw", label: "Raw" },
  ];
  const [active, choose] = useTab(tabs);
  useEffect(() => rememberEntity(entity), [entity]);
  useEffect(() => {
    document.title = `${entity.name} · Downriver`;
  }, [entity.name]);

  return (
    <Page
      title={<span className={styles.title}><Icon name={iconOf(isJob ? "job" : entity.type)} size={22} />{entity.name}</span>}
      lead={<DescriptionEditor entity={entity} />}
      badges={
        <>
          <Badge>{entity.type.replaceAll("_", " ")}</Badge>
          <span className={styles.namespace} title="Namespace">in <code>{entity.namespace}</code></span>
          <TagEditor entity={entity.id} name={entity.name} tags={entity.tags} />
        </>
      }
      actions={
        <>
          <Link href={lineagePath(entity.id, undefined, asOf)} className={buttons.button ?? ""}><Icon name="graph" />Lineage</Link>
          {isJob ? null : <Link href={changePath(entity.id, undefined, asOf)} className={`${buttons.button} ${buttons.primary}`}><Icon name="change" />What if</Link>}
        </>
      }
    >
      {past}
      <Facts entity={entity} />
      <BlindSpots spots={entity.blind_spots} />
      <Tabs tabs={tabs} active={active} choose={choose} label={`About ${entity.name}`}>
        {asOf && PRESENT_TABS.has(active) ? <PresentOnly at={asOf} /> : null}
        {active === "schema" ? <><SchemaPanel entity={entity} /><Neighbourhood root={entity.id} asOf={asOf} /></> : null}
        {active === "columns" ? <ColumnLineagePanel entity={entity} /> : null}
        {active === "neighbours" ? <><NeighboursPanel entity={entity} />{isJob ? <Neighbourhood root={entity.id} asOf={asOf} /> : null}</> : null}
        {active === "runs" ? <RunsPanel entity={entity} /> : null}
        {active === "code" ? <CodePanel entity={entity} /> : null}
        {active === "quality" ? <QualityPanel entity={entity} /> : null}
        {active === "incident" ? <IncidentPanel entity={entity} /> : null}
        {active === "history" ? <HistoryPanel entity={entity} /> : null}
        {active === "evidence" ? <EvidencePanel entity={entity} /> : null}
        {active === "raw" ? <RawPanel entity={entity} /> : null}
      </Tabs>
    </Page>
  );
}

function Facts({ entity }: { entity: EntityView }) {
  const run = entity.runs[0];
  return (
    <dl className={styles.facts}>
      <div><dt>Owners</dt><dd><OwnersEditor entity={entity} /></dd></div>
      {entity.kind === "job" ? null : <div><dt>Last updated</dt><dd title={formatTime(entity.last_updated)}>{entity.last_updated ? formatAge(entity.last_updated) : "unknown"}</dd></div>}
      <div><dt>Last run</dt><dd>{run ? <><RunState state={run.state} /> {formatAge(run.ended_at ?? run.started_at)}</> : "no run is known"}</dd></div>
      <div><dt>Upstream</dt><dd>{plural(entity.upstream.length, "source")}</dd></div>
      <div><dt>Downstream</dt><dd>{plural(entity.downstream.length, "consumer")}</dd></div>
      <div><dt>First seen</dt><dd title={formatTime(entity.first_seen)}>{formatAge(entity.first_seen)}</dd></div>
      <div><dt>Lineage</dt><dd>{entity.complete ? <Badge tone="safe" icon="check">complete</Badge> : <Badge tone="warning" icon="blind">not complete</Badge>}</dd></div>
      {entity.aliases.length ? <div><dt>Also named</dt><dd title={entity.aliases.join("\n")}>{plural(entity.aliases.length, "other name")}</dd></div> : null}
    </dl>
  );
}
