import { useState } from "react";
import { post, request } from "../../api/client";
import { useChange, useGet } from "../../api/queries";
import type { CreatedKey, KeyInfo, Keys, Me, NewKey } from "../../api/types";
import { Choice, TextField } from "../../design/fields";
import { formatAge, formatTime } from "../../design/format";
import { Loaded, Table } from "../../design/page";
import { Badge, Button, CopyBlock, Empty, Panel } from "../../design/parts";
import styles from "./settings.module.css";

const ROLES = { reader: "Reader: asks", writer: "Writer: also sends events", admin: "Admin: also manages keys" } as const;
const PERIODS = { "90d": "In 90 days", "365d": "In a year", "30d": "In 30 days", never: "Never" } as const;
type Role = keyof typeof ROLES;
type Period = keyof typeof PERIODS;

/** The keys of the server. The first key is created on the command line, because every request needs a key after that. */
export function KeysPanel() {
  const keys = useGet<Keys>("/v1/keys");
  const me = useGet<Me>("/v1/me");
  const [adding, setAdding] = useState(false);
  const own = me.data?.key_id;
  const addButton = keys.data?.keys.length && !adding ? <Button icon="plus" onClick={() => setAdding(true)}>Create a key</Button> : undefined;
  return (
    <Panel title="Keys" flush label="Keys" actions={addButton}>
      {adding ? <NewKeyForm close={() => setAdding(false)} /> : null}
      <Loaded query={keys}>
        {(data) => data.keys.length === 0 ? <Empty title="No key exists">Create one with <code>downriver keys create NAME --role admin</code>. From then on every request needs a key.</Empty> : (
          <Table label="Keys" head={["Name", "Role", "Namespaces", "Created", "Expires", <span className="visually-hidden">Revoke</span>]}>
            {data.keys.map((key) => (
              <tr key={key.name}>
                <td>{key.name}{key.name === own ? <span className={styles.aside}> this browser</span> : null}</td>
                <td><Badge>{key.role}</Badge></td>
                <td>{key.namespaces.length === 0 ? "all" : key.namespaces.map((pattern) => <code key={pattern}>{pattern} </code>)}</td>
                <td title={formatTime(key.created_at)}>{formatAge(key.created_at)}</td>
                <td title={key.expires_at ? formatTime(key.expires_at) : undefined}><KeyExpiry of={key} /></td>
                <td className={styles.act}>{key.revoked_at || key.name === own ? null : <RevokeButton name={key.name} />}</td>
              </tr>
            ))}
          </Table>
        )}
      </Loaded>
    </Panel>
  );
}

function NewKeyForm({ close }: { close: () => void }) {
  const [name, setName] = useState("");
  const [role, setRole] = useState<Role>("writer");
  const [namespaces, setNamespaces] = useState("");
  const [expires, setExpires] = useState<Period>("90d");
  const create = useChange((wanted: NewKey) => post<CreatedKey>("/v1/keys", wanted));
  if (create.data) {
    return (
      <div className={styles.created} role="status">
        <p><strong>The key {create.data.name} is created.</strong> Copy it now: it is not shown again.</p>
        <CopyBlock text={create.data.key} label="Copy the key" />
        <Button onClick={close}>Done</Button>
      </div>
    );
  }
  return (
    <form
      className={styles.newKey}
      aria-label="New key"
      onSubmit={(event) => {
        event.preventDefault();
        create.mutate({ name: name.trim(), role, namespaces: splitPatterns(namespaces), expires: expires === "never" ? null : expires });
      }}
    >
      <TextField label="Name" value={name} change={setName} placeholder="airflow" autoFocus />
      <Choice label="Role" value={role} change={setRole} options={ROLES} />
      <TextField label="Namespaces, or all if empty" value={namespaces} change={setNamespaces} placeholder="postgres://warehouse*" />
      <Choice label="Expires" value={expires} change={setExpires} options={PERIODS} />
      <div className={styles.formEnd}>
        <Button type="submit" kind="primary" disabled={!name.trim() || create.isPending}>Create</Button>
        <Button kind="plain" onClick={close}>Cancel</Button>
        {create.error ? <span role="alert" className={styles.refused}>{create.error.message}</span> : null}
      </div>
    </form>
  );
}

/** Patterns of namespaces, separated by commas or spaces. */
export function splitPatterns(text: string): string[] {
  return text.split(/[,\s]+/).filter(Boolean);
}

function RevokeButton({ name }: { name: string }) {
  const [asked, setAsked] = useState(false);
  const revoke = useChange(() => request(`/v1/keys/${encodeURIComponent(name)}`, { method: "DELETE" }));
  if (revoke.error) return <span role="alert" className={styles.refused}>{revoke.error.message}</span>;
  if (!asked) return <Button kind="plain" aria-label={`Revoke ${name}`} onClick={() => setAsked(true)}>Revoke</Button>;
  return (
    <>
      <Button autoFocus disabled={revoke.isPending} aria-label={`Revoke ${name} for ever`} onClick={() => revoke.mutate(undefined)}>Revoke for ever</Button>
      <Button kind="plain" aria-label={`Keep ${name}`} onClick={() => setAsked(false)}>Keep</Button>
    </>
  );
}

function KeyExpiry({ of }: { of: KeyInfo }) {
  if (of.revoked_at) return <Badge tone="warning">revoked</Badge>;
  if (!of.expires_at) return <>never</>;
  if (new Date(of.expires_at).getTime() <= Date.now()) return <Badge tone="warning">expired</Badge>;
  return <>{formatTime(of.expires_at)}</>;
}
