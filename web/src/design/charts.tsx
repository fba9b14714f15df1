/** Small charts as SVG. Each has a sentence with the same content; the numbers are in a table or title. */

import { useId, type ReactNode } from "react";
import { formatCount, formatDay } from "./format";
import styles from "./charts.module.css";

export interface Point {
  at: string;
  value: number | null;
}

interface Scale {
  x: (at: number) => number;
  y: (value: number) => number;
}

const WIDTH = 600;

/** The path of a line that breaks where a value is missing. */
export function linePath(points: readonly Point[], { x, y }: Scale): string {
  let drawing = false;
  return points
    .map((point, at) => {
      if (point.value === null) {
        drawing = false;
        return "";
      }
      const command = drawing ? "L" : "M";
      drawing = true;
      return `${command}${round(x(at))} ${round(y(point.value))}`;
    })
    .join("");
}

const round = (value: number) => Math.round(value * 10) / 10;

export function LineChart(props: { points: readonly Point[]; label: string; height?: number; min?: number; max?: number; format?: (value: number) => string; bare?: boolean }) {
  const { points, label, height = 120, format = formatCount, bare = false } = props;
  const values = points.flatMap((point) => (point.value === null ? [] : [point.value]));
  if (values.length === 0) return <p className={styles.none}>No values yet.</p>;
  const low = props.min ?? Math.min(...values);
  const high = props.max ?? Math.max(...values);
  const flat = high <= low;
  const pad = bare ? 4 : 12;
  const scale: Scale = {
    x: (at) => (points.length === 1 ? WIDTH : (at / (points.length - 1)) * (WIDTH - 8) + 4),
    y: (value) => (flat ? height / 2 : height - pad - ((value - low) / (high - low)) * (height - 2 * pad)),
  };
  const line = linePath(points, scale);
  const last = points.findLastIndex((point) => point.value !== null);
  const lastValue = points[last]?.value ?? 0;
  return (
    <figure className={`${styles.chart} ${bare ? "" : styles.withAxis}`}>
      {bare ? null : (
        <div className={styles.values} aria-hidden="true">
          <span style={{ top: scale.y(high) }}>{format(high)}</span>
          {flat ? null : <span style={{ top: scale.y(low) }}>{format(low)}</span>}
        </div>
      )}
      <svg viewBox={`0 0 ${WIDTH} ${height}`} preserveAspectRatio="none" role="img" aria-label={`${label}: from ${format(values[0] ?? 0)} to ${format(lastValue)}, lowest ${format(Math.min(...values))}, highest ${format(Math.max(...values))}.`} style={{ height }}>
        {bare ? null : <path className={styles.grid} d={`M0 ${scale.y(high)}H${WIDTH}M0 ${scale.y(low)}H${WIDTH}`} />}
        <path className={styles.area} d={`${line}L${round(scale.x(last))} ${height}L${round(scale.x(points.findIndex((point) => point.value !== null)))} ${height}Z`} />
        <path className={styles.line} d={line} />
        {bare ? null : points.map((point, at) => <rect key={at} className={styles.spot} x={scale.x(at) - WIDTH / points.length / 2} width={WIDTH / points.length} height={height}><title>{`${formatDay(point.at)}: ${point.value === null ? "no value" : format(point.value)}`}</title></rect>)}
      </svg>
      {bare ? null : (
        <figcaption className={styles.axis}>
          <span>{points[0] ? formatDay(points[0].at) : ""}</span>
          <span>{points.at(-1) ? formatDay(points.at(-1)?.at ?? "") : ""}</span>
        </figcaption>
      )}
    </figure>
  );
}

export interface Bar {
  id: string;
  value: number;
  tone: "normal" | "failed" | "running";
  title: string;
  href?: string;
}

