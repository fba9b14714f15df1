import { useRef, useState } from "react";
import { Button } from "../../design/parts";
import { Mark, ReachMark, markText } from "../../graph/cards/marks";
import styles from "./lineage.module.css";

const LINES = [
  { dash: "", text: "Exact, direct" },
  { dash: "", text: "Inferred", opacity: 0.6 },
  { dash: "6 4", text: "Indirect: JOIN, FILTER, GROUP BY …" },
  { dash: "2 4", text: "Ambiguous" },
  { dash: "10 5", text: "Declared" },
] as const;

const LEGEND_TAG = [{ tag: "pii", origin: "column:NAMESPACE:dataset:column" }] as const;

/** The meaning of lines and marks. */
export function Legend({ diff }: { diff: boolean }) {
  const [open, setOpen] = useState(false);
  const box = useRef<HTMLDivElement>(null);
  return (
    <div
      ref={box}
      className={styles.legend}
      onBlur={(event) => box.current?.contains(event.relatedTarget) || setOpen(false)}
      onKeyDown={(event) => {
        if (event.key === "Escape") setOpen(false);
      }}
    >
      <Button aria-expanded={open} onClick={() => setOpen(!open)}>Legend</Button>
      {open ? (
        <div className={styles.legendBox}>
          {LINES.map(({ dash, text, ...line }) => (
            <span key={text}>
              <svg width="34" height="8" aria-hidden="true"><path d="M1 4h32" stroke="var(--edge-active)" strokeWidth="2" strokeDasharray={dash} {...line} /></svg>
              {text}
            </span>
          ))}
          {["certified", "pii", "stale", "failed", "broken", "dropped"].map((mark) => <span key={mark}><Mark mark={mark} />{markText(mark)}</span>)}
          <span><ReachMark tags={LEGEND_TAG} />Propagates from another column</span>
          {diff ? <><span className={styles.added}>+ added</span><span className={styles.removed}>− removed</span><span className={styles.changed}>~ changed</span></> : null}
        </div>
      ) : null}
    </div>
  );
}
