import { useEffect, useState } from "react";
import { useGet } from "../../api/queries";
import type { GraphChange, GraphChanges } from "../../api/types";
import { formatTime } from "../../design/format";
import { Icon } from "../../design/icons";
import { Button } from "../../design/parts";
import type { LineageState, SetState } from "./url_state";
import styles from "./time_slider.module.css";

const MOST_TICKS = 200;

/** The moments at which the graph changed. One handle shows a moment, a second one compares with an earlier one. */
export function TimeSlider({ state, setState, root }: { state: LineageState; setState: SetState; root: string }) {
  const answer = useGet<GraphChanges>("/v1/changes", { entity: root, limit: MOST_TICKS });
  const ticks = (answer.data?.changes ?? []).toSorted((a, b) => a.at.localeCompare(b.at));
  const now = ticks.length; // the position after the last tick
  const position = state.asOf === undefined ? now : nearestTick(ticks, state.asOf);
  const compared = state.diff === undefined ? undefined : nearestTick(ticks, state.diff);
  const moment = (index: number) => (index >= now ? undefined : ticks[index]!.at);
  if (!ticks.length) return <div className={styles.strip}><span className={styles.none}>{answer.isPending ? "" : "No earlier state of this graph is recorded."}</span></div>;
  return (
    <section className={styles.strip} aria-label="Time">
      <div className={styles.moment}>
        <Icon name="clock" size={14} />
        <output>{state.asOf === undefined ? "Now" : formatTime(state.asOf)}</output>
        {compared === undefined ? null : <span className={styles.since}>compared with {formatTime(state.diff!)}</span>}
      </div>
      <div className={styles.track}>
        <Ticks ticks={ticks} from={compared} to={position} />
        <Handle
          label="Moment that is shown"
          value={position}
          max={now}
          text={(index) => (index >= now ? "now" : describe(ticks[index]!))}
          onChange={(index) => setState((before) => ({ ...before, asOf: moment(index), diff: earlier(before.diff, moment(index)) }), "small")}
        />
        {compared === undefined ? null : (
          <Handle
            second
            label="Earlier moment to compare with"
            value={compared}
            max={Math.max(0, position - 1)}
            span={now}
            text={(index) => describe(ticks[index]!)}
            onChange={(index) => setState((before) => ({ ...before, diff: moment(index) }), "small")}
          />
        )}
      </div>
      <div className={styles.actions}>
        <Button
          aria-pressed={compared !== undefined}
          disabled={position === 0}
          title="Colour what was added, removed or changed since an earlier moment"
          onClick={() => setState((before) => ({ ...before, diff: compared === undefined ? moment(Math.max(0, position - 1)) : undefined }))}
        >
          {compared === undefined ? "Compare" : "Stop comparing"}
        </Button>
        <Button disabled={state.asOf === undefined} onClick={() => setState((before) => ({ ...before, asOf: undefined }))}>Now</Button>
      </div>
    </section>
  );
}

/** A comparison needs an earlier moment; it ends when the shown moment is moved before it. */
function earlier(diff: string | undefined, asOf: string | undefined): string | undefined {
  return diff !== undefined && asOf !== undefined && diff >= asOf ? undefined : diff;
}

export function nearestTick(ticks: readonly GraphChange[], at: string): number {
  const wanted = Date.parse(at);
  let last = 0;
  ticks.forEach((tick, i) => {
    if (Date.parse(tick.at) <= wanted) last = i;
  });
  return last;
}

function describe(tick: GraphChange): string {
  return `${formatTime(tick.at)}: ${tick.summary}`;
}

function Ticks({ ticks, from, to }: { ticks: readonly GraphChange[]; from: number | undefined; to: number }) {
  const most = Math.max(1, ...ticks.map((tick) => Math.max(tick.added, tick.removed)));
  const height = (count: number) => (count ? 3 + 9 * Math.sqrt(count / most) : 0);
  const left = (index: number) => `${(index / ticks.length) * 100}%`;
  return (
    <div className={styles.ticks} aria-hidden="true">
      {from === undefined ? null : <span className={styles.range} style={{ left: left(from), width: `${((to - from) / ticks.length) * 100}%` }} />}
      {ticks.map((tick, i) => (
        <span key={tick.at + i} className={styles.tick} style={{ left: left(i) }} title={describe(tick)}>
          <i className={styles.added} style={{ height: height(tick.added) }} />
          <i className={styles.removed} style={{ height: height(tick.removed) }} />
        </span>
      ))}
    </div>
  );
}

interface HandleProps {
  label: string;
  value: number;
  max: number;
  span?: number;
  second?: boolean;
  text: (index: number) => string;
  onChange: (index: number) => void;
}

/** A range input that sends a request only after it stops moving. */
function Handle({ label, value, max, span = max, second = false, text, onChange }: HandleProps) {
  const [shown, setShown] = useState(value);
  useEffect(() => setShown(value), [value]);
  useEffect(() => {
    if (shown === value) return;
    const timer = setTimeout(() => onChange(shown), 160);
    return () => clearTimeout(timer);
  }, [shown]); // eslint-disable-line -- only a move of the handle starts the timer
  return (
    <input
      type="range"
      className={second ? styles.second : styles.first}
      style={{ width: `calc(${(span ? max / span : 1) * 100}% + 16px)` }}
      min={0}
      max={max}
      value={Math.min(shown, max)}
      aria-label={label}
      aria-valuetext={text(Math.min(shown, max))}
      title={text(Math.min(shown, max))}
      onChange={(event) => setShown(Number(event.target.value))}
    />
  );
}