/** Bars from the oldest to the newest; a failed one is hatched as well as red. */
export function Bars({ bars, label, height = 96, onOpen }: { bars: readonly Bar[]; label: string; height?: number; onOpen?: (bar: Bar) => void }) {
  const pattern = useId();
  const high = Math.max(...bars.map((bar) => bar.value), 1e-9);
  const step = WIDTH / Math.max(bars.length, 12);
  return (
    <figure className={styles.chart}>
      <svg viewBox={`0 0 ${WIDTH} ${height}`} preserveAspectRatio="none" role="img" aria-label={label} style={{ height }}>
        <defs>
          <pattern id={pattern} width="5" height="5" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">
            <rect width="5" height="5" className={styles.failedFill} />
            <rect width="2" height="5" className={styles.failedStripe} />
          </pattern>
        </defs>
        {bars.map((bar, at) => {
          const size = Math.max((bar.value / high) * (height - 8), 4);
          return (
            <rect
              key={bar.id}
              className={`${styles.bar} ${styles[bar.tone]}`}
              x={at * step + step * 0.12}
              y={height - size}
              width={step * 0.76}
              height={size}
              rx={1.5}
              {...(bar.tone === "failed" ? { fill: `url(#${pattern})` } : {})}
              onClick={onOpen ? () => onOpen(bar) : undefined}
            >
              <title>{bar.title}</title>
            </rect>
          );
        })}
      </svg>
    </figure>
  );
}

/** Rows of one bar each: a name, a share of the largest, a number. */
export function BarList({ rows, label, most }: { rows: readonly { key: string; name: ReactNode; value: number; text?: string; tone?: "brand" | "breaking" | "warning" | "pii" }[]; label: string; most?: number }) {
  const high = most ?? Math.max(...rows.map((row) => row.value), 1e-9);
  return (
    <ul className={styles.barList} aria-label={label}>
      {rows.map((row) => (
        <li key={row.key}>
          <span className={styles.barName}>{row.name}</span>
          <span className={styles.track} aria-hidden="true"><span className={styles[`fill_${row.tone ?? "brand"}`]} style={{ width: `${(100 * row.value) / high}%` }} /></span>
          <span className={styles.barValue}>{row.text ?? formatCount(row.value)}</span>
        </li>
      ))}
    </ul>
  );
}

/** Columns with their range below and their count above. */
export function Histogram({ columns, label }: { columns: readonly { range: string; count: number; title: string }[]; label: string }) {
  const high = Math.max(...columns.map(({ count }) => count), 1);
  return (
    <ul className={styles.histogram} aria-label={label}>
      {columns.map(({ range, count, title }) => (
        <li key={range} title={title} data-empty={count === 0 || undefined}>
          <span className={styles.column} aria-hidden="true"><span>{count ? formatCount(count) : ""}</span><span style={{ height: `${(78 * count) / high}px` }} /></span>
          <span aria-hidden="true">{range}</span>
          <span className="visually-hidden">{title}</span>
        </li>
      ))}
    </ul>
  );
}

export interface HeatRow {
  key: string;
  name: ReactNode;
  cells: readonly { level: 0 | 1 | 2 | 3 | null; title: string }[];
}

/** A grid of squares: a darker one is worse, an empty one unknown. */
export function HeatMap({ rows, label, columns }: { rows: readonly HeatRow[]; label: string; columns: readonly string[] }) {
  return (
    <table className={styles.heat} aria-label={label}>
      <colgroup><col className={styles.heatName} />{columns.map((column) => <col key={column} />)}</colgroup>
      <thead className="visually-hidden">
        <tr><th scope="col">Name</th>{columns.map((column) => <th key={column} scope="col">{column}</th>)}</tr>
      </thead>
      <tfoot aria-hidden="true">
        <tr><td /><td colSpan={Math.ceil(columns.length / 2)}>{columns[0]}</td>{columns.length > 1 ? <td colSpan={Math.floor(columns.length / 2)} data-last>{columns.at(-1)}</td> : null}</tr>
      </tfoot>
      <tbody>
        {rows.map((row) => (
          <tr key={row.key}>
            <th scope="row">{row.name}</th>
            {row.cells.map((cell, at) => (
              <td key={at} title={cell.title} data-level={cell.level ?? "none"}><span className="visually-hidden">{cell.title}</span></td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  );
}
