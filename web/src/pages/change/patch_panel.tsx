import { useState } from "react";
import { ApiError } from "../../api/client";
import { useAnswer } from "../../api/queries";
import type { Fix } from "../../api/types";
import { DiffText } from "../../design/code";
import { plural } from "../../design/format";
import { EntityLink, Loaded, Tabs } from "../../design/page";
import { Badge, CopyBlock, CopyButton, Empty, Panel } from "../../design/parts";
import { placeOf } from "./effects";
import type { ChangeBody } from "./proposal";
import styles from "./change.module.css";

type TabId = "patch" | "manual" | "plan";

/** The patch for consumers, the manual steps, and the steps of a change without downtime. */
export function PatchPanel({ changes }: { changes: readonly Record<string, unknown>[] }) {
  const dataset = (changes as readonly ChangeBody[]).find((change) => change.dataset)?.dataset;
  const [tab, setTab] = useState<TabId>("patch");
  const fix = useAnswer<Fix>("/v1/fix", { entity_id: dataset, changes }, dataset !== undefined);
  // Without a repository the server has no code to patch, but it can still write the plan.
  const withoutCode = fix.error instanceof ApiError && fix.error.status === 400;
  const plan = useAnswer<Fix>("/v1/fix", { entity_id: dataset, changes, files: {} }, withoutCode);
  const query = withoutCode ? plan : fix;
  return (
    <Panel title="How to make this change" flush label="How to make this change">
      <div className={styles.patch}>
        <Loaded query={query}>
          {(data) => (
            <Tabs
              label="How to make this change"
              active={tab}
              choose={setTab}
              tabs={[
                { id: "patch", label: "Patch", count: data.patches.length },
                { id: "manual", label: "To decide", count: data.to_decide.length },
                { id: "plan", label: "Plan", count: data.plan.length },
              ]}
            >
              {tab === "patch" ? <Patches fix={data} withoutCode={withoutCode} /> : tab === "manual" ? <ToDecide fix={data} /> : <Plan fix={data} />}
            </Tabs>
          )}
        </Loaded>
      </div>
    </Panel>
  );
}

function Patches({ fix, withoutCode }: { fix: Fix; withoutCode: boolean }) {
  const absent = fix.absent ?? [];
  const diff = fix.patches.map((patch) => patch.diff).join("");
  if (fix.patches.length === 0) {
    return (
      <Empty title={withoutCode ? "The server has no code to patch" : "No patch for this change"}>
        {withoutCode ? <>Start it with <code>downriver serve --repo DIR</code>.</> : fix.to_decide.length ? "Its consumers need a decision: see “To decide”." : "No consumer needs one."}
        {absent.length ? <p>Files that are not in the repository: {absent.join(", ")}</p> : null}
      </Empty>
    );
  }
  return (
    <>
      <div className={styles.patchHead}>
        <Badge tone={fix.verified ? "safe" : "warning"} icon={fix.verified ? "check" : "warning"}>
          {fix.verified ? "Verified: with this patch no consumer is affected" : `Not verified: ${plural(fix.remaining.length, "consumer")} still affected`}
        </Badge>
        <CopyButton text={diff} label="Copy patch" />
      </div>
      {fix.patches.map((patch) => (
        <div key={`${patch.path} ${patch.consumer}`} className={styles.file}>
          <h3><code>{patch.path}</code> <Badge tone={patch.verified ? "safe" : "warning"} icon={patch.verified ? "check" : "warning"}>{patch.verified ? "verified" : "check by hand"}</Badge></h3>
          <DiffText diff={patch.diff} label={`Patch of ${patch.path}`} />
        </div>
      ))}
      {absent.length ? <p className={styles.note}>Not in the repository: {absent.join(", ")}</p> : null}
    </>
  );
}

function ToDecide({ fix }: { fix: Fix }) {
  if (fix.to_decide.length === 0) return <Empty title="Nothing is left to decide" />;
  return (
    <ul className={styles.steps}>
      {fix.to_decide.map((step, at) => (
        <li key={at}>
          <EntityLink id={step.consumer} /> {step.reason}
          {step.reference && placeOf(step.reference) ? <code className={styles.place}>{placeOf(step.reference)}</code> : null}
        </li>
      ))}
    </ul>
  );
}

function Plan({ fix }: { fix: Fix }) {
  if (fix.plan.length === 0) return <Empty title="No steps are needed">Only renames need to expand, migrate and contract.</Empty>;
  return (
    <>
      <ol className={styles.plan}>
        {fix.plan.map((step, at) => {
          const [phase, ...rest] = step.split(": ");
          return (
            <li key={at}>
              <Badge tone="info">{phase}</Badge> <span>{rest.join(": ")}</span>
            </li>
          );
        })}
      </ol>
      <CopyBlock text={fix.plan.map((step, at) => `${at + 1}. ${step}`).join("\n")} label="Copy plan" />
    </>
  );
}
