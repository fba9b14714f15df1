import { useGet } from "../../api/queries";
import type { RunRecord, Runs } from "../../api/types";
import { HeatMap, type HeatRow } from "../../design/charts";
import { formatDay, plural } from "../../design/format";
import { EntityLink, Loaded } from "../../design/page";
import { Empty, Panel } from "../../design/parts";
import { isFailed } from "../../design/runs";
import styles from "./trust.module.css";

const DAYS = 14;
const ROWS = 18;
const DAY = 86_400_000;

/** Whether each dataset was written on each of the last days on which anything ran. */
export function FreshnessMap() {
  const runs = useGet<Runs>("/v1/runs", { limit: 500 });
  return (
    <Panel title="Freshness" actions={<span className={styles.legend}><i data-level="0" />written <i data-level="1" />some failed <i data-level="2" />failed <i />no run</span>} label="Freshness">
      <Loaded query={runs} height={220}>
        {(data) => {
          const { rows, days } = freshnessRows(data.runs);
          return rows.length === 0 ? <Empty title="No run is known" /> : <HeatMap label="Freshness by dataset and day" rows={rows} columns={days} />;
        }}
      </Loaded>
    </Panel>
  );
}

/** One row for each written dataset, one cell for each of the last days on which anything ran. */
export function freshnessRows(runs: readonly RunRecord[]): { rows: HeatRow[]; days: string[] } {
  const ended = runs.flatMap((run) => {
    const time = Date.parse(run.ended_at ?? run.started_at ?? "");
    return Number.isNaN(time) ? [] : [{ run, day: Math.floor(time / DAY) }];
  });
  if (ended.length === 0) return { rows: [], days: [] };
  const days = [...new Set(ended.map(({ day }) => day))].sort((one, other) => one - other).slice(-DAYS);
  const datasets = new Map<string, Map<number, { good: number; bad: number }>>();
  for (const { run, day } of ended) {
    for (const id of run.outputs) {
      const cells = datasets.get(id) ?? new Map<number, { good: number; bad: number }>();
      const cell = cells.get(day) ?? { good: 0, bad: 0 };
      if (isFailed(run)) cell.bad += 1;
      else if (run.state === "COMPLETE") cell.good += 1;
      cells.set(day, cell);
      datasets.set(id, cells);
    }
  }
  const names = days.map((day) => formatDay(new Date(day * DAY).toISOString()));
  const rows = [...datasets]
    .sort(([one, its], [other, others]) => count(others, days) - count(its, days) || one.localeCompare(other))
    .filter(([, cells]) => count(cells, days) > 0)
    .slice(0, ROWS)
    .map(([id, cells]) => ({
      key: id,
      name: <EntityLink id={id} />,
      cells: days.map((day, at) => cellOf(cells.get(day), names[at] ?? "")),
    }));
  return { rows, days: names };
}

function count(cells: ReadonlyMap<number, unknown>, days: readonly number[]): number {
  return days.filter((day) => cells.has(day)).length;
}

function cellOf(cell: { good: number; bad: number } | undefined, day: string): HeatRow["cells"][number] {
  if (cell === undefined) return { level: null, title: `${day}: no run` };
  if (cell.bad === 0) return { level: 0, title: `${day}: written by ${plural(cell.good, "run")}` };
  return { level: cell.good ? 1 : 2, title: `${day}: ${plural(cell.bad, "run")} failed` };
}
