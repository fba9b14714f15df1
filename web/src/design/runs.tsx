/** Runs as every page shows them: state, times, counts. */

import { Link, useLocation } from "wouter";
import type { RunRecord } from "../api/types";
import { runPath } from "../shell/routes";
import { Bars, LineChart } from "./charts";
import { formatAge, formatBytes, formatCount, formatDuration, formatTime, nameOf, plural } from "./format";
import { EntityLink, Table } from "./page";
import { Badge } from "./parts";
import { runStateStyle, runStateText } from "./run_states";
import styles from "./runs.module.css";

export function RunState({ state }: { state: string }) {
  const { tone, icon, words } = runStateStyle(state);
  return <Badge tone={tone} icon={icon}>{words}</Badge>;
}

export function isFailed(run: { state: string }): boolean {
  return run.state === "FAIL" || run.state === "ABORT";
}

export function RunTable({ runs, label, withJob = true }: { runs: readonly RunRecord[]; label: string; withJob?: boolean }) {
  const head = ["State", ...(withJob ? ["Job"] : []), "Started", "Duration", "Rows written", "Quality", "Error"];
  return (
    <Table label={label} head={head} numeric={withJob ? [3, 4] : [2, 3]}>
      {runs.map((run) => (
        <tr key={run.id}>
          <td><Link href={runPath(run.id)} title={run.id}><RunState state={run.state} /></Link></td>
          {withJob ? <td><EntityLink id={run.job} /></td> : null}
          <td title={formatAge(run.started_at)}>{formatTime(run.started_at)}</td>
          <td data-numeric>{formatDuration(run.duration_seconds)}</td>
          <td data-numeric title={run.bytes_written ? formatBytes(run.bytes_written) : undefined}>{run.rows_written === null || run.rows_written === undefined ? "" : formatCount(run.rows_written)}</td>
          <td>{run.quality ? `${run.quality.passed} passed, ${run.quality.failed} failed` : ""}</td>
          <td className={styles.error} title={run.error ?? undefined}>{run.error}</td>
        </tr>
      ))}
    </Table>
  );
}

/** Durations as bars and rows as a line, from the oldest run to the newest. */
export function RunCharts({ runs }: { runs: readonly RunRecord[] }) {
  const [, navigate] = useLocation();
  const ordered = [...runs].reverse();
  const failed = runs.filter(isFailed).length;
  const rows = ordered.filter((run) => run.rows_written !== null && run.rows_written !== undefined);
  return (
    <div className={styles.charts}>
      <section>
        <h2>Duration</h2>
        <Bars
          label={`Duration of ${plural(runs.length, "run")}, ${failed} failed. The table below has each of them.`}
          onOpen={(bar) => navigate(runPath(bar.id))}
          bars={ordered.map((run) => ({
            id: run.id,
            value: run.duration_seconds ?? 0,
            tone: isFailed(run) ? "failed" : run.state === "COMPLETE" ? "normal" : "running",
            title: `${runStateText(run.state)} · ${formatTime(run.started_at)} · ${formatDuration(run.duration_seconds)}`,
          }))}
        />
        <p className={styles.caption}>{plural(runs.length, "run")}, {failed} failed{runs[0] ? `, latest ${formatAge(runs[0].started_at)} by ${nameOf(runs[0].job)}` : ""}</p>
      </section>
      <section>
        <h2>Rows written</h2>
        <LineChart label="Rows written" height={96} min={0} points={rows.map((run) => ({ at: run.started_at ?? run.ended_at ?? "", value: run.rows_written ?? null }))} />
      </section>
    </div>
  );
}
