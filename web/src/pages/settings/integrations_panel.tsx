import { useGet } from "../../api/queries";
import type { IntegrationList, IntegrationStatus } from "../../api/types";
import { asWords, formatAge, formatCount, formatTime } from "../../design/format";
import { EntityLink, Loaded, Table } from "../../design/page";
import { Badge, Panel } from "../../design/parts";
import styles from "./settings.module.css";

const NAMES: Record<string, string> = {
  atlas: "Apache Atlas", datahub: "DataHub", dbt: "dbt", delta: "Delta Lake", "kafka-connect": "Kafka Connect", mlflow: "MLflow",
  openmetadata: "OpenMetadata", sql: "SQL", unity: "Unity Catalog",
};

/** The systems that lineage comes from. Systems that sent events come first. */
export function IntegrationsPanel() {
  const answer = useGet<IntegrationList>("/v1/integrations");
  return (
    <Panel title="Integrations" flush label="Integrations">
      <Loaded query={answer} height={320}>
        {(data) => (
          <>
            <Table label="Integrations" head={["System", "State", "Jobs", "Last received", "Set up with"]} numeric={[2]}>
              {activeFirst(data.integrations).map((system) => (
                <tr key={system.name}>
                  <td><strong>{NAMES[system.name] ?? asWords(system.name)}</strong></td>
                  <td><State of={system} /></td>
                  <td data-numeric>{system.jobs ? formatCount(system.jobs) : ""}</td>
                  <td title={system.last_received ? formatTime(system.last_received) : undefined}>{system.last_received ? formatAge(system.last_received) : ""}{system.last_job ? <div><EntityLink id={system.last_job} /></div> : null}</td>
                  <td className={styles.setup}><code>{system.setup}</code></td>
                </tr>
              ))}
            </Table>
            {data.others.length ? <p className={styles.others}>Events also came from {data.others.join(", ")}.</p> : null}
          </>
        )}
      </Loaded>
    </Panel>
  );
}

/** Systems that sent events, the latest first; then the others by name. */
export function activeFirst(systems: readonly IntegrationStatus[]): IntegrationStatus[] {
  return [...systems].sort((one, other) => (other.last_received ?? "").localeCompare(one.last_received ?? "") || one.name.localeCompare(other.name));
}

function State({ of }: { of: IntegrationStatus }) {
  if (of.last_received) return <Badge tone="safe" icon="check">received</Badge>;
  if (of.installed === false) return <Badge tone="neutral">{of.extra ? `needs downriver[${of.extra}]` : "not installed"}</Badge>;
  return <Badge tone="info">ready</Badge>;
}
