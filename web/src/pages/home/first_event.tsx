import { CopyBlock, Panel } from "../../design/parts";
import styles from "./home.module.css";

/** Three ways to send the first event. The page changes by itself when one arrives. */
export function FirstEvent() {
  const url = window.location.origin;
  const event = JSON.stringify({
    eventType: "COMPLETE",
    eventTime: "2026-01-01T00:00:00Z",
    run: { runId: "0192a5c0-0000-7000-8000-000000000001" },
    job: { namespace: "demo", name: "daily_orders" },
    inputs: [{ namespace: "demo", name: "raw_orders" }],
    outputs: [{ namespace: "demo", name: "orders" }],
    producer: "https://example.com/first-event",
    schemaURL: "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent",
  });
  return (
    <div className={styles.first}>
      <h2>Send the first event</h2>
      <p className={styles.muted} role="status">Waiting for an event. This page shows it as soon as it arrives.</p>
      <div className={styles.ways}>
        <Panel title="Any OpenLineage client" label="Any OpenLineage client">
          <p>Airflow, Flink, Trino and others send events to a URL:</p>
          <CopyBlock text={`export OPENLINEAGE_URL=${url}`} />
          <p>Or try it with one event:</p>
          <CopyBlock text={`curl -X POST ${url}/api/v1/lineage \\\n  -H 'Content-Type: application/json' \\\n  -d '${event}'`} />
        </Panel>
        <Panel title="Spark" label="Spark">
          <p>Run a job as you do now; its lineage is captured by column:</p>
          <CopyBlock text={`DOWNRIVER_URL=${url} downriver run -- spark-submit job.py`} />
        </Panel>
        <Panel title="dbt" label="dbt">
          <p>After <code>dbt build</code> or <code>dbt docs generate</code>, in the folder of the project:</p>
          <CopyBlock text={`downriver capture dbt target`} />
        </Panel>
      </div>
    </div>
  );
}
