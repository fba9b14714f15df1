import { useState } from "react";
import { request } from "../../api/client";
import { useChange, useGet, useMay } from "../../api/queries";
import type { EntityView, EvidenceRecord, EvidenceRecords } from "../../api/types";
import { save } from "../../design/download";
import { TextField } from "../../design/fields";
import { formatCount, formatTime } from "../../design/format";
import { Loaded, Table } from "../../design/page";
import { Badge, Button, Empty, Panel } from "../../design/parts";
import styles from "./entity.module.css";

/** Signed evidence about a dataset: make a pack, and the packs that were made. */
export function EvidencePanel({ entity }: { entity: EntityView }) {
  const packs = useGet<EvidenceRecords>("/v1/evidence", { dataset: entity.id });
  const mayWrite = useMay("writer");
  return (
    <>
      <Panel title="Evidence pack" label="Evidence pack">
        <p>One signed file for an auditor: the schema, the lineage up to every source, runs, checks, owners, and the place in the hash chain of the log. <code>downriver evidence verify FILE</code> proves it without this server.</p>
        {mayWrite ? <NewPack dataset={entity.id} /> : <p className={styles.muted}>A writer's key can make one.</p>}
      </Panel>
      <Panel title="Recorded packs" flush label="Recorded packs">
        <Loaded query={packs}>
          {(data) => data.packs.length === 0 ? <Empty title="No pack was made yet" /> : (
            <Table label="Recorded packs" head={["Pack", "About", "Made", "By", "Log entries", "Lineage"]} numeric={[4]}>
              {data.packs.map((pack) => <PackRow key={pack.id} pack={pack} />)}
            </Table>
          )}
        </Loaded>
      </Panel>
    </>
  );
}

function NewPack({ dataset }: { dataset: string }) {
  const [asOf, setAsOf] = useState("");
  const make = useChange(async () => {
    const response = await request("/v1/evidence", {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ dataset, as_of: asOf === "" ? null : new Date(asOf).toISOString() }),
    });
    const id = response.headers.get("X-Evidence-Id") ?? "";
    save(`evidence-${id.slice(0, 16)}.zip`, await response.blob());
    return id;
  });
  return (
    <form
      className={styles.packForm}
      onSubmit={(event) => {
        event.preventDefault();
        make.mutate(undefined);
      }}
    >
      <TextField label="As of (now, if empty)" type="datetime-local" value={asOf} change={setAsOf} />
      <Button type="submit" kind="primary" icon="download" disabled={make.isPending}>{make.isPending ? "Signing" : "Make and download"}</Button>
      <span role="status">{make.data ? <>Saved. Its id is <code>{make.data.slice(0, 16)}</code>.</> : null}</span>
      {make.error ? <span role="alert" className={styles.refused}>{make.error.message}</span> : null}
    </form>
  );
}

function PackRow({ pack }: { pack: EvidenceRecord }) {
  return (
    <tr>
      <td><code title={pack.id}>{pack.id?.slice(0, 16)}</code></td>
      <td>{formatTime(pack.as_of)}</td>
      <td>{formatTime(pack.created_at)}</td>
      <td>{pack.created_by}</td>
      <td data-numeric>{formatCount(pack.entries ?? 0)}</td>
      <td>{pack.complete ? <Badge tone="safe" icon="check">complete</Badge> : <Badge tone="warning" icon="blind">not complete</Badge>}</td>
    </tr>
  );
}
