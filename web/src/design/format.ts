/** Values as people read them: times, durations, counts, and the names in ids. */

const UNITS: readonly [Intl.RelativeTimeFormatUnit, number][] = [
  ["year", 31_536_000],
  ["month", 2_592_000],
  ["day", 86_400],
  ["hour", 3_600],
  ["minute", 60],
];

const relative = new Intl.RelativeTimeFormat("en", { numeric: "auto" });
const whole = new Intl.NumberFormat("en");
const compact = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });

/** `3 hours ago`, `in 2 days`; "never" without a time. */
export function formatAge(time: string | null | undefined, now: number = Date.now()): string {
  if (!time) return "never";
  const seconds = (Date.parse(time) - now) / 1000;
  for (const [unit, size] of UNITS) {
    if (Math.abs(seconds) >= size) return relative.format(Math.trunc(seconds / size), unit);
  }
  return "just now";
}

/** A moment in full, in the reader's time zone. */
export function formatTime(time: string | null | undefined): string {
  if (!time) return "unknown";
  return new Date(time).toLocaleString("en-GB", { dateStyle: "medium", timeStyle: "short" });
}

/** A message of the server with its timestamps as people read them. */
export function withTimes(text: string): string {
  return text.replace(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z/g, (time) => formatTime(time));
}

export function formatDay(time: string): string {
  return new Date(time).toLocaleDateString("en-GB", { day: "numeric", month: "short" });
}

/** `850 ms`, `12 s`, `4 min 10 s`, `2 h 5 min`. */
export function formatDuration(seconds: number | null | undefined): string {
  if (seconds === null || seconds === undefined) return "unknown";
  if (seconds < 1) return `${Math.round(seconds * 1000)} ms`;
  if (seconds < 60) return `${Math.round(seconds)} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return joined(minutes, "min", Math.round(seconds % 60), "s");
  return joined(Math.floor(minutes / 60), "h", minutes % 60, "min");
}

function joined(large: number, largeUnit: string, small: number, smallUnit: string): string {
  return small ? `${large} ${largeUnit} ${small} ${smallUnit}` : `${large} ${largeUnit}`;
}

export function formatCount(value: number): string {
  return value < 100_000 ? whole.format(value) : compact.format(value);
}

/** `85.7%`; a dash for a share of nothing. */
export function formatPercent(value: number | null | undefined): string {
  return value === null || value === undefined ? "–" : `${value}%`;
}

export function formatBytes(value: number): string {
  const units = ["B", "kB", "MB", "GB", "TB", "PB"];
  let at = 0;
  let size = value;
  while (size >= 1000 && at < units.length - 1) {
    size /= 1000;
    at += 1;
  }
  return `${at === 0 || size >= 100 ? Math.round(size) : size.toFixed(1)} ${units[at]}`;
}

export function plural(count: number, noun: string, several: string = `${noun}s`): string {
  return `${formatCount(count)} ${count === 1 ? noun : several}`;
}

export interface EntityName {
  kind: "dataset" | "job" | "column";
  namespace: string;
  name: string;
  column?: string;
}

/**
 * The parts of an id: `dataset:NAMESPACE:NAME`, `job:NAMESPACE:NAME`, `column:NAMESPACE:NAME:COLUMN`.
 * Namespaces contain colons (`postgres://host:5432`); names rarely do.
 */
export function parseId(id: string): EntityName {
  const [kind, ...rest] = id.split(":");
  if (kind === "column" && rest.length > 2) {
    const column = rest.pop() ?? "";
    const name = rest.pop() ?? "";
    return { kind, namespace: rest.join(":"), name, column };
  }
  if ((kind === "dataset" || kind === "job") && rest.length > 1) {
    const name = rest.pop() ?? "";
    return { kind, namespace: rest.join(":"), name };
  }
  return { kind: "dataset", namespace: "", name: id };
}

/** The id of a column of a dataset. */
export function columnId(dataset: string, column: string): string {
  return `column:${dataset.replace(/^dataset:/, "")}:${column}`;
}

/** The name in an id, for a line of text. */
export function nameOf(id: string): string {
  const { name, column } = parseId(id);
  return column === undefined ? name : `${name}.${column}`;
}

/** Names by which a text may mention entities: those that only one of them has. */
export function namesOf(ids: readonly string[]): ReadonlyMap<string, string> {
  const found = new Map<string, string>();
  const several = new Set<string>();
  for (const id of new Set(ids)) {
    const name = nameOf(id);
    if (found.has(name)) several.add(name);
    found.set(name, id);
  }
  for (const name of several) found.delete(name);
  return found;
}

/** Divide a text at the ids in it, and at whole names that stand for an id. */
export function splitAtIds(text: string, ids: readonly string[], names: ReadonlyMap<string, string> = NO_NAMES): { text: string; id?: string }[] {
  // The longest first: an id may be the beginning of another one.
  const known = [...ids.map((id) => [id, escaped(id)] as const), ...[...names.keys()].map((name) => [name, `(?<![\\w./:$-])${escaped(name)}(?![\\w$/-]|\\.\\w)`] as const)];
  const pattern = known.sort(([one], [other]) => other.length - one.length).map(([, source]) => source).join("|");
  if (pattern === "") return [{ text }];
  const parts = text.split(new RegExp(`(${pattern})`));
  return parts.map((part, at) => (at % 2 === 1 ? { text: part, id: names.get(part) ?? part } : { text: part })).filter((part) => part.text !== "");
}

const NO_NAMES: ReadonlyMap<string, string> = new Map();

function escaped(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
}

/** Words of a code, as `column_dropped` → `Column dropped`. */
export function asWords(code: string): string {
  const words = code.replaceAll("_", " ").toLowerCase();
  return words.charAt(0).toUpperCase() + words.slice(1);
}
