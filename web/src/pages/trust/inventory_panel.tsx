import { useState } from "react";
import { useAnswer } from "../../api/queries";
import type { InventoryCoverage, Kpis } from "../../api/types";
import { BarList } from "../../design/charts";
import { TextArea } from "../../design/fields";
import { formatCount, formatPercent } from "../../design/format";
import { EntityLink, Loaded } from "../../design/page";
import { Badge, Button, Panel } from "../../design/parts";
import styles from "./trust.module.css";

/** The share of existing tables that have lineage: for known inventories, and for a pasted list. */
export function InventoryPanel({ kpis }: { kpis: Kpis }) {
  return (
    <>
      {kpis.inventories?.map((coverage) => <Coverage key={coverage.source} of={coverage} />)}
      <PastedInventory />
    </>
  );
}

function PastedInventory() {
  const [text, setText] = useState("");
  const [tables, setTables] = useState<readonly string[]>([]);
  const answer = useAnswer<InventoryCoverage>("/v1/inventory", { source: "the pasted list", tables }, tables.length > 0);
  return (
    <>
      <Panel title="Compare with a list of tables" label="Compare with a list of tables">
        <p className={styles.meaning}>Lineage cannot know the tables that no event names. Paste the list of tables from your warehouse, one on each line, to see which of them have no lineage. Nothing is stored.</p>
        <form
          className={styles.inventory}
          onSubmit={(event) => {
            event.preventDefault();
            setTables(tablesOf(text));
          }}
        >
          <TextArea label="Tables" value={text} change={setText} placeholder={"warehouse.raw.orders\nwarehouse.analytics.stg_orders"} />
          <Button type="submit" kind="primary" disabled={tablesOf(text).length === 0}>Measure {tablesOf(text).length || ""}</Button>
        </form>
      </Panel>
      {tables.length ? <Loaded query={answer}>{(data) => <Coverage of={data} />}</Loaded> : null}
    </>
  );
}

/** The names in a list, one on each line or separated by commas. The header of a CSV file counts as a name. */
export function tablesOf(text: string): string[] {
  return [...new Set(text.split(/[\n,;]+/).map((name) => name.trim().replace(/^"(.*)"$/, "$1")).filter(Boolean))];
}

function Coverage({ of }: { of: InventoryCoverage }) {
  const { coverage } = of;
  return (
    <Panel title={`Coverage of ${of.source || "the inventory"}`} actions={<Badge tone={of.missing.length ? "warning" : "safe"}>{coverage.percent === null ? "no table" : formatPercent(coverage.percent)}</Badge>} label={`Coverage of ${of.source}`}>
      <BarList label="Tables with lineage" most={100} rows={[{ key: "all", name: "Tables with lineage", value: coverage.percent ?? 0, text: `${formatCount(coverage.count)} of ${formatCount(coverage.total)}` }]} />
      <div className={styles.lists}>
        <Names title="No event names it" names={of.missing} fine="Every table is known." />
        <Names title="Known, without an edge" names={of.without_edges} fine="Every known table has lineage." linked />
        <Names title="Has lineage, not in the list" names={of.not_listed} fine="The list has every dataset." linked />
      </div>
    </Panel>
  );
}

const SHOWN = 12;

function Names({ title, names, fine, linked = false }: { title: string; names: readonly string[]; fine: string; linked?: boolean }) {
  return (
    <section>
      <h3>{title} <Badge tone={names.length ? "warning" : "safe"}>{formatCount(names.length)}</Badge></h3>
      {names.length === 0 ? <p className={styles.muted}>{fine}</p> : null}
      <ul>{names.slice(0, SHOWN).map((name) => <li key={name}>{linked ? <EntityLink id={name} /> : <code>{name}</code>}</li>)}</ul>
      {names.length > SHOWN ? <p className={styles.muted}>and {formatCount(names.length - SHOWN)} more</p> : null}
    </section>
  );
}
