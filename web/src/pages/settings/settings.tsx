import { useState } from "react";
import { accessKey, setAccessKey } from "../../api/client";
import { useGet, useMay } from "../../api/queries";
import type { Me, Status } from "../../api/types";
import { Segments, TextField } from "../../design/fields";
import { formatCount, formatTime } from "../../design/format";
import { Loaded, Page, Tabs, useTab, type Tab } from "../../design/page";
import { Badge, Button, Panel } from "../../design/parts";
import { chooseTheme, themeChoice, type ThemeChoice } from "../../design/theme";
import { AuditPanel } from "./audit_panel";
import { IntegrationsPanel } from "./integrations_panel";
import { KeysPanel } from "./keys_panel";
import { PolicyPanel } from "./policy_panel";
import { RetentionPanel } from "./retention_panel";
import { TagsPanel } from "./tags_panel";
import styles from "./settings.module.css";

const THEMES: Record<ThemeChoice, string> = { light: "Light", dark: "Dark", system: "As the system" };

type TabId = "general" | "policy" | "tags" | "integrations" | "administration";

const TABS: readonly Tab<TabId>[] = [
  { id: "general", label: "General" },
  { id: "policy", label: "Policy" },
  { id: "tags", label: "Tags" },
  { id: "integrations", label: "Integrations" },
];

/** The look of this browser, the key that it uses, and what the server is configured to do. */
export default function Settings() {
  const me = useGet<Me>("/v1/me");
  const isAdmin = useMay("admin");
  const tabs: readonly Tab<TabId>[] = isAdmin ? [...TABS, { id: "administration", label: "Administration" }] : TABS;
  const [active, choose] = useTab(tabs);
  return (
    <Page title="Settings" narrow>
      <Tabs tabs={tabs} active={active} choose={choose} label="Parts of the settings">
        {active === "general" ? (
          <>
            <Appearance />
            <Loaded query={me}>{(data) => <Access me={data} />}</Loaded>
            <Health />
          </>
        ) : null}
        {active === "policy" ? <PolicyPanel /> : null}
        {active === "tags" ? <TagsPanel /> : null}
        {active === "integrations" ? <IntegrationsPanel /> : null}
        {active === "administration" ? (
          <>
            <KeysPanel />
            <AuditPanel />
            <RetentionPanel />
          </>
        ) : null}
      </Tabs>
    </Page>
  );
}

function Appearance() {
  const [choice, setChoice] = useState(themeChoice);
  return (
    <Panel title="Appearance" label="Appearance">
      <div className={styles.theme}>
        <Segments
          label="Theme"
          value={choice}
          options={THEMES}
          change={(theme) => {
            chooseTheme(theme);
            setChoice(theme);
          }}
        />
      </div>
    </Panel>
  );
}

function Access({ me }: { me: Me }) {
  const [key, setKey] = useState("");
  const used = accessKey() !== null;
  return (
    <Panel title="Access" actions={<Badge tone="info" icon="lock">{me.role}</Badge>} label="Access">
      <p className={styles.lead}>
        {me.keys_required ? <>This browser uses the key <code>{me.key_id}</code>, with the role {me.role}.</> : "This server has no keys. It accepts only requests from this machine, and each of them has the role admin."}
      </p>
      <form
        className={styles.key}
        onSubmit={(event) => {
          event.preventDefault();
          setAccessKey(key.trim());
          setKey("");
        }}
      >
        <TextField label="Use another key in this tab" type="password" value={key} change={setKey} />
        <Button type="submit" disabled={!key.trim()}>Use</Button>
        {used ? <Button onClick={() => setAccessKey(null)}>Forget the key</Button> : null}
      </form>
    </Panel>
  );
}

function Health() {
  const status = useGet<Status>("/v1/status");
  return (
    <Panel title="Health" actions={status.data ? <Badge tone="safe" icon="check">answering</Badge> : undefined} label="Health">
      <Loaded query={status}>
        {(data) => (
          <dl className={styles.facts}>
            <div><dt>Store</dt><dd>{data.store}</dd></div>
            <div><dt>Last event received</dt><dd>{data.last_received ? formatTime(data.last_received) : "none"}</dd></div>
            {Object.entries(data.counts).map(([name, count]) => <div key={name}><dt>{name.replaceAll("_", " ")}</dt><dd>{formatCount(count)}</dd></div>)}
          </dl>
        )}
      </Loaded>
    </Panel>
  );
}
