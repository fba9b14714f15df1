/** Icons as 16-pixel strokes. An icon is decoration: the text beside it has the same content. */

const PATHS = {
  home: "M2.5 7.5 8 2.8l5.5 4.7M4 6.5v6.7h8V6.5",
  graph: "M3 4.5h3M3 11.5h3M10 8h3M6 4.5c2.5 0 1.5 3.5 4 3.5M6 11.5c2.5 0 1.5-3.5 4-3.5",
  change: "M8.8 1.8 4 9h3.4l-.6 5.2L12 6.6H8.4z",
  shield: "M8 1.8 13 3.6v4c0 3-2.1 5.3-5 6.6-2.9-1.3-5-3.6-5-6.6v-4zM5.7 8l1.6 1.6 3-3.2",
  stamp: "M2.8 13.6h10.4M3.6 11.2h8.8V9.4L9.6 8.6V6.4a2.2 2.2 0 1 0-3.2 0v2.2l-2.8.8z",
  ask: "M2.5 3.5h11v7h-6L4.5 13v-2.5h-2z",
  settings: "M8 5.6a2.4 2.4 0 1 0 0 4.8 2.4 2.4 0 0 0 0-4.8zM8 1.6v2M8 12.4v2M1.6 8h2M12.4 8h2M3.5 3.5l1.4 1.4M11.1 11.1l1.4 1.4M3.5 12.5l1.4-1.4M11.1 4.9l1.4-1.4",
  search: "M7 2.6a4.4 4.4 0 1 0 0 8.8 4.4 4.4 0 0 0 0-8.8zM10.2 10.2 13.6 13.6",
  table: "M2.5 3.2h11v9.6h-11zM2.5 6.4h11M6.2 6.4v6.4",
  view: "M1.8 8s2.4-4 6.2-4 6.2 4 6.2 4-2.4 4-6.2 4-6.2-4-6.2-4zM8 6.3a1.7 1.7 0 1 0 0 3.4 1.7 1.7 0 0 0 0-3.4z",
  file: "M4 1.8h5l3 3v9.4H4zM9 1.8v3h3",
  model: "M8 2 13.2 5v6L8 14 2.8 11V5zM8 8l5.2-3M8 8v6M8 8 2.8 5",
  dashboard: "M2.5 13.2V9M6.2 13.2V5M9.8 13.2V7M13.5 13.2V2.8",
  topic: "M2.2 5h11.6M2.2 8h11.6M2.2 11h11.6",
  job: "M5 3l7 5-7 5z",
  column: "M5 2.5h6v11H5zM5 6h6M5 9.5h6",
  tag: "M2.5 7.6V2.5h5.1l6 6-5.1 5.1zM5.4 5.4h.01",
  owner: "M8 2.5a2.6 2.6 0 1 0 0 5.2 2.6 2.6 0 0 0 0-5.2zM2.8 13.6c.5-2.8 2.5-4.2 5.2-4.2s4.7 1.4 5.2 4.2",
  copy: "M5.5 5.5h8v8h-8zM3 10.5h-.5v-8h8V3",
  check: "M3 8.4 6.4 12 13 4.4",
  close: "M3.5 3.5l9 9M12.5 3.5l-9 9",
  refresh: "M13 8a5 5 0 1 1-1.6-3.7M13 2.5v2.6h-2.6",
  warning: "M8 2.2 14.4 13.4H1.6zM8 6.4v3.4M8 11.6h.01",
  breaking: "M5.3 1.8h5.4l3.5 3.5v5.4l-3.5 3.5H5.3l-3.5-3.5V5.3zM5.8 5.8l4.4 4.4M10.2 5.8l-4.4 4.4",
  blind: "M2 2l12 12M4 4.6C2.6 5.8 1.8 8 1.8 8s2.4 4 6.2 4c.9 0 1.7-.2 2.4-.5M7 4.1c.3-.1.7-.1 1-.1 3.8 0 6.2 4 6.2 4s-.5.9-1.5 1.9",
  clock: "M8 2a6 6 0 1 0 0 12A6 6 0 0 0 8 2zM8 4.8V8l2.3 1.5",
  plus: "M8 3v10M3 8h10",
  minus: "M3 8h10",
  arrow: "M3 8h10M9.2 4.2 13 8l-3.8 3.8",
  chevron: "M6 3.5 10.5 8 6 12.5",
  download: "M8 2.5v7.6M4.8 7 8 10.2 11.2 7M2.8 13.4h10.4",
  sun: "M8 5.2a2.8 2.8 0 1 0 0 5.6 2.8 2.8 0 0 0 0-5.6zM8 1.4v1.4M8 13.2v1.4M1.4 8h1.4M13.2 8h1.4M3.3 3.3l1 1M11.7 11.7l1 1M3.3 12.7l1-1M11.7 4.3l1-1",
  moon: "M13.2 9.6A5.6 5.6 0 0 1 6.4 2.8a5.6 5.6 0 1 0 6.8 6.8z",
  filter: "M2.2 3h11.6L9.4 8.3v4.9l-2.8-1.4V8.3z",
  fit: "M2.5 6V2.5H6M10 2.5h3.5V6M13.5 10v3.5H10M6 13.5H2.5V10",
  lock: "M4 7.2h8v6.4H4zM5.6 7.2V5a2.4 2.4 0 0 1 4.8 0v2.2",
  link: "M6.6 9.4a2.6 2.6 0 0 0 3.7 0l2.2-2.2a2.6 2.6 0 0 0-3.7-3.7L8 4.3M9.4 6.6a2.6 2.6 0 0 0-3.7 0L3.5 8.8a2.6 2.6 0 0 0 3.7 3.7l.8-.8",
} as const;

export type IconName = keyof typeof PATHS;

export function Icon({ name, size = 16 }: { name: IconName; size?: number }) {
  return (
    <svg width={size} height={size} viewBox="0 0 16 16" fill="none" stroke="currentColor" strokeWidth={1.5} strokeLinecap="round" strokeLinejoin="round" aria-hidden="true" focusable="false">
      <path d={PATHS[name]} />
    </svg>
  );
}

/** The path of an icon, for what is drawn on a canvas. */
export function iconPath(name: IconName): string {
  return PATHS[name];
}

/** The icon of a kind or type of node; `table` for an unknown type. */
export function iconOf(type: string | undefined): IconName {
  return type !== undefined && type in PATHS ? (type as IconName) : "table";
}
