import { useSearchParams } from "wouter";
import { useGet } from "../../api/queries";
import type { Kpis, RecordedVerdicts } from "../../api/types";
import { Segments } from "../../design/fields";
import { formatCount, plural } from "../../design/format";
import { Loaded, Page } from "../../design/page";
import { CopyBlock, Empty, Panel } from "../../design/parts";
import { VerdictList } from "./verdict_list";
import styles from "./verdicts.module.css";

const DECISIONS = { all: "All", BLOCKED: "Blocked", CAUTION: "Caution", APPROVED: "Approved" } as const;
type Shown = keyof typeof DECISIONS;

const MOST = 200;

/** The verdicts of the gate, the latest first, with their waivers. */
export default function Verdicts() {
  const [address, setAddress] = useSearchParams();
  const asked = address.get("decision") ?? "";
  const shown: Shown = asked in DECISIONS ? (asked as Shown) : "all";
  const choose = (decision: Shown) => setAddress(decision === "all" ? {} : { decision }, { replace: true });
  const verdicts = useGet<RecordedVerdicts>("/v1/verdicts", { limit: MOST, decision: shown === "all" ? undefined : shown });
  return (
    <Page title="Verdicts" lead="What the gate decided about changes, who waived a finding, and how far each change reaches.">
      <Numbers />
      <Panel title="Recorded verdicts" actions={<Segments label="Decision" value={shown} options={DECISIONS} change={choose} />} flush label="Recorded verdicts">
        <Loaded query={verdicts} height={260}>
          {(data) => data.verdicts.length === 0 ? <NoVerdict filtered={shown !== "all"} /> : (
            <>
              <VerdictList verdicts={data.verdicts} />
              {data.total > data.verdicts.length ? <p className={styles.more}>{formatCount(data.total - data.verdicts.length)} older verdicts are not shown.</p> : null}
            </>
          )}
        </Loaded>
      </Panel>
    </Page>
  );
}

function Numbers() {
  const kpis = useGet<Kpis>("/v1/kpis");
  return (
    <Loaded query={kpis} height={56}>
      {({ change_radius: radius }) => (
        <dl className={styles.numbers}>
          <div><dt>Changes in {radius.days} days</dt><dd>{formatCount(radius.changes)}</dd></div>
          <div><dt>Still blocked</dt><dd>{formatCount(radius.blocked)}</dd></div>
          <div><dt>Consumers affected per change</dt><dd>{radius.median === null ? "–" : formatCount(radius.median)}<small>median</small></dd></div>
          <div><dt>Largest change</dt><dd>{formatCount(radius.largest)}<small>{plural(radius.largest, "consumer").split(" ")[1]}</small></dd></div>
        </dl>
      )}
    </Loaded>
  );
}

function NoVerdict({ filtered }: { filtered: boolean }) {
  if (filtered) return <Empty title="No verdict with this decision" />;
  return (
    <Empty title="The gate has not decided about a change yet" action={<CopyBlock text="downriver gate --base main" />}>
      Run it on every pull request, and each verdict is recorded here.
    </Empty>
  );
}
